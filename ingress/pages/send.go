package pages

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/contact"
	"quittance/internal/notify"
	"quittance/internal/notify/payment"
	"quittance/internal/personal"
	"quittance/internal/quota"
)

const (
	// sendFor is how long after the payment its receipt may be asked for. Later the page still has it.
	sendFor = 7 * 24 * time.Hour
	// queryAsked says on the address of the page that a receipt was asked for, and how it comes.
	queryAsked = "asked"
	// sentFragment is where the page says so.
	sentFragment = "sent"
	pathSend     = "send"
	// maxAddress is how many characters the page's field takes.
	maxAddress = 254
)

// Messages sends messages to people: notify.Sender.
type Messages interface {
	Send(ctx context.Context, m notify.Message) error
}

// Asked limits the receipts that people ask for: quota.Receipts.
type Asked interface {
	Begin(ctx context.Context, q quota.ReceiptRequest) (admitted bool, err error)
}

// Outcomes of a request for a receipt, a label of metrics.
const (
	askedSent        = "sent"
	askedFaulty      = "faulty"
	askedLimited     = "limited"
	askedUnavailable = "unavailable"
)

var askedOutcomes = []string{askedSent, askedFaulty, askedLimited, askedUnavailable}

// sends reports whether the page offers to send the receipt: to whoever has the session's address. A message has
// that address and says what was paid, so the holder of a reference gets none, nor does the phone of somebody
// who paid by the reference (sendsToPayer).
func (v visit) sends(s checkout.Session) bool {
	return v.by == nil && v.frame == nil && end(s, v.p.cfg.Now()) == page.StateCompleted && s.Collection != nil && v.p.cfg.Now().Before(s.PaidAt().Add(sendFor))
}

// sendsToPayer reports whether the receipt can be sent to the number that paid.
func sendsToPayer(s checkout.Session) bool {
	c := s.Collection
	return c.Channel.ByPhone() && !c.ByReference && c.PayerMasked != ""
}

// send is POST /c/{id}/send.
func (v visit) send() {
	s, ok := v.session()
	switch {
	case !ok:
		return
	case !v.sends(s):
		v.see()
		return
	case v.fault != 0:
		v.sendAgain(v.fault, s, page.FieldError{Code: page.ErrorTryAgain})
		return
	}
	to, ok := v.addressee(s)
	if !ok {
		return
	}
	n := payment.Receipt(s)
	n.Caused, n.About = v.p.cfg.Now().UTC(), []string{"asked for", s.ID, to.Key()}
	payee, _ := v.p.cfg.Agencies.Payee(s.TenantID)
	m := n.Message(payment.Agency{
		Name: payee.Name, Address: payee.Contact.Address, Phone: payee.Contact.Phone, Email: payee.Contact.Email, Hours: payee.Contact.Hours,
	}, to, v.lang)
	admitted, err := v.p.cfg.Asked.Begin(v.r.Context(), quota.ReceiptRequest{MessageID: m.ID, SessionID: s.ID, Address: to.Key(), Client: web.Client(v.r)})
	if err == nil && admitted {
		err = v.p.cfg.Messages.Send(v.r.Context(), m)
	}
	switch {
	case err != nil:
		v.notSent("sending a receipt", err)
		v.sendAgain(http.StatusServiceUnavailable, s, page.FieldError{Code: page.ErrorTryAgain})
	case !admitted:
		v.p.asked.WithLabelValues(askedLimited).Inc()
		v.sendAgain(http.StatusTooManyRequests, s, page.FieldError{Code: page.ErrorReceiptsLimited})
	default:
		v.p.asked.WithLabelValues(askedSent).Inc()
		way := page.WayEmail
		if to.Kind == contact.Phone {
			way = page.WaySMS
		}
		setHeaders(v.w.Header())
		v.w.Header().Del("Content-Type") // there is no body
		v.w.Header().Set("Location", v.url(v.lang, "", "")+"&"+queryAsked+"="+string(way)+"#"+sentFragment)
		v.w.WriteHeader(http.StatusSeeOther)
	}
}

// addressee returns to whom the form sends the receipt. When ok is false the request has been answered.
func (v visit) addressee(s checkout.Session) (to contact.Address, ok bool) {
	typed := v.form.Get(page.FieldAddress)
	var err error
	switch {
	case v.form.Get(page.FieldTo) == page.ToPayer && sendsToPayer(s):
		var number string
		if number, err = v.p.cfg.Personal.PayerOf(v.r.Context(), s.ID, s.Collection.PayerMasked); err != nil && !errors.Is(err, personal.ErrErased) {
			v.notSent("opening the payer's number", err)
			v.sendAgain(http.StatusServiceUnavailable, s, page.FieldError{Code: page.ErrorTryAgain})
			return to, false
		}
		to, err = contact.ParsePhone(number) // one that is not known is no number: the payer types it
	case strings.Contains(typed, "@"):
		to, err = contact.ParseEmail(typed)
	default:
		to, err = contact.ParsePhone(typed)
	}
	if err != nil {
		v.p.asked.WithLabelValues(askedFaulty).Inc()
		v.sendAgain(http.StatusUnprocessableEntity, s, page.FieldError{Field: page.FieldAddress, Code: page.ErrorAddressInvalid})
		return to, false
	}
	return to, true
}

// notSent logs why a receipt was not sent. The error has no address.
func (v visit) notSent(doing string, err error) {
	v.p.asked.WithLabelValues(askedUnavailable).Inc()
	if v.r.Context().Err() == nil {
		v.p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelWarn, "a receipt that was asked for is not sent", slog.String("doing", doing),
			slog.String("request_id", problem.RequestID(v.r.Context())), slog.Any("error", err))
	}
}

// sendAgain answers with the page and what is wrong with the form.
func (v visit) sendAgain(status int, s checkout.Session, fault page.FieldError) {
	v.showEndWith(status, s, page.StateCompleted, fault)
}

// sendForm is the form that sends the receipt, nil for none.
func (v visit) sendForm(s checkout.Session, faulty bool) *page.Send {
	if !v.sends(s) {
		return nil
	}
	out := &page.Send{Action: v.path(pathSend) + "?" + page.FieldLanguage + "=" + string(v.lang), Payer: sendsToPayer(s)}
	if faulty {
		if out.Typed = v.form.Get(page.FieldAddress); len(out.Typed) > maxAddress {
			out.Typed = ""
		}
		return out
	}
	if way := page.Way(v.r.URL.Query().Get(queryAsked)); slices.Contains([]page.Way{page.WaySMS, page.WayEmail}, way) {
		out.Asked = way
	}
	return out
}
