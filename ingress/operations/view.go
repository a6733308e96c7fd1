package operations

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/money/language"
)

// view is what all pages show.
type view struct {
	staff.View
	W *words
}

// page returns the view of a page. Names and values of query alternate; they are the conditions in the page's address.
func (v *visit) page(title, path string, query ...string) view {
	return view{v.View(title, path, query...), v.w}
}

// said returns the value of a name in a table of words, or the name itself, which a later release may have made.
func said[K ~string](table map[string]string, name K) string {
	return cmp.Or(table[string(name)], string(name))
}

// sum returns an amount as people read it; a dash without a currency.
func (v *visit) sum(minor int64, currency string) string {
	if c, ok := money.Lookup(currency); ok {
		return c.Format(v.Lang, minor)
	}
	if currency == "" {
		return "–"
	}
	return fmt.Sprint(minor, " ", currency)
}

// agency returns the name of an agency.
func (v *visit) agency(id string) string {
	a, ok := v.o.cfg.Registry.Agency(id)
	if !ok {
		return cmp.Or(id, "–")
	}
	return a.Name
}

// application returns the name of an application.
func (v *visit) application(id string) string {
	a, ok := v.o.cfg.Registry.Application(id)
	if !ok {
		return id
	}
	return a.Name
}

// mode returns the name of a mode.
func (v *visit) mode(live bool) string {
	if live {
		return v.w.Live
	}
	return v.w.Test
}

// at returns a time, or nothing for none.
func (v *visit) at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return v.At(t)
}

// fields are the conditions of a list that the person has chosen.
type fields map[string]string

// conditions reads the conditions of a list from the address.
func (v *visit) conditions(names ...string) fields {
	out := fields{}
	for _, name := range names {
		if value := v.Query(name); value != "" {
			out[name] = value
		}
	}
	return out
}

// query returns the conditions as names and values in turn.
func (f fields) query(names []string, more ...string) []string {
	var out []string
	for _, name := range names {
		if f[name] != "" {
			out = append(out, name, f[name])
		}
	}
	return append(out, more...)
}

// choices returns the options of a select, the empty one first.
func choices[K ~string](none string, chosen string, labels map[string]string, values ...K) []staff.Choice {
	out := []staff.Choice{{Label: none, Chosen: chosen == ""}}
	for _, value := range values {
		out = append(out, staff.Choice{Value: string(value), Label: said(labels, value), Chosen: string(value) == chosen})
	}
	return out
}

// agencies returns the options of a select of agencies; none for an agency's people, who see one.
func (v *visit) agencies(chosen string) []staff.Choice {
	if !v.Acting.Service() {
		return nil
	}
	out := []staff.Choice{{Label: v.w.AllAgencies, Chosen: chosen == ""}}
	for _, a := range v.o.cfg.Registry.Agencies() {
		if v.Acting.Sees(a.ID) {
			out = append(out, staff.Choice{Value: a.ID, Label: a.Name, Chosen: a.ID == chosen})
		}
	}
	return out
}

// paymentURL is the address of a payment's page.
func (v *visit) paymentURL(sessionID string) string {
	return v.URL(v.root() + "payments/" + sessions.Place(sessionID))
}

// paymentRow returns a row of a list of payments.
func (v *visit) paymentRow(s checkout.Session) []staff.Cell {
	offer := ""
	if s.Collection != nil {
		offer = said(v.w.Offers, s.Collection.OfferID)
	}
	return []staff.Cell{
		{Text: v.At(s.CreatedAt), URL: v.paymentURL(s.ID)},
		{Text: s.OrderID, More: s.Description},
		{Text: v.agency(s.TenantID)},
		{Text: v.sum(s.Amount, s.Currency), Class: staff.ClassSum},
		{Text: said(v.w.Statuses, s.Status), More: offer},
		{Text: grouped(s.PaymentRef), Class: "code"},
	}
}

// grouped is a reference in groups of four digits, between which a narrow column breaks.
func grouped(ref string) string {
	return strings.ReplaceAll(language.GroupReference(ref), "\u00a0", " ")
}

// paymentGrid returns a list of payments.
func (v *visit) paymentGrid(caption string, list []checkout.Session) staff.Grid {
	w := v.w.Payments
	g := staff.Grid{Caption: caption, Heads: []string{w.Made, w.Order, w.Agency, w.Amount, w.Status, w.Reference}}
	for _, s := range list {
		g.Rows = append(g.Rows, v.paymentRow(s))
	}
	return g
}

// caseGrid returns a list of cases.
func (v *visit) caseGrid(caption string, list []cases.Case) staff.Grid {
	w := v.w.Cases
	g := staff.Grid{Caption: caption, Heads: []string{w.Opened, w.Kind, w.Agency, w.Amount, w.State, w.Reference}}
	for _, c := range list {
		g.Rows = append(g.Rows, []staff.Cell{
			{Text: v.At(c.OpenedAt), URL: v.URL(v.root() + "cases/" + c.ID)},
			{Text: said(v.w.Kinds, c.Kind)},
			{Text: v.agency(c.AgencyID), More: c.OrderID},
			{Text: v.sum(c.Amount, c.Currency), Class: staff.ClassSum},
			{Text: v.caseState(&c)},
			{Text: cmp.Or(c.OperatorRef, c.CollectionID, c.Evidence[cases.EvidenceLedger], "–"), Class: "code"},
		})
	}
	return g
}

// caseState says whether a case is open, or how it was closed.
func (v *visit) caseState(c *cases.Case) string {
	if c.Open() {
		return v.w.Open
	}
	how := said(v.w.Resolutions, c.Resolution)
	if cases.ByMatcher(c.Kind) && c.Resolution == cases.ResolutionRefused {
		how = v.w.ProposalStates[string(cases.ProposalRefused)] // the operator has refused nothing
	}
	return fmt.Sprintf(v.w.ClosedAs, how)
}

// destination names where a delivery goes.
type destinations map[string]deliveries.Entry

func (to destinations) name(kind deliveries.Kind, id string) string {
	if e, ok := to[string(kind)+" "+id]; ok {
		return cmp.Or(e.URL, e.Name)
	}
	return id
}

// destinations returns the names of the destinations of deliveries.
func (v *visit) destinations() destinations {
	out := destinations{}
	for _, e := range v.o.cfg.Deliveries.Kinds().Entries(v.o.cfg.Registry.Directory()) {
		out[string(e.Kind)+" "+e.ID] = e
	}
	return out
}

// endpointURL is the address of the page of a destination, or of a step below it.
func (v *visit) endpointURL(kind deliveries.Kind, id string, query ...string) string {
	return v.URL("ops/endpoints/"+string(kind)+"/"+url.PathEscape(id), query...)
}
