package disbursements

import (
	"fmt"
	"net/http"

	"quittance/disbursement"
	"quittance/ingress/staff"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/money/language"
	"quittance/money/localtime"
)

// Conditions of the list, by their names in the address.
const (
	byStatus = "status"
	byHeld   = "held"
	byRef    = "batch_ref"
	byAfter  = "after"
)

// pageSize is how many batches or lines a page has.
const pageSize = 50

// listView is the list of batches.
type listView struct {
	view
	Grid                                staff.Grid
	Modes, Statuses, Holds              []staff.Choice
	Ref                                 string
	Empty, NextURL, FirstURL, PeopleURL string
	ImportURL, ImportText               string // for those who prepare batches
	Filtered                            bool
}

// list is GET /agency/batches.
func (v *visit) list() {
	w := v.w
	q := disbursements.Query{
		Live: v.Query(fieldMode) != modeTest, Status: disbursement.Status(v.Query(byStatus)), BatchRef: v.Query(byRef), Held: v.Query(byHeld) != "",
		Before: v.Query(byAfter), Size: pageSize + 1,
	}
	conditions := []string{fieldMode, disbursement.Mode(q.Live)}
	for _, name := range []string{byStatus, byHeld, byRef} {
		if value := v.Query(name); value != "" {
			conditions = append(conditions, name, value)
		}
	}
	out := &listView{view: v.page(w.Title, rootBatches, conditions...), Ref: q.BatchRef, Filtered: len(conditions) > 2}
	out.Test, out.Tagged, out.Command = !q.Live, true, staff.Command("quittance batches list", "mode", disbursement.Mode(q.Live), "status", string(q.Status), "batch-ref", q.BatchRef)
	if q.Held {
		out.Command += " --held"
	}
	out.Modes = []staff.Choice{{Value: modeLive, Label: w.Live, Chosen: q.Live}, {Value: modeTest, Label: w.Test, Chosen: !q.Live}}
	out.Statuses = []staff.Choice{{Label: w.AnyStatus, Chosen: q.Status == ""}}
	for _, s := range disbursement.Statuses() {
		out.Statuses = append(out.Statuses, staff.Choice{Value: string(s), Label: w.Statuses[string(s)], Chosen: s == q.Status})
	}
	out.Holds = []staff.Choice{{Label: w.HeldOrNot, Chosen: !q.Held}, {Value: "1", Label: w.OnlyHeld, Chosen: q.Held}}
	out.FirstURL, out.PeopleURL = v.URL(rootBatches, conditions...), v.URL(rootPeople, fieldMode, disbursement.Mode(q.Live))
	if v.may(identity.MayPrepareBatches) {
		out.ImportURL, out.ImportText = v.URL(rootImport, fieldMode, disbursement.Mode(q.Live)), importTexts.In(v.Lang).Title
	}

	list, err := v.d.cfg.Batches.List(v.Context(), disbursements.Scope{TenantID: v.agency()}, q)
	if err != nil {
		v.Failed("listing batches", err)
		return
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		out.NextURL = v.URL(rootBatches, append(conditions, byAfter, list[pageSize-1].ID)...)
	}
	out.Grid = staff.Grid{Caption: w.Title, Heads: []string{w.Opened, w.Ref, w.Date, w.Count, w.Sum, w.Status}}
	for _, b := range list {
		status := staff.Cell{Text: w.Statuses[string(b.Status)]}
		if b.Held() {
			status.More = w.Held
		}
		out.Grid.Rows = append(out.Grid.Rows, []staff.Cell{
			{Text: v.At(b.OpenedAt), URL: v.URL(rootBatches + "/" + b.ID)},
			{Text: b.BatchRef, More: fmt.Sprintf(w.Revision, b.Revision)},
			{Text: v.day(b.Date)},
			{Text: v.number(b.Count)},
			{Text: v.sum(b.Sum, b.Currency), Class: staff.ClassSum},
			status,
		})
	}
	switch {
	case len(list) > 0:
	case out.Filtered || q.Before != "":
		out.Empty = w.NoneSo
	default:
		out.Empty = w.None
	}
	v.Write(http.StatusOK, "batches", out)
}

// day returns a local day as people read it.
func (v *visit) day(day string) string {
	at, err := localtime.Begin(day)
	if err != nil {
		return day
	}
	return language.Day(v.Lang, at)
}
