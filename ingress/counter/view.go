package counter

import (
	"cmp"
	"fmt"

	"quittance/checkout"
	"quittance/ingress/web"
	"quittance/money"
	"quittance/money/language"
)

// view is what a page shows.
type view struct {
	web.View
	W *words

	Ref, RefText     string
	Service, Subject string
	Due, Fee, Total  string
	TotalMinor       int64
	CollectionID     string
	Until            string
	Ended            bool // in the meantime
	Stands           string
	Free             bool

	Late, Mine, CanReverse bool
	// Already warns that the cash was taken before this look-up.
	Already                string
	Clerk, Receipt, PaidAt string
	Reversed               string
	Notices                []string
	Papers                 []paperLink
	InWords, Place         string

	// PINKnown: the device is remembered, for somebody or for this clerk.
	PINKnown bool

	Till               tillView
	Sums               []sum
	Movements          []movement
	Search, Found      string
	NewerURL, OlderURL string
}

// viewAt is a view of the page with a path of its own below /counter.
func (v visit) viewAt(path, title string) *view {
	out := v.view(title)
	out.LanguageURL = v.View(v.w.Title, title, path).LanguageURL
	return out
}

func (v visit) view(title string) *view {
	out := &view{View: v.View(v.w.Title, title, v.ref()), W: v.w, Ref: v.ref()}
	if d := v.desk; d != nil {
		out.Test, out.Who, out.Owner = !d.Live, fmt.Sprintf(v.w.SignedInAs, d.Name, d.Counter), d.AgencyName
	}
	return out
}

// about fills in what is paid.
func (out *view) about(v visit, s checkout.Session) {
	out.Ref, out.RefText = s.PaymentRef, language.GroupReference(s.PaymentRef)
	out.Service, out.Subject = s.ServiceLabel, s.Description
	currency, ok := money.Lookup(s.Currency)
	if !ok {
		return
	}
	out.Due = currency.Format(v.Lang, s.Amount)
	if c := s.Collection; c != nil && isTaken(s, c.ID) { // also long after, when the session has no offers any more
		out.Fee, out.Total = currency.Format(v.Lang, c.Fee), currency.Format(v.Lang, c.Amount)
		out.InWords, _ = currency.Words(v.Lang, c.Amount)
	} else if offer, ok := s.Offer(checkout.OfferCashAgency); ok {
		out.Fee, out.Total = currency.Format(v.Lang, offer.Fee), currency.Format(v.Lang, s.Amount+offer.Fee)
	}
}

// receipt fills in who took the cash and when, and whether it can be reversed.
func (out *view) receipt(v visit, s checkout.Session, today bool) {
	c := s.Collection
	out.CollectionID, out.Receipt, out.Notices = c.ID, c.OperatorRef, s.NoticeRefs()
	out.Clerk, out.Place = v.clerk(c.Clerk), c.Account
	out.Papers = v.papers(s)
	out.Script = v.ScriptPath()
	out.PaidAt = language.Date(v.Lang, c.DecidedAt)
	out.Late, out.Mine = !s.Paid() && s.ReversedAt.IsZero(), c.Clerk == v.desk.Code
	out.CanReverse = c.ReversedBy == "" && today
	if c.ReversedBy != "" {
		out.Reversed = fmt.Sprintf(v.w.ReversedText, c.ReversedBy, language.Date(v.Lang, c.ReversedAt))
	}
}

// clerk names a clerk of the agency by name and code.
func (v visit) clerk(code string) string {
	if c, ok := v.c.cfg.Identities.Clerk(v.desk.AgencyID, code); ok {
		return fmt.Sprintf(v.w.SignedInAs, c.Name, code)
	}
	return code
}

// refusal says in the clerk's language why a request was refused.
func (v visit) refusal(r *refusal) string {
	if s := r.session; s != nil {
		switch {
		case r.code == string(checkout.CodeReserved) && held(*s, v.c.now()):
			return v.heldBy(*s)
		case r.code == string(checkout.CodeSessionEnded):
			return v.stands(*s)
		}
	}
	return cmp.Or(v.w.Refusals[r.code], v.w.Refusals[codeUnavailable])
}

func (v visit) heldBy(s checkout.Session) string {
	return fmt.Sprintf(v.w.HeldBy, s.Collection.Clerk, language.Clock(s.Collection.WindowEndsAt))
}

// stands describes a payment for which this clerk cannot take cash now.
func (v visit) stands(s checkout.Session) string {
	if text, ok := v.w.Ended[s.Status]; ok {
		return text
	}
	_, cash := s.Offer(checkout.OfferCashAgency)
	switch {
	case !cash:
		return v.w.Elsewhere
	case held(s, v.c.now()):
		return v.heldBy(s)
	case s.Collection != nil && s.Collection.Origin() != checkout.OriginCounter:
		return v.w.InFlight
	}
	return v.w.Free
}
