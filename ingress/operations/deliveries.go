package operations

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/money/localtime"
)

// byEndpoint is a condition of the list of deliveries, by its name in the address.
const byEndpoint = "endpoint"

var deliveryConditions = []string{byKind, byState, byAgency, byEndpoint, byDay}

// deliveriesView is the list of deliveries.
type deliveriesView struct {
	view
	Grid                     staff.Grid
	Chosen                   fields
	Kinds, States, Agencies  []staff.Choice
	Empty, NextURL, FirstURL string
	ListPath                 string // of the form with the conditions
	Filtered                 bool
	// Again is the form that prepares a job of all that match; nil if the person may not, or if none of it is sent again.
	Again *againForm
}

// againForm is the form that prepares a job. Hidden are its conditions.
type againForm struct {
	URL, ID, Command string
	Hidden           map[string]string
}

// showDeliveries is GET /ops/deliveries, also with why there is no file of the list.
func (v *visit) showDeliveries(status int, refused string) {
	chosen := v.conditions(deliveryConditions...)
	w, path := v.w.Deliveries, v.root()+"deliveries"
	out := &deliveriesView{view: v.page(w.Title, path, chosen.query(deliveryConditions)...), Chosen: chosen, Filtered: len(chosen) > 0, ListPath: "/" + path}
	out.Kinds = choices(w.AnyKind, chosen[byKind], v.w.DeliveryKinds, v.o.cfg.Deliveries.Kinds().Names(nil)...)
	out.States = choices(w.AnyState, chosen[byState], v.w.DeliveryStates, deliveries.States...)
	out.Agencies = v.agencies(chosen[byAgency])
	out.FirstURL = v.URL(path, chosen.query(deliveryConditions)...)
	filter, err := v.deliveryFilter(chosen)
	if err != nil {
		out.Fault(byDay, v.w.Payments.DayMalformed, chosen[byDay])
		v.Write(http.StatusUnprocessableEntity, "deliveries", out)
		return
	}
	out.Command = v.deliveryCommand("quittance deliveries list", chosen, filter)
	if refused != "" {
		out.Fault("", refused, "")
		v.Write(status, "deliveries", out)
		return
	}
	to := v.destinations()
	filter.Kind, filter.DestinationID = to.named(filter.Kind, chosen[byEndpoint])
	list, next, err := v.o.cfg.Deliveries.Page(v.Context(), filter, v.Query(byAfter))
	if err != nil {
		v.Failed("listing deliveries", err)
		return
	}
	if next != "" {
		out.NextURL = v.URL(path, chosen.query(deliveryConditions, byAfter, next)...)
	}
	out.Grid, out.Tagged = v.deliveryList(list, to), true
	if len(list) == 0 {
		out.Empty = w.None
		if out.Filtered {
			out.Empty = w.NoneSo
		}
	}
	sendable := filter.State == "" || slices.Contains(deliveries.Retryable, filter.State)
	if len(list) > 0 && sendable && v.Acting.May(identity.MayRetry, "") == nil {
		out.Again = &againForm{URL: v.URL(v.root() + "jobs"), ID: uuid.Must(uuid.NewV7()).String(), Hidden: chosen, Command: v.deliveryCommand("quittance jobs start", chosen, filter)}
	}
	if len(list) > 0 {
		out.Files = v.Files("", v.root()+"deliveries/file", chosen.query(deliveryConditions)...)
	}
	v.Write(status, "deliveries", out)
}

// deliveryFilter returns the deliveries of conditions, in the person's scope, without the destination. The error says that the
// day is none.
func (v *visit) deliveryFilter(chosen fields) (deliveries.Filter, error) {
	f := deliveries.Filter{Kind: deliveries.Kind(chosen[byKind]), State: chosen[byState], TenantID: chosen[byAgency], Limit: pageSize}
	if !v.Acting.Service() {
		f.TenantID = v.Acting.Person.AgencyID
	}
	if day := chosen[byDay]; day != "" {
		begin, err := localtime.Begin(day)
		if err != nil {
			return f, err
		}
		f.Since, f.Until = begin, begin.AddDate(0, 0, 1)
	}
	return f, nil
}

// deliveryCommand returns a command with the conditions of a list of deliveries.
func (v *visit) deliveryCommand(text string, chosen fields, f deliveries.Filter) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	return staff.Command(text, "kind", chosen[byKind], "state", chosen[byState], "agency", v.slug(f.TenantID), "endpoint", chosen[byEndpoint], "since", at(f.Since), "until", at(f.Until))
}

// named returns the kind and the id of the destination that somebody has typed. An unknown one has no deliveries.
func (to destinations) named(kind deliveries.Kind, text string) (deliveries.Kind, string) {
	for _, e := range to {
		if text != "" && (e.Name == text || e.ID == strings.ToLower(text)) && (kind == "" || kind == e.Kind) {
			return e.Kind, e.ID
		}
	}
	return kind, text
}

// deliveryList returns a list of deliveries with their destinations and agencies.
func (v *visit) deliveryList(list []deliveries.Delivery, to destinations) staff.Grid {
	w := v.w.Endpoints
	g := staff.Grid{Caption: v.w.Deliveries.Title, Heads: []string{w.Occurred, w.Event, v.w.Deliveries.To, w.State, w.Calls, w.LastAnswer}}
	if v.Acting.Service() {
		g.Heads = slices.Insert(g.Heads, 1, v.w.Imports.Agency)
	}
	for _, d := range list {
		first := staff.Cell{Text: v.At(d.OccurredAt)}
		if strings.HasPrefix(d.SessionID, checkout.PrefixSession) { // not a batch
			first.URL = v.paymentURL(d.SessionID)
		}
		if !d.Live {
			first.More = v.mode(false)
		}
		row := []staff.Cell{
			first, {Text: d.Event, Class: "code", More: said(v.w.DeliveryKinds, d.Kind)}, {Text: to.name(d.Kind, d.DestinationID), Class: "code"}, {Text: said(v.w.DeliveryStates, d.State)}, {Text: strconv.Itoa(d.Attempts)}, {Text: dash(v.answer(d))},
		}
		if v.Acting.Service() {
			row = slices.Insert(row, 1, staff.Cell{Text: v.agency(d.TenantID)})
			if e, ok := to[string(d.Kind)+" "+d.DestinationID]; ok {
				row[3].URL = v.endpointURL(e.Kind, e.ID)
			}
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
