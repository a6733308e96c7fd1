package cashin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/cashin"
	"quittance/internal/commands"
	"quittance/internal/contact"
	"quittance/internal/registry"
)

// Times of a payment of partners/payments.
const (
	// wordPatience is how long a partner waits for the operator's word, from the arrival of
	// the request.
	wordPatience = 25 * time.Second
	// sendWithin leaves the sink time to say that nothing was sent.
	sendWithin = 15 * time.Second
	// approvalWindow and cardWindow are the payer's time, as on the hosted page.
	approvalWindow = 5 * time.Minute
	cardWindow     = 15 * time.Minute
)

// What operators said, as labels.
const (
	wordAccepted = "accepted"
	wordRefused  = "refused"
	wordNotSent  = "not_sent"
	wordNone     = "none"
)

// read authenticates a call with a body, reads its form and counts it, in this order.
func (a *API) read(c call, form func(object, registry.Application, bool) (request, error)) (p cashin.Principal, app registry.Application, q request, err error) {
	p, app, err = a.authenticate(c)
	if err != nil {
		return p, app, q, err
	}
	o, err := readObject(c)
	if err != nil {
		return p, app, q, err
	}
	if q, err = form(o, app, p.Live); err != nil {
		return p, app, q, err
	}
	return p, app, q, a.count(c, p.PairID)
}

// initCheckout answers POST /init-checkout.
func (a *API) initCheckout(c call) error {
	p, app, q, err := a.read(c, func(o object, app registry.Application, live bool) (request, error) {
		return a.readInit(c.r.Context(), o, app, live)
	})
	if err != nil {
		return err
	}
	q.session.Offers = a.offers(app, p.Live, q.session.Amount)
	if len(q.session.Offers) == 0 {
		return refuse(http.StatusForbidden, codeProviderOff, "No provider is configured for this application.")
	}
	s, err := a.draft(c.r.Context(), q.session, p, app)
	if err != nil {
		return err
	}
	answer, err := a.ask(c.r.Context(), commands.DefaultTimeout, app, p, s.ID, checkout.InitCheckout{Session: s})
	if err != nil {
		return err
	}
	if made := answer.Session; made.ID != s.ID && len(s.CustomerSealed) > 0 {
		// An update: the contact data belong to the earlier session now. If this fails, the
		// read model does it.
		if err := a.adopt(c.r.Context(), s.ID, made.ID); err != nil {
			a.cfg.Log.LogAttrs(c.r.Context(), slog.LevelWarn, "keys of contact data stay with a session that was not made until the read model moves them", slog.Any("error", err))
		}
	}
	write(c.w, http.StatusOK, struct {
		PaymentID      int64  `json:"paymentId"`
		ExternalNumber string `json:"externalNumber"`
		Token          string `json:"token"`
		RedirectURL    string `json:"redirectUrl"`
	}{answer.Session.Cashin.PaymentID, answer.Session.OrderID, answer.Session.ID, a.cfg.CheckoutURL + "/c/" + answer.Session.ID})
	return nil
}

// adoptWithin bounds the adoption of contact data.
const adoptWithin = 2 * time.Second

// adopt hands over the keys of contact data, also when the caller has hung up.
func (a *API) adopt(ctx context.Context, from, to string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptWithin)
	defer cancel()
	return a.cfg.Personal.Adopt(ctx, from, to)
}

// pay answers POST /partners/payments.
func (a *API) pay(c call) error {
	p, app, q, err := a.read(c, readPay)
	if err != nil {
		return err
	}
	g, ok := providers[q.provider]
	switch {
	case !ok:
		return refuse(http.StatusNotFound, codeProviderUnknown, "There is no such provider.")
	case !a.enabled(app, p.Live, g):
		return refuse(http.StatusForbidden, codeProviderOff, "The provider is not configured for this application.")
	}
	payer := ""
	if g.phone {
		if payer, ok = a.payer(g.offer, q.phone); !ok {
			return refuse(http.StatusUnprocessableEntity, codePhone, "The phone number is not one of this provider: +242 and the number, or 0 and 8 to 14 digits.")
		}
	}
	q.session.Cashin.Provider = g.name
	for _, offer := range a.offers(app, p.Live, q.session.Amount) {
		if offer.ID == g.offer {
			q.session.Offers = []checkout.Offer{offer}
		}
	}
	if len(q.session.Offers) == 0 {
		return refuse(http.StatusForbidden, codeProviderOff, "The provider takes no such amount.")
	}
	s, err := a.draft(c.r.Context(), q.session, p, app)
	if err != nil {
		return err
	}
	return a.collect(c, p, app, g, s, payer)
}

// collect creates the payment, begins its collection and waits for the operator's word.
func (a *API) collect(c call, p cashin.Principal, app registry.Application, g provider, s checkout.Session, payer string) error {
	word := a.cfg.Expect()
	defer word.Close()
	at := checkout.ReplyTo(word.Address())
	do := checkout.PartnerPay{Session: s, Word: &at, Collect: checkout.Collect{
		CollectionID: uuid.NewString(), OfferID: g.offer, Account: a.cfg.Configuration.AccountOf(app.AgencyID, p.Live, g.offer),
		Total: s.Amount + s.Offers[0].Fee, ApprovalWindow: approvalWindow, SendWithin: sendWithin,
	}}
	if g.phone {
		var err error
		do.Collect.PayerMasked = contact.Mask(payer)
		if do.Collect.PayerSealed, err = a.cfg.Personal.SealPayer(c.r.Context(), s.ID, payer); err != nil {
			return err
		}
	} else {
		do.Collect.ApprovalWindow = cardWindow
	}
	// A partner that is told to send it again makes a second payment. So the answer comes when
	// a decision of the first could no longer be sent to the operator, because sendWithin has
	// passed. It may have been sent before: only the processor's reply is missing.
	ctx, stop := context.WithCancel(c.r.Context())
	defer stop()
	defer context.AfterFunc(a.cfg.Stopping, stop)()
	answer, err := a.ask(ctx, time.Until(c.arrived.Add(wordPatience)), app, p, s.ID, do)
	switch {
	case errors.Is(err, commands.ErrUnavailable):
		a.failed(c.r, err)
		return refuse(http.StatusInternalServerError, codeInternal, "Internal error. The payment may have begun all the same: before another one, ask the payer.")
	case err != nil:
		return err
	}
	if a.awaitWord(c, word) == checkout.CodeCollectionNotSent {
		return refuse(http.StatusBadGateway, codeGateway, "The operator could not be reached. Nothing was collected, and nothing will be: a new payment may be made.")
	}
	write(c.w, http.StatusOK, struct {
		PaymentID      int64                  `json:"paymentId"`
		Number         string                 `json:"number"`
		ExternalNumber string                 `json:"externalNumber"`
		Status         checkout.PaymentStatus `json:"status"`
		Amount         int64                  `json:"amount"`
		Provider       string                 `json:"provider"`
	}{answer.Session.Cashin.PaymentID, answer.Session.Cashin.Number, s.OrderID, checkout.PaymentPending, s.Amount, g.name})
	return nil
}

// awaitWord waits for what the operator says, at most until wordPatience after the request's
// arrival, or until the instance stops. It returns an empty code when nothing was said.
func (a *API) awaitWord(c call, word Expectation) checkout.Code {
	ctx, cancel := context.WithDeadline(c.r.Context(), c.arrived.Add(wordPatience))
	defer cancel()
	defer context.AfterFunc(a.cfg.Stopping, cancel)()
	answer, ok := word.Await(ctx)
	said := wordNone
	if ok {
		switch answer.Code {
		case checkout.CodeCollectionAccepted:
			said = wordAccepted
		case checkout.CodeCollectionRefused:
			said = wordRefused
		case checkout.CodeCollectionNotSent:
			said = wordNotSent
		default:
		}
	}
	a.words.WithLabelValues(said).Inc()
	return answer.Code
}

// ask sends a command and awaits the answer of the processor, which must be ok. If a payment
// was not created, its contact data are erased.
func (a *API) ask(ctx context.Context, patience time.Duration, app registry.Application, p cashin.Principal, sessionID string, do checkout.Action) (checkout.Answer, error) {
	answer, err := a.cfg.Commands.AskWithin(ctx, checkout.Command{
		At: a.now(), TenantID: app.AgencyID, SessionID: sessionID, ApplicationID: app.ID, Live: p.Live, Do: do,
	}, patience)
	switch {
	case err != nil:
		return answer, err // the command may still be carried out, and needs its contact data
	case answer.Code == checkout.CodeOK && answer.Session != nil && answer.Session.Cashin != nil:
		return answer, nil
	case answer.Code == checkout.CodeSessionNotFound:
		return answer, refuse(http.StatusNotFound, codeRowNotFound, "There is no such payment.")
	case answer.Code == checkout.CodeNumbersExhausted:
		a.full.Inc()
	}
	if sessionID != "" {
		if err := a.cfg.Personal.Forget(ctx, sessionID); err != nil {
			a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "contact data of a refused payment stay sealed for 61 days",
				slog.String("request_id", problem.RequestID(ctx)), slog.Any("error", err))
		}
	}
	return answer, fmt.Errorf("the processor answered %s", answer.Code)
}

// draft completes the session of a request and gives it its ids and numbers.
func (a *API) draft(ctx context.Context, s checkout.Session, p cashin.Principal, app registry.Application) (checkout.Session, error) {
	now := a.now()
	s.ApplicationID, s.TenantID, s.Live = app.ID, app.AgencyID, p.Live
	s.CreatedAt, s.ExpiresAt = now, now.Add(app.SessionLifetime)
	_, s.ERP = a.cfg.Configuration.ERP(app.AgencyID, p.Live)
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	s.ID = a.cfg.IDs.NewSession(now, a.cfg.Partition(app.AgencyID), random)
	var errs [3]error
	s.PaymentRef, errs[0] = a.cfg.References.PaymentRef()
	s.NoticeRef, errs[1] = a.cfg.References.NoticeRef()
	s.Cashin.PaymentID, errs[2] = a.cfg.References.PaymentID()
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	for _, id := range []*string{&s.NoticeID, &s.TransactionID} {
		u, err := uuid.NewV7()
		if err != nil {
			return s, fmt.Errorf("making a UUID: %w", err)
		}
		*id = u.String()
	}
	if s.Customer == nil {
		return s, nil
	}
	sealed, err := a.cfg.Personal.SealCustomer(ctx, s.ID, *s.Customer)
	s.CustomerSealed, s.Customer = sealed, nil
	return s, err
}

var phonePattern = regexp.MustCompile(`^(?:\+242|0)[0-9]{8,14}$`)

// payer returns the payer's number as the operator wants it (contract, "POST
// /partners/payments"). ok is false for an unusable number, also of another operator.
func (a *API) payer(offer, phone string) (payer string, ok bool) {
	phone = strings.NewReplacer(" ", "", ".", "", "-", "").Replace(phone)
	reader := a.cfg.Payers[offer]
	if !phonePattern.MatchString(phone) || reader == nil {
		return "", false
	}
	if local, ok := strings.CutPrefix(phone, "0"); ok {
		phone = "+242" + local
	}
	payer, err := reader.Payer(phone) // restores the 0 that operators keep
	return payer, err == nil
}

func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute).Sub(now)
}
