package citizen

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"quittance/checkout"
	"quittance/ingress/web"
	"quittance/internal/erp"
	"quittance/money"
	"quittance/money/language"
)

// groupView is what is owed at one agency.
type groupView struct {
	ID, Agency string
	// Unavailable are the references about which the agency's ERP does not answer.
	Unavailable []string
	Dues        []dueView
	Refused     []refusedView
	// Choice is true when a due can be put into a cart.
	Choice bool
	// Totals are what is left to pay of several dues, one for each currency.
	Totals []string
}

// dueView is one due of a list.
type dueView struct {
	// Value identifies the due in forms, with the outstanding amount that is shown.
	Value                             string
	ID, Label, Subject, Service, Date string
	Outstanding, Original, Least      string
	// Shown is the amount that the page shows, Before the words before it.
	Before, Shown      string
	Overdue, Choosable bool
	State              string // in words; empty for a due that can be paid
	PayURL             string // of the account's own open payment
}

type refusedView struct{ Label, Subject, Reasons string }

// chosen is a due as a form names it.
type chosen struct {
	Tenant      string `json:"t"`
	Subject     string `json:"s"`
	Ref         string `json:"r"`
	Outstanding int64  `json:"o"`
	Currency    string `json:"c"`
}

func (c chosen) String() string {
	text, _ := json.Marshal(c) // strings and a number
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseChosen reads a due of a form. It proves nothing: the operations check every field.
func parseChosen(value string) (c chosen, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return chosen{}, false
	}
	_, known := money.Lookup(c.Currency)
	return c, known && c.Ref != ""
}

func chosenOf(d Due) chosen {
	return chosen{Tenant: d.Link.Agency.ID, Subject: d.Link.SubjectRef, Ref: d.Ref, Outstanding: d.Outstanding, Currency: d.Currency}
}

// showDues is GET /portal.
func (v visit) showDues() {
	list, err := v.p.service.Dues(v.R.Context(), v.who, DuesRequest{Shown: v.p.service.ShownToPerson(v.R)})
	if err != nil {
		v.unavailable("reading dues", err)
		return
	}
	out := v.view(v.w.DuesTitle, "dues", "")
	out.NoLinks = len(list.Sources) == 0
	v.offerPasskey(out)
	groups := map[string]int{}
	group := func(l Link) *groupView {
		i, ok := groups[l.Agency.ID]
		if !ok {
			i = len(out.Groups)
			groups[l.Agency.ID] = i
			out.Groups = append(out.Groups, groupView{ID: l.Agency.ID, Agency: l.Agency.Name})
		}
		return &out.Groups[i]
	}
	for _, s := range list.Sources {
		g := group(s.Link)
		if s.Status != erp.SourceOK {
			g.Unavailable = append(g.Unavailable, v.unavailableSource(s))
		}
	}
	for _, d := range list.Dues {
		g := group(d.Link)
		row := v.dueView(d)
		g.Choice = g.Choice || row.Choosable
		g.Dues = append(g.Dues, row)
	}
	for i, g := range out.Groups {
		out.Groups[i].Totals = v.totals(list.Dues, g.ID)
	}
	for _, r := range list.Refused {
		g := group(r.Link)
		g.Refused = append(g.Refused, v.refusedDue(r))
	}
	v.Write(200, "dues", out)
}

// totals returns what is left to pay at an agency, one total for each currency of which there is
// more than one due.
func (v visit) totals(dues []Due, agencyID string) (out []string) {
	sums, counts := map[string]int64{}, map[string]int{}
	var currencies []string
	for _, d := range dues {
		if d.Link.Agency.ID != agencyID || d.State != Payable && d.State != InPayment {
			continue
		}
		if counts[d.Currency]++; counts[d.Currency] == 2 {
			currencies = append(currencies, d.Currency)
		}
		sums[d.Currency] += d.Outstanding
	}
	for _, currency := range currencies {
		out = append(out, v.format(currency, sums[currency]))
	}
	return out
}

// unavailableSource says that an ERP does not tell what a reference owes, and when it last did.
func (v visit) unavailableSource(s Source) string {
	if s.AsOf.IsZero() {
		return v.w.Say(v.w.SourceNever, s.Link.SubjectRef)
	}
	return v.w.Say(v.w.SourceAway, s.Link.SubjectRef, language.Date(v.Lang, s.AsOf))
}

func (v visit) refusedDue(r RefusedDue) refusedView {
	var reasons []string
	for _, f := range r.Faults {
		if reason := v.w.refusedWhy(f); !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	label := r.Label
	if label == "" {
		label = v.w.Unnamed
	}
	return refusedView{Label: label, Subject: r.Link.SubjectRef, Reasons: v.w.Say(v.w.RefusedWhy, strings.Join(reasons, ", "))}
}

func (v visit) dueView(d Due) dueView {
	out := dueView{
		Value: chosenOf(d).String(), Label: d.Label, Subject: d.Link.SubjectRef,
		Outstanding: v.format(d.Currency, d.Outstanding), Overdue: d.Overdue,
	}
	if d.Service.Label != d.Label {
		out.Service = d.Service.Label
	}
	switch added := d.Added(); {
	case added > 0:
		out.Original = v.w.Say(v.w.Added, v.format(d.Currency, added))
	case d.Original != d.Outstanding:
		out.Original = v.w.Say(v.w.Original, v.format(d.Currency, d.Original))
	}
	if d.AllowPartial && d.Minimum < d.Outstanding {
		out.Least = v.format(d.Currency, d.Minimum)
	}
	out.Before, out.Shown = v.w.Owed, out.Outstanding
	if !d.DueDate.IsZero() {
		out.Date = language.Day(v.Lang, d.DueDate)
	}
	switch d.State {
	case Payable:
		out.Choosable = !d.Untaken
		if d.Untaken {
			out.State = v.w.Say(v.w.Untaken, d.Currency)
		}
	case InPayment:
		out.State = v.w.InPayment
		if d.Own != nil {
			out.PayURL = v.p.service.CheckoutURL(*d.Own)
		}
		out.Choosable = d.Own != nil && d.Replaceable
	case Recording:
		out.State = v.w.Recording
		out.Before, out.Original, out.Date, out.Least = v.w.StillStated, "", "", ""
	case Paid:
		out.State = v.w.Paid
		out.Before, out.Shown = v.w.OriginalAmount, v.format(d.Currency, d.Original)
		out.Original, out.Date, out.Least = "", "", ""
	}
	return out
}

// Name tells the due from others of its service.
func (d dueView) Name() string {
	if d.Service == "" {
		return d.Label
	}
	return d.Label + ", " + d.Service
}

// paymentView is a payment in the history.
type paymentView struct {
	Agency, Date, Amount, URL, Ref string
	Reversed                       bool
	Items                          []paidView
	// Fee is empty where there is none.
	Fee string
}

// paidView is a due that was paid. Receipt is the address of its receipt.
type paidView struct{ Label, Amount, State, Receipt string }

// showPayments is GET /portal/payments.
func (v visit) showPayments() {
	number := pageNumber(v.R.URL.Query().Get(queryPage))
	payments, total, err := v.p.service.Payments(v.R.Context(), v.who, number, PaymentsPageSize)
	if err != nil {
		v.unavailable("reading payments", err)
		return
	}
	out := v.view(v.w.PaymentsTitle, "payments", "payments")
	for _, p := range payments {
		paid := p.Amount
		if p.Collection != nil {
			paid = p.Collection.Amount
		}
		row := paymentView{
			Agency: p.Agency.Name, Date: language.Date(v.Lang, p.PaidAt()), Amount: v.format(p.Currency, paid),
			URL: v.p.service.CheckoutURL(p.Session) + "?lang=" + string(v.Lang), Ref: language.GroupReference(p.PaymentRef), Reversed: !p.ReversedAt.IsZero(),
		}
		if p.Collection != nil && p.Collection.Fee > 0 {
			row.Fee = v.format(p.Currency, p.Collection.Fee)
		}
		for _, item := range p.Dues() {
			state := v.w.Recording
			if RecordingOf(item) == Recorded {
				state = v.w.Recorded
			}
			if !p.Returned(item).IsZero() {
				state = v.w.Reversed
			}
			row.Items = append(row.Items, paidView{
				Label: itemLabel(item), Amount: v.format(p.Currency, item.Amount), State: state,
				Receipt: v.p.service.CheckoutURL(p.Session) + "/receipt?" + url.Values{web.FieldLanguage: {string(v.Lang)}, "due": {item.TransactionID}}.Encode(),
			})
		}
		out.Payments = append(out.Payments, row)
	}
	if number > 1 {
		out.Later = v.URL("payments", queryPage, itoa(number-1))
	}
	if int64(number)*PaymentsPageSize < total {
		out.Earlier = v.URL("payments", queryPage, itoa(number+1))
	}
	v.Write(200, "payments", out)
}

func itemLabel(item checkout.Item) string {
	if item.ServiceLabel != "" && item.ServiceLabel != item.Label {
		return item.Label + ", " + item.ServiceLabel
	}
	return item.Label
}
