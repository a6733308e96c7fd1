package operations

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/contact"
	"quittance/internal/operation"
	"quittance/internal/sessions"
	"quittance/internal/support"
)

// searchView is the result of a search.
type searchView struct {
	view
	Payments, Cases staff.Grid
	Missing         []string
	Said            string // why there is nothing
}

// search is POST /ops/search. What is typed decides where it leads. Only what may stand in an address does: a session
// id opens a citizen's page, and contact data are not searched.
func (v *visit) search() {
	if !v.MaySearch() {
		return
	}
	term := strings.TrimSpace(v.Form.Get("q"))
	w := v.w.Search
	switch {
	case term == "":
		v.See(v.root() + "payments")
	case isContact(term):
		v.nothing(http.StatusUnprocessableEntity, w.Contact)
	case sessionIn(term) != "":
		v.showFound(sessionIn(term))
	case strings.HasPrefix(term, "case_"):
		if _, err := v.o.cfg.Cases.Show(v.Context(), v.viewer(), term, v.Now); err != nil {
			v.unknownOr(err, "searching a case")
			return
		}
		v.See(v.root() + "cases/" + term)
	case strings.HasPrefix(term, "dlv_"):
		v.searchDelivery(term)
	default:
		v.See(v.root()+"search", "q", term)
	}
}

// sessionIn returns the session id that a term is or ends with, such as the address of the citizen's page; empty for
// none.
func sessionIn(term string) string {
	_, id, found := strings.Cut(term, checkout.PrefixSession)
	if !found {
		return ""
	}
	return checkout.PrefixSession + id
}

// isContact reports whether what is typed is a phone number or an e-mail address.
func isContact(term string) bool {
	_, phone := contact.ParsePhone(term)
	_, email := contact.ParseEmail(term)
	return phone == nil || email == nil || strings.Contains(term, "@") || strings.HasPrefix(term, "+")
}

// searchDelivery leads to the payment of a delivery. Those about batches have none.
func (v *visit) searchDelivery(id string) {
	d, _, err := v.o.cfg.Deliveries.Show(v.Context(), id)
	if err != nil {
		v.unknownOr(err, "searching a delivery")
		return
	}
	if !strings.HasPrefix(d.SessionID, checkout.PrefixSession) || !v.Acting.Sees(d.TenantID) {
		v.nothing(http.StatusNotFound, v.w.Search.None)
		return
	}
	v.See(v.root() + "payments/" + sessions.Place(d.SessionID))
}

// unknownOr says that a search found nothing, or that the service cannot answer.
func (v *visit) unknownOr(err error, doing string) {
	var refusal *operation.Error
	if errors.As(err, &refusal) {
		v.nothing(http.StatusNotFound, v.w.Search.None)
		return
	}
	v.Unavailable(doing, err)
}

// nothing is the page of a search that found nothing.
func (v *visit) nothing(status int, said string, missing ...support.Missing) {
	out := &searchView{view: v.page(v.w.Search.Title, v.root()+"search"), Said: said}
	out.lacks(v, missing)
	v.Write(status, "search", out)
}

// showSearch is GET /ops/search?q=…
func (v *visit) showSearch() {
	term := v.Query("q")
	if term == "" || isContact(term) || sessionIn(term) != "" {
		v.nothing(http.StatusOK, v.w.Search.How)
		return
	}
	if !v.MaySearch() {
		return
	}
	v.showFound(term)
}

// showFound searches and shows what it finds. A single payment is shown by its own page.
func (v *visit) showFound(term string) {
	w := v.w.Search
	desk, err := v.desk(false)
	if err != nil {
		v.Unavailable("searching payments", err)
		return
	}
	found, err := desk.Find(v.Context(), term)
	if err != nil {
		v.Failed("searching payments", err)
		return
	}
	var ids []string
	var list []checkout.Session
	for _, p := range found.Payments {
		ids, list = append(ids, p.ID), append(list, p.Session)
	}
	// The term is not recorded: people type telephone numbers there.
	if !v.Record("session.find", "", v.Acting.Person.AgencyID, map[string]any{"sessions": ids[:min(len(ids), 20)], "found": len(ids), "cases": len(found.Cases)}) {
		return
	}
	switch {
	case len(list) == 1 && len(found.Cases) == 0:
		v.See(v.root() + "payments/" + sessions.Place(list[0].ID))
		return
	case len(list)+len(found.Cases) == 0:
		said := w.None
		if mistyped(term) {
			said = w.Mistyped
		}
		v.nothing(http.StatusNotFound, said, found.Missing...)
		return
	}
	var query []string
	if sessionIn(term) == "" {
		query = []string{"q", term}
	}
	out := &searchView{view: v.page(w.Title, v.root()+"search", query...), Payments: v.paymentGrid(v.w.Payments.Title, list), Cases: v.caseGrid(v.w.Cases.Title, found.Cases)}
	out.Test = slices.ContainsFunc(list, func(s checkout.Session) bool { return !s.Live })
	out.Command = "quittance sessions find " + staff.Argument(term)
	if out.SearchBox != nil {
		out.SearchBox.Value = term
	}
	out.lacks(v, found.Missing)
	v.Write(http.StatusOK, "search", out)
}

// lacks says what a search could not read.
func (out *searchView) lacks(v *visit, missing []support.Missing) {
	for _, m := range missing {
		out.Missing = append(out.Missing, v.missing(m))
	}
}

// mistyped reports whether a term has the 16 digits of a payment reference, with other check digits.
func mistyped(term string) bool {
	digits := checkout.Ungrouped(term)
	return len(digits) == 16 && strings.Trim(digits, "0123456789") == "" && support.PaymentRef(term) == ""
}
