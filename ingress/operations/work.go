package operations

import (
	"fmt"
	"net/http"

	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/jobs"
	"quittance/internal/sessions"
)

// workView is what waits for the person.
type workView struct {
	view
	Mine, Own           staff.Grid
	MineEmpty, OwnEmpty string
	// OfOthers and OwnOfOthers are those of other parts, without empty ones.
	OfOthers, OwnOfOthers []staff.Grid
}

// work is GET /work.
func (v *visit) work() {
	w := v.w.Work
	out := &workView{view: v.page(w.Title, "work")}
	out.Tagged, out.Command = true, "quittance cases list --state open"
	waiting, err := v.o.cfg.Cases.AwaitingApproval(v.Context(), v.Now)
	if err != nil {
		v.Unavailable("reading what waits for approval", err)
		return
	}
	heads := []string{w.Since, w.What, w.Agency, w.Mode}
	out.Mine, out.Own = staff.Grid{Caption: w.Decide, Heads: heads}, staff.Grid{Caption: w.Proposed, Heads: heads}
	out.MineEmpty, out.OwnEmpty = w.NothingToDecide, w.NothingProposed
	for _, a := range waiting {
		if !v.Acting.Sees(a.AgencyID) {
			continue
		}
		row := v.awaitingRow(a)
		if a.ProposedBy == v.Acting.Person.ID {
			out.Own.Rows = append(out.Own.Rows, row)
		} else if v.Acting.May(identity.MayApprove, a.AgencyID) == nil && a.MayApprove(v.Acting.Person) {
			out.Mine.Rows = append(out.Mine.Rows, row)
		}
	}
	requests, err := v.o.cfg.Imports.Waiting(v.Context(), v.Acting.Person, v.Now)
	if err != nil {
		v.Unavailable("reading what waits about imports", err)
		return
	}
	for _, r := range requests {
		if r.Requester == v.Acting.Person.ID {
			out.Own.Rows = append(out.Own.Rows, v.askedRow(r))
		} else if v.Acting.May(identity.MayApprove, r.AgencyID) == nil {
			out.Mine.Rows = append(out.Mine.Rows, v.askedRow(r))
		}
	}
	bulk, err := v.o.cfg.Jobs.Waiting(v.Context(), v.Now)
	if err != nil {
		v.Unavailable("reading jobs that wait", err)
		return
	}
	for _, j := range bulk {
		if j.Maker.ID == v.Acting.Person.ID {
			out.Own.Rows = append(out.Own.Rows, v.askedJob(j))
		} else if v.Acting.May(identity.MayReplay, j.AgencyID) == nil {
			out.Mine.Rows = append(out.Mine.Rows, v.askedJob(j))
		}
	}
	for _, waits := range v.o.cfg.Waits {
		mine, own, err := waits(v.Context(), v.Visit)
		if err != nil {
			v.Unavailable("reading what waits in another part", err)
			return
		}
		if len(mine.Rows) > 0 {
			out.OfOthers = append(out.OfOthers, mine)
		}
		if len(own.Rows) > 0 {
			out.OwnOfOthers = append(out.OwnOfOthers, own)
		}
	}
	v.Write(http.StatusOK, "work", out)
}

// awaitingRow is a proposal that waits.
func (v *visit) awaitingRow(a cases.Awaiting) []staff.Cell {
	first := staff.Cell{Text: v.At(a.ProposedAt), More: a.CaseID}
	if v.Acting.May(identity.MaySeePayments, a.AgencyID) == nil {
		first.URL = v.URL(v.root() + "cases/" + a.CaseID)
	}
	mode := "–"
	if a.Mode != "" {
		mode = v.mode(a.Mode == liveMode)
	}
	return []staff.Cell{first, {Text: said(v.w.Kinds, a.Kind)}, {Text: v.agency(a.AgencyID)}, {Text: mode}}
}

// askedRow is a request about an import that waits.
func (v *visit) askedRow(r intake.Asked) []staff.Cell {
	first := staff.Cell{Text: v.At(r.RequestedAt), More: r.Code}
	if v.Acting.May(identity.MaySeePayments, r.AgencyID) == nil {
		first.URL = v.importURL(r.ImportID)
	}
	return []staff.Cell{first, {Text: said(v.w.Imports.Requests, word(r))}, {Text: v.agency(r.AgencyID)}, {Text: v.mode(r.Live)}}
}

// askedJob is a job that waits for a second person.
func (v *visit) askedJob(j jobs.Job) []staff.Cell {
	return []staff.Cell{{Text: v.At(j.StartedAt), More: j.Maker.Name, URL: v.jobURL(j.ID)}, {Text: fmt.Sprintf("%s (%d)", said(v.w.Jobs.Kinds, j.Kind), j.Total)}, {Text: v.agencyOf(j)}, {Text: "–"}}
}

// stuckView is what nobody gets on with.
type stuckView struct {
	view
	Undecided, Parked                            staff.Grid
	UndecidedEmpty, ParkedEmpty, Approved, Intro string
	Modes                                        []staff.Choice
}

// stuck is GET /ops/stuck.
func (v *visit) stuck() {
	live := v.Query(byMode) != testMode
	w := v.w.Stuck
	out := &stuckView{view: v.page(w.Title, "ops/stuck", byMode, modeOf(live)), Intro: w.Intro, UndecidedEmpty: w.NothingUndecided, ParkedEmpty: w.NothingParked}
	out.Test, out.Tagged = !live, true
	out.Modes = []staff.Choice{{Value: liveMode, Label: v.w.Live, Chosen: live}, {Value: testMode, Label: v.w.Test, Chosen: !live}}
	out.Command = "quittance deliveries list --state " + deliveries.StateNeedsOperator
	agencies, applications := v.scope("")
	undecided, err := v.o.cfg.Sessions.Page(v.Context(), sessions.PageQuery{TenantIDs: agencies, ApplicationIDs: applications, Live: live, UndecidedBefore: v.Now.Add(-undecidedAfter), Size: pageSize})
	if err != nil {
		v.Failed("listing undecided payments", err)
		return
	}
	parked, err := v.o.cfg.Deliveries.List(v.Context(), deliveries.Filter{State: deliveries.StateNeedsOperator, Limit: pageSize})
	if err != nil {
		v.Failed("listing deliveries", err)
		return
	}
	n, oldest, err := v.o.cfg.Cases.CountApproved(v.Context())
	if err != nil {
		v.Failed("counting approved proposals", err)
		return
	}
	out.Undecided, out.Parked = v.paymentGrid(w.Undecided, undecided.Items), v.deliveryGrid(w.Parked, parked)
	out.Approved = w.NothingApproved
	if n > 0 {
		out.Approved = fmt.Sprintf(w.Approved, n, v.At(oldest))
	}
	v.Write(http.StatusOK, "stuck", out)
}
