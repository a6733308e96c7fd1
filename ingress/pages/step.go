package pages

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/contact"
	"quittance/internal/erp"
	"quittance/internal/personal"
	"quittance/money"
)

// maxPhone is how many characters the page's field takes.
const maxPhone = 64

// showSession is GET /c/{id}.
func (v visit) showSession() {
	s, ok := v.session()
	if !ok {
		return
	}
	if state := end(s, v.p.cfg.Now()); state != "" {
		v.showEnd(s, state)
		return
	}
	st := v.steps(s)
	step, chosen := st.asked()
	switch step {
	case "":
		st.first(http.StatusOK, st.refusal()...)
	case stepOffers:
		st.choose(http.StatusOK)
	default:
		st.at(http.StatusOK, chosen)
	}
}

// asked returns the step that the address names, with its offer. The step is empty when
// the address names none.
func (st steps) asked() (step string, chosen option) {
	q := st.r.URL.Query()
	chosen, known := st.find(q.Get(page.FieldOffer))
	switch step = q.Get(queryStep); {
	case known && slices.Contains([]string{stepPhone, stepReview, stepCash, stepTransfer}, step):
		return step, chosen
	case step == stepOffers:
		return step, option{}
	}
	return "", option{}
}

// nowhere is GET of an address that does not exist.
func (p *Pages) nowhere(w http.ResponseWriter, r *http.Request) {
	visit{p: p, w: w, r: r, lang: web.Language(r, nil)}.unknown()
}

// form returns the handler of a step's form. It calls do with the offer that the form
// names. It answers itself when the session has no steps left, no offer is left, or the
// form cannot be read or names no offer.
func (p *Pages) form(do func(st steps, chosen option)) http.HandlerFunc {
	return p.visited(func(v visit) {
		s, ok := v.session()
		if !ok {
			return
		}
		st := v.steps(s)
		if s.Collection != nil && v.confirms(s) {
			// The answer to the first confirmation may have been lost, and its cookie.
			if err := v.pays(s.Collection.ID); err != nil {
				v.unavailable("noting who pays", err)
				return
			}
		}
		switch {
		case s.InFlight() && v.confirms(s):
			// The same confirmation again, while the first is in flight.
			offer, _ := s.Offer(s.Collection.OfferID)
			st.next(v.r.Context(), option{Offer: offer})
		case end(s, p.cfg.Now()) != "", len(st.offers) == 0:
			v.see()
		case v.fault != 0:
			st.first(v.fault, page.FieldError{Code: page.ErrorTryAgain})
		default:
			if chosen, ok := st.chosen(); ok {
				do(st, chosen)
			}
		}
	})
}

// confirms reports whether the form is the confirmation that began the session's
// collection.
func (v visit) confirms(s checkout.Session) bool {
	attempt, err := uuid.Parse(v.form.Get(fieldAttempt))
	return err == nil && s.Collection.ID == collectionID(v.id, attempt)
}

// offer is POST /c/{id}/offer.
func (st steps) offer(chosen option) { st.seeAt(chosen.step(), chosen.ID) }

// phone is POST /c/{id}/phone. It answers with the review.
func (st steps) phone(chosen option) {
	if chosen, _, typed, ok := st.payer(chosen); ok {
		st.review(http.StatusOK, chosen, typed, uuid.NewString())
	}
}

// pay is POST /c/{id}/pay.
func (st steps) pay(chosen option) {
	reviewed := chosen.ID
	chosen, payer, typed, ok := st.payer(chosen)
	if !ok {
		return
	}
	attempt, err := uuid.Parse(st.form.Get(fieldAttempt))
	total, wrong := strconv.ParseInt(st.form.Get(fieldTotal), 10, 64)
	if err != nil || wrong != nil || chosen.ID != reviewed { // or another operator than the review named
		st.review(http.StatusUnprocessableEntity, chosen, typed, uuid.NewString(), page.FieldError{Code: page.ErrorFormStale})
		return
	}
	if st.recheck(chosen, typed, attempt.String()) {
		return
	}
	do := checkout.Collect{
		CollectionID: collectionID(st.id, attempt), OfferID: chosen.ID,
		Account: st.p.cfg.Agencies.AccountOf(st.s.TenantID, st.s.Live, chosen.ID),
		Total:   total, ApprovalWindow: approvalWindow, SendWithin: sendWithin,
		Language: string(st.lang), ByReference: st.by != nil,
	}
	switch chosen.kind() {
	case page.KindMobileMoney:
		do.PayerMasked = contact.Mask(payer)
		if do.PayerSealed, err = st.p.cfg.Personal.SealPayer(st.r.Context(), st.id, payer); err != nil {
			st.unavailable("sealing the payer's number", err)
			return
		}
	case page.KindCard:
		do.ApprovalWindow = cardWindow
	case page.KindCash, page.KindTransfer: // the processor refuses it: nobody is asked for the money
	}
	if err := st.pays(do.CollectionID); err != nil {
		st.unavailable("noting who pays", err)
		return
	}
	q := st.promptOf(do.CollectionID, payer)
	if !st.admit(&q, chosen, typed, attempt.String()) {
		return
	}
	a, outcome, ok := st.ask(st.r.Context(), do)
	st.p.confirmations.WithLabelValues(outcome).Inc()
	if ok {
		if a.Code != checkout.CodeOK {
			st.withdraw(q)
		}
		st.confirmed(st.r.Context(), a, chosen, typed, attempt.String())
	}
}

// recheck asks the agency's ERP once more about the dues of a portal session, before they are
// paid. A due that has changed cancels the session. When answered is true the request has been
// answered.
func (st steps) recheck(chosen option, typed, attempt string) (answered bool) {
	switch st.p.cfg.Dues.Recheck(st.r.Context(), st.s) {
	case erp.RecheckUnchanged:
		return false
	case erp.RecheckChanged:
		st.p.confirmations.WithLabelValues("due_changed").Inc()
		// The session's page shows what came of it: another tab may have begun to pay.
		if _, _, ok := st.ask(st.r.Context(), checkout.Cancel{By: checkout.ByDueChange}); ok {
			st.see()
		}
	case erp.RecheckUnknown:
		st.p.confirmations.WithLabelValues("dues_unknown").Inc()
		st.review(http.StatusServiceUnavailable, chosen, typed, attempt, page.FieldError{Code: page.ErrorDuesUnknown})
	}
	return true
}

// confirmed answers a confirmation according to the processor's answer.
func (st steps) confirmed(ctx context.Context, a checkout.Answer, chosen option, typed, attempt string) {
	if a.Session != nil {
		st = st.visit.steps(*a.Session)
	}
	again := func(fault page.FieldError) {
		if now, ok := st.find(chosen.ID); ok {
			chosen = now // with the present fee
		}
		st.review(http.StatusConflict, chosen, typed, attempt, fault)
	}
	switch a.Code {
	case checkout.CodeOK:
		st.next(ctx, chosen)
	case checkout.CodeInFlight, checkout.CodeSessionEnded:
		st.see()
	case checkout.CodeTotalChanged:
		again(page.FieldError{Code: page.ErrorFormStale})
	case checkout.CodePreviousUndecided:
		again(page.FieldError{Code: page.ErrorPreviousUndecided})
	case checkout.CodeOrderUnderReview:
		again(page.FieldError{Code: page.ErrorOrderPaid})
	case checkout.CodeDueInPayment:
		again(page.FieldError{Code: page.ErrorDueInPayment})
	case checkout.CodeReferencePaused:
		again(page.FieldError{Code: page.ErrorReferencePaused, Minutes: int(math.Ceil(a.RetryAfter.Minutes()))})
	case checkout.CodeOfferUnknown:
		st.first(http.StatusConflict, page.FieldError{Field: page.FieldOffer, Code: page.ErrorOfferUnavailable})
	default:
		st.p.cfg.Log.LogAttrs(ctx, slog.LevelError, "no page fits the answer to a confirmation",
			slog.String("request_id", problem.RequestID(ctx)), slog.String("code", string(a.Code)))
		st.write(http.StatusInternalServerError, page.View{
			Lang: st.lang, State: page.StateUnavailable, SelfURL: st.url(st.lang, "", ""),
		})
	}
}

// askCancel is GET /c/{id}/cancel: the question before the citizen's cancel. The address
// names the step that the citizen comes from.
func (v visit) askCancel() {
	s, ok := v.session()
	if !ok {
		return
	}
	if end(s, v.p.cfg.Now()) != "" {
		v.see()
		return
	}
	st := v.steps(s)
	step, chosen := st.asked()
	st.show(http.StatusOK, page.StateCancel, step, chosen.ID, func(out *page.View) {
		out.Offers = st.pageOffers()
		out.BackURL = st.url(st.lang, step, chosen.ID)
		out.LanguageURL = st.path("cancel") + "?" + query(st.otherLanguage(), step, chosen.ID)
	})
}

// cancel is POST /c/{id}/cancel. When the session cannot be cancelled, its page shows
// why: it has ended, or its payment is in flight.
func (v visit) cancel() {
	if _, _, ok := v.ask(v.r.Context(), checkout.Cancel{By: checkout.ByCitizen}); ok {
		v.see()
	}
}

// collectionSpace is the name space of the derived ids.
var collectionSpace = uuid.MustParse("5b0c5a0e-3c1f-4f0a-9d55-6a1f6f3f2c10")

// collectionID returns the id of a confirmation at the operator: a UUID in the form of
// version 4, the same for the same attempt. It is a hash over session and attempt, so
// that a form cannot choose the id of another session's payment: the operator would
// answer for that payment.
func collectionID(sessionID string, attempt uuid.UUID) string {
	const version = 4
	return uuid.NewHash(sha256.New(), collectionSpace, append([]byte(sessionID+"/"), attempt[:]...), version).String()
}

// option is an offer by which the session can be paid now.
type option struct {
	checkout.Offer
	MobileMoney
}

// steps is a visit to an open session without a collection in flight.
type steps struct {
	visit
	s      checkout.Session
	offers []option
}

func (o option) kind() page.Kind { return kinds[o.Channel] }

// step returns the first step of the offer.
func (o option) step() string {
	switch o.kind() {
	case page.KindCard:
		return stepReview
	case page.KindCash:
		return stepCash
	case page.KindTransfer:
		return stepTransfer
	case page.KindMobileMoney:
	}
	return stepPhone
}

// steps returns the session's offers that the page can collect and for which the
// agency has an account or a counter, and a bank transfer only while there is time for it. An offer whose account was removed, or no longer
// takes the currency, is left out.
func (v visit) steps(s checkout.Session) steps {
	st := steps{visit: v, s: s}
	for _, o := range s.Offers {
		m, ok := v.p.cfg.MobileMoney[o.ID]
		if s.Offered(o, v.p.cfg.Now()) && (ok || !o.Channel.ByPhone()) && v.p.cfg.Agencies.Configured(s.TenantID, s.Live, o.ID, s.Currency) {
			st.offers = append(st.offers, option{o, m})
		}
	}
	return st
}

func (st steps) find(offer string) (option, bool) {
	i := slices.IndexFunc(st.offers, func(o option) bool { return o.ID == offer })
	if i < 0 {
		return option{}, false
	}
	return st.offers[i], true
}

// chosen returns the offer of the form. When ok is false the request has been answered.
func (st steps) chosen() (o option, ok bool) {
	id := st.form.Get(page.FieldOffer)
	if o, ok = st.find(id); ok {
		return o, true
	}
	fault := page.FieldError{Field: page.FieldOffer, Code: page.ErrorOfferUnavailable}
	if id == "" {
		fault.Code = page.ErrorOfferMissing
	}
	st.first(http.StatusUnprocessableEntity, fault)
	return option{}, false
}

// payer returns the number of the form, in the operator's form and as typed. A number of
// another operator on offer is pointed out first; when the form comes again it chooses
// that operator. When ok is false the request has been answered.
func (st steps) payer(chosen option) (_ option, payer, typed string, ok bool) {
	if chosen.kind() != page.KindMobileMoney {
		return chosen, "", "", true
	}
	typed = strings.TrimSpace(st.form.Get(page.FieldPhone))
	fault := page.FieldError{Field: page.FieldPhone, Code: page.ErrorPhoneMissing}
	if typed != "" {
		var err error
		payer, err = chosen.Payer.Payer(typed)
		switch {
		case err == nil:
			return chosen, payer, typed, true
		case errors.Is(err, contact.ErrOtherOperator):
			fault.Code = page.ErrorOperatorMismatch
			if other, payer, found := st.operatorOf(typed); found {
				if st.form.Get(fieldOperator) == other.ID {
					return other, payer, typed, true
				}
				fault.Code, fault.Offer = page.ErrorOperatorOther, other.ID
			}
		default:
			fault.Code = page.ErrorPhoneInvalid
		}
	}
	if r := []rune(typed); len(r) > maxPhone {
		typed = string(r[:maxPhone])
	}
	st.phoneStep(http.StatusUnprocessableEntity, chosen, typed, fault)
	return chosen, "", "", false
}

// operatorOf returns the offer whose operator has the number, with the number in the
// operator's form.
func (st steps) operatorOf(typed string) (_ option, payer string, ok bool) {
	for _, o := range st.offers {
		if o.Payer == nil {
			continue
		}
		if payer, err := o.Payer.Payer(typed); err == nil {
			return o, payer, true
		}
	}
	return option{}, "", false
}

// first answers with the first step: the choice of an offer, or the first step of the
// only offer.
func (st steps) first(status int, faults ...page.FieldError) {
	if len(st.offers) == 1 {
		st.at(status, st.offers[0], faults...)
		return
	}
	st.choose(status, faults...)
}

// at answers with the first step of an offer.
func (st steps) at(status int, chosen option, faults ...page.FieldError) {
	switch chosen.kind() {
	case page.KindCard:
		st.review(status, chosen, "", uuid.NewString(), faults...)
	case page.KindCash:
		st.cash(status, chosen)
	case page.KindTransfer:
		st.transfer(status, chosen)
	case page.KindMobileMoney:
		st.phoneStep(status, chosen, st.phoneOf(chosen), faults...)
	}
}

// phoneOf returns the phone number of the session's contact data if it can pay with the
// offer, otherwise an empty text: the citizen then types a number.
func (st steps) phoneOf(chosen option) string {
	phone, ok := st.contactPhone()
	if !ok {
		return ""
	}
	if _, err := chosen.Payer.Payer(phone); err != nil {
		return ""
	}
	return page.GroupPhone(phone)
}

// contactPhone returns the phone number of the session's contact data. ok is false if it has none, if it is
// erased or cannot be opened now, and for somebody who pays by reference.
func (st steps) contactPhone() (phone string, ok bool) {
	if len(st.s.CustomerSealed) == 0 || st.by != nil {
		return "", false
	}
	c, err := st.p.cfg.Personal.Customer(st.r.Context(), st.s.ContactID(), st.s.CustomerSealed)
	switch {
	case errors.Is(err, personal.ErrErased):
		return "", false
	case err != nil:
		st.p.cfg.Log.LogAttrs(st.r.Context(), slog.LevelWarn, "opening contact data for the phone number",
			slog.String("request_id", problem.RequestID(st.r.Context())), slog.Any("error", err))
		return "", false
	}
	return c.Phone, c.Phone != "" && len(c.Phone) <= maxPhone
}

func (st steps) choose(status int, faults ...page.FieldError) {
	st.show(status, page.StateChoose, stepOffers, "", func(v *page.View) {
		v.Offers = st.pageOffers()
		v.Action, v.Errors = st.action("offer"), faults
	})
}

func (st steps) phoneStep(status int, chosen option, typed string, faults ...page.FieldError) {
	st.show(status, page.StatePhone, stepPhone, chosen.ID, func(v *page.View) {
		v.Offer, v.Phone = chosen.ID, typed
		v.Action, v.Errors = st.action("phone"), faults
		v.Hidden = []page.Field{{Name: page.FieldOffer, Value: chosen.ID}}
		for _, fault := range faults {
			if fault.Offer != "" {
				v.Hidden = append(v.Hidden, page.Field{Name: fieldOperator, Value: fault.Offer})
			}
		}
	})
}

// review answers with the payment to be confirmed. The link to the other language
// leads back to the number, because no address may carry a number.
func (st steps) review(status int, chosen option, typed, attempt string, faults ...page.FieldError) {
	total, err := money.Total(st.s.Amount, chosen.Fee)
	if err != nil {
		st.unavailable("adding the fee", err)
		return
	}
	st.show(status, page.StateReview, chosen.step(), chosen.ID, func(v *page.View) {
		v.Offer, v.Kind, v.Phone, v.Fee, v.Total = chosen.ID, chosen.kind(), typed, chosen.Fee, total
		v.Action, v.Errors = st.action("pay"), faults
		v.Hidden = []page.Field{
			{Name: page.FieldOffer, Value: chosen.ID},
			{Name: fieldTotal, Value: strconv.FormatInt(total, 10)},
			{Name: fieldAttempt, Value: attempt},
		}
		if v.Kind == page.KindMobileMoney {
			v.Phone, _ = chosen.Payer.Payer(typed) // the caller has read it before
			v.BackURL = st.url(st.lang, stepPhone, chosen.ID)
			v.Hidden = append(v.Hidden, page.Field{Name: page.FieldPhone, Value: typed})
		}
	})
}

// cash answers with the reference to give at a counter. The page is live: it shows
// what the clerk does.
func (st steps) cash(status int, chosen option) {
	total, err := money.Total(st.s.Amount, chosen.Fee)
	if err != nil {
		st.unavailable("adding the fee", err)
		return
	}
	st.show(status, page.StateCash, stepCash, chosen.ID, func(v *page.View) {
		v.Offer, v.Kind, v.Fee, v.Total = chosen.ID, page.KindCash, chosen.Fee, total
		v.ExpiresAt, v.Counters = st.s.ExpiresAt, st.p.cfg.Agencies.Counters(st.s.TenantID, st.s.Live)
		if st.frame == nil {
			v.PayURL = st.p.cfg.PublicURL + prefixReference + st.s.PaymentRef
		}
		if st.by == nil && st.s.Mode == checkout.ModeHosted {
			v.NoticeURL = st.paperURL(paperNotice, st.lang)
		}
		v.SelfURL = st.url(st.lang, stepCash, chosen.ID)
		v.Refresh = st.refresh(stepCash, chosen.ID)
		v.Version, v.LiveURL = st.live(st.s)
	})
}

// transfer answers with the account and the reference for a bank transfer. The page is live: it shows when the agency's
// statement has the transfer.
func (st steps) transfer(status int, chosen option) {
	total, err := money.Total(st.s.Amount, chosen.Fee)
	if err != nil {
		st.unavailable("adding the fee", err)
		return
	}
	account, ok := st.p.cfg.Agencies.TransferAccount(st.s.TenantID, st.s.Live, st.s.Currency)
	if !ok {
		st.unavailable("finding the account for transfers", errors.New("the registry has none any more"))
		return
	}
	st.show(status, page.StateTransfer, stepTransfer, chosen.ID, func(v *page.View) {
		v.Offer, v.Kind, v.Fee, v.Total = chosen.ID, page.KindTransfer, chosen.Fee, total
		v.Transfer, v.ExpiresAt = account, st.s.ExpiresAt
		if st.by == nil && st.s.Mode == checkout.ModeHosted {
			v.NoticeURL = st.paperURL(paperNotice, st.lang)
		}
		v.SelfURL = st.url(st.lang, stepTransfer, chosen.ID)
		v.Refresh = st.refresh(stepTransfer, chosen.ID)
		v.Version, v.LiveURL = st.live(st.s)
	})
}

// show answers with a page of the journey. The step and its offer are where the page in
// the other language and the question before a cancel lead back to.
func (st steps) show(status int, state page.State, step, offer string, fill func(*page.View)) {
	v, ok := st.view(st.s)
	if !ok {
		return
	}
	v.State = state
	if st.by == nil {
		v.CancelAction = st.path("cancel")
	}
	v.LanguageURL = st.url(st.otherLanguage(), step, offer)
	v.CancelFields = []page.Field{{Name: queryStep, Value: step}, {Name: page.FieldOffer, Value: offer}}
	if len(st.offers) > 1 && state != page.StateChoose {
		v.OffersURL = st.url(st.lang, stepOffers, "")
	}
	fill(&v)
	st.write(status, v)
}

// action returns the address of a step's form. It has the language too, for a form
// that cannot be read and for an address that is opened again (back).
func (st steps) action(step string) string {
	return st.path(step) + "?" + page.FieldLanguage + "=" + string(st.lang)
}

func (st steps) pageOffers() []page.Offer {
	out := make([]page.Offer, len(st.offers))
	for i, o := range st.offers {
		out[i] = page.Offer{ID: o.ID, Kind: o.kind(), Fee: o.Fee, FeeKnown: true}
	}
	return out
}
