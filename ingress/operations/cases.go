package operations

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"quittance/casework"
	"quittance/ingress/staff"
	"quittance/ingress/web"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// Conditions of the list of cases, by their names in the address.
const (
	byKind  = "kind"
	byState = "state"
)

var caseConditions = []string{byKind, byState, byMode, byAgency}

// casesView is the list of cases.
type casesView struct {
	view
	Grid                           staff.Grid
	Kinds, States, Modes, Agencies []staff.Choice
	Empty, NextURL, FirstURL       string
	ListPath                       string // of the form with the conditions
	Filtered                       bool
}

// showCases is GET /ops/cases, also with why there is no file of the list.
func (v *visit) showCases(status int, refused string) {
	chosen := v.conditions(caseConditions...)
	w := v.w.Cases
	out := &casesView{view: v.page(w.Title, v.root()+"cases", chosen.query(caseConditions)...), Filtered: len(chosen) > 0, ListPath: "/" + v.root() + "cases"}
	out.Test = chosen[byMode] == testMode
	out.Command = staff.Command("quittance cases list", "kind", chosen[byKind], "state", chosen[byState], "mode", chosen[byMode], "agency", v.slug(chosen[byAgency]))
	out.Kinds = choices(w.AnyKind, chosen[byKind], v.w.Kinds, cases.Catalog().Kinds...)
	out.States = choices(w.AnyState, chosen[byState], v.w.CaseStates, cases.States()...)
	out.Modes = choices(v.w.BothModes, chosen[byMode], map[string]string{liveMode: v.w.Live, testMode: v.w.Test}, liveMode, testMode)
	out.Agencies = v.agencies(chosen[byAgency])
	out.FirstURL = v.URL(v.root()+"cases", chosen.query(caseConditions)...)

	if refused != "" {
		out.Fault("", refused, "")
		v.Write(status, "cases", out)
		return
	}
	f := v.caseFilter(chosen)
	f.After, f.Limit = v.Query(byAfter), pageSize+1
	list, err := v.o.cfg.Cases.List(v.Context(), v.viewer(), f)
	if err != nil {
		v.Failed("listing cases", err)
		return
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		out.NextURL = v.URL(v.root()+"cases", chosen.query(caseConditions, byAfter, f.Cursor(v.viewer(), list[pageSize-1]))...)
	}
	out.Grid, out.Tagged = v.caseGrid(w.Title, list), true
	if len(list) == 0 {
		out.Empty = w.None
		if out.Filtered {
			out.Empty = w.NoneSo
		}
	}
	if len(list) > 0 {
		out.Files = v.Files("", v.root()+"cases/file", chosen.query(caseConditions)...)
	}
	v.Write(status, "cases", out)
}

// caseFilter returns the cases of conditions.
func (v *visit) caseFilter(chosen fields) cases.Filter {
	return cases.Filter{Kind: casework.Kind(chosen[byKind]), State: cases.State(chosen[byState]), Mode: chosen[byMode], AgencyID: chosen[byAgency]}
}

// caseView is the record of a case.
type caseView struct {
	view
	Facts, Evidence []staff.Fact
	Rows            string // command that shows the rows of a break or a proposal of the matcher; empty for other cases
	Proposals       []proposalView
	// Proposal and Approval are the forms that the person's passkey may sign; nil for none.
	Proposal *staff.Press
	Approval *approvalView
	// RejectURL takes the form that the person may send; empty for none.
	RejectURL string
	Waits     string
	Trail     trail
}

// proposalView is a proposal of a case.
type proposalView struct {
	Title, State string
	Facts        []staff.Fact
}

// Fields of the forms about a case.
const (
	fieldResolution = "resolution"
	fieldReference  = "reference"
	fieldReason     = "reason"
	fieldNumber     = "number"
)

// showCase is GET /ops/cases/{case}.
func (v *visit) showCase() { v.writeCase(http.StatusOK, nil) }

// writeCase shows the record of a case; fault adds what is wrong with the form that rejects.
func (v *visit) writeCase(status int, fault func(*web.View)) {
	d, err := v.o.cfg.Cases.Show(v.Context(), v.viewer(), v.Param("case"), v.Now)
	if err != nil {
		v.Failed("reading a case", err)
		return
	}
	if !v.Record("case.read", d.ID, d.AgencyID, nil) {
		return
	}
	w := v.w.Case
	path := v.root() + "cases/" + d.ID
	out := &caseView{view: v.page(fmt.Sprintf(w.Title, said(v.w.Kinds, d.Kind)), path), Facts: v.caseFacts(&d), Evidence: v.evidence(&d)}
	if out.Trail, err = v.trail(d.ID); err != nil {
		v.Unavailable("reading who has looked at a case", err)
		return
	}
	out.BackURL, out.BackText = v.URL(v.root()+"cases"), v.w.Cases.Title
	out.Test, out.Tagged = d.Mode == testMode, fault == nil
	out.Command = "quittance cases show " + d.ID
	out.Notice = w.sayDone(v.Query("done"))
	if d.Kind == cases.KindBreak || d.Kind == cases.KindProposal {
		out.Rows = "quittance chain " + d.ID
	}
	if d.AboutERP() && d.Open() {
		n, err := v.o.cfg.Deliveries.ConfirmationsWaiting(v.Context(), d.AgencyID, d.Mode == liveMode)
		if err != nil {
			v.Failed("counting confirmations", err)
			return
		}
		out.Facts = append(out.Facts, staff.Fact{Label: w.ERPWaits, Value: fmt.Sprint(n)})
	}
	open := v.proposals(out, &d)
	may := v.Acting.May(identity.MayPropose, d.AgencyID) == nil && d.Open()
	switch {
	case open != nil && open.State == cases.ProposalOpen && v.rejects(&d, open) == nil:
		out.RejectURL = v.URL(path + "/reject")
		out.Command = "quittance cases reject " + d.ID + " --reason TEXT"
	case may && open == nil:
		out.Proposal = v.proposing(&d)
		out.Command = "quittance cases propose " + d.ID + " RESOLUTION --reason TEXT"
	}
	if out.Approval, err = v.approval(&d, open); err != nil {
		v.Failed("reading a case", err)
		return
	}
	if out.Approval != nil {
		out.Command = "quittance cases approve " + d.ID
	}
	if open != nil {
		out.Waits = w.WaitsFor
		if open.State == cases.ProposalApproved {
			out.Waits = w.WaitsForCarrier
		}
	}
	out.Typed[fieldReason] = v.Form.Get(fieldReason)
	if fault != nil {
		fault(&out.View.View)
	}
	v.Write(status, "case", out)
}

// proposals adds the proposals to the page, and returns the one that waits for a person or to be carried out.
func (v *visit) proposals(out *caseView, d *cases.Detail) (waits *cases.Proposal) {
	w := v.w.Case
	for i := range d.Proposals {
		p := &d.Proposals[i]
		if p.State == cases.ProposalOpen || p.State == cases.ProposalApproved {
			waits = p
		}
		out.Proposals = append(out.Proposals, proposalView{
			Title: fmt.Sprintf(w.Proposal, p.Number, said(v.w.Resolutions, p.Resolution)), State: said(v.w.ProposalStates, p.State),
			Facts: []staff.Fact{
				{Label: w.Proposer, Value: p.Proposer},
				{Label: w.ProposedAt, Value: v.at(p.ProposedAt)},
				{Label: w.Evidence, Value: p.Reference},
				{Label: w.Reason, Value: p.Reason},
				{Label: w.Decider, Value: p.Decider},
				{Label: w.DecidedAt, Value: v.at(p.DecidedAt)},
				{Label: w.Decision, Value: p.Decision},
				{Label: w.Refusal, Value: v.refusal(p.Refusal)},
			},
		})
	}
	return waits
}

// caseFacts are what any case has.
func (v *visit) caseFacts(d *cases.Detail) []staff.Fact {
	w := v.w.Case
	payment := staff.Fact{Label: w.Payment}
	if d.InSession {
		payment.Value, payment.URL = cmp.Or(d.OrderID, w.Payment), v.paymentURL(d.SessionID)
	}
	owed := ""
	if amount, currency, known := d.Owed(); known {
		owed = v.sum(amount, currency)
	}
	amount := w.Amount
	if d.Kind == cases.KindBreak {
		amount = w.Difference
	}
	mode := ""
	if d.Mode != "" {
		mode = v.mode(d.Mode == liveMode)
	}
	return []staff.Fact{
		{Label: w.State, Value: v.caseState(&d.Case)},
		{Label: amount, Value: v.sum(d.Amount, d.Currency)},
		{Label: w.Owed, Value: owed},
		{Label: w.Agency, Value: v.agency(d.AgencyID)},
		{Label: w.Mode, Value: mode},
		payment,
		{Label: w.Collection, Value: d.CollectionID, Code: true},
		{Label: w.OperatorRef, Value: d.OperatorRef, Code: true},
		{Label: w.OpenedBecause, Value: v.openedBecause(d.Case.Reason)},
		{Label: w.OpenedBy, Value: d.By},
		{Label: w.Clerks, Value: strings.Join(d.Clerks, ", ")},
		{Label: w.Opened, Value: v.at(d.OpenedAt)},
		{Label: w.Closed, Value: v.at(d.ClosedAt)},
		{Label: w.ClosedBy, Value: d.ClosedBy},
		{Label: w.ApprovedBy, Value: d.ApprovedBy()},
		{Label: w.Evidence, Value: d.Case.Reference},
		{Label: w.Refusal, Value: v.refusal(d.EndedReason)},
		{Label: w.ID, Value: d.ID, Code: true},
	}
}

// refusal says why what people agreed on was not carried out, with the code for support; empty for no code.
func (v *visit) refusal(code string) string {
	if text := v.w.Refusals[code]; text != "" {
		return text + " (" + code + ")"
	}
	return code
}

// unshownEvidence is the evidence that a case's page shows elsewhere or not at all.
var unshownEvidence = []string{cases.EvidenceTopic, cases.EvidencePartition, cases.EvidenceOffset, cases.EvidenceOwed, cases.EvidenceOwedCurrency, cases.EvidenceTenant, cases.EvidenceFound}

// evidence is what else is known of a case. The place of a record of Kafka is one line.
func (v *visit) evidence(d *cases.Detail) (out []staff.Fact) {
	e := maps.Clone(d.Case.Evidence)
	if topic := e[cases.EvidenceTopic]; topic != "" {
		out = append(out, staff.Fact{Label: v.w.Case.Record, Value: topic + " · " + e[cases.EvidencePartition] + " · " + e[cases.EvidenceOffset], Code: true})
	}
	for _, name := range unshownEvidence {
		delete(e, name)
	}
	for _, name := range slices.Sorted(maps.Keys(e)) {
		fact := staff.Fact{Label: said(v.w.Evidence, name), Value: e[name], Code: true}
		if word := v.w.Case.Findings[e[name]]; word != "" && (name == cases.EvidenceFindings || name == cases.EvidenceStage) {
			fact.Value, fact.Code = word, false
		}
		out = append(out, fact)
	}
	return out
}

// by is the person for the noun of cases.
func (v *visit) by() cases.By {
	return cases.By{Staff: v.Acting.Person, Origin: v.Acting.Actor.Origin, Signer: v.o.cfg.Signer, Acting: v.Acting}
}

// reject is POST /ops/cases/{case}/reject. Whoever proposed withdraws with it.
func (v *visit) reject() {
	id := v.Param("case")
	d, err := v.o.cfg.Cases.Show(v.Context(), v.viewer(), id, v.Now)
	if err != nil {
		v.Failed("reading a case", err)
		return
	}
	if len(d.Proposals) == 0 || v.Form.Get(fieldNumber) != fmt.Sprint(len(d.Proposals)) {
		v.caseRefused(operation.Refuse("record.changed", "", nil))
		return
	}
	if err := v.rejects(&d, &d.Proposals[len(d.Proposals)-1]); err != nil {
		v.Failed("rejecting a proposal", err)
		return
	}
	if _, err := v.o.cfg.Cases.Reject(v.Context(), v.by(), id, strings.TrimSpace(v.Form.Get(fieldReason)), v.Now); err != nil {
		v.caseRefused(err)
		return
	}
	v.See(v.root()+"cases/"+id, "done", "rejected")
}

// caseRefused shows a case again with why the form that rejects was refused, at its field.
func (v *visit) caseRefused(err error) {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		v.Unavailable("deciding on a case", err)
		return
	}
	field := refusal.Field
	if field != fieldReason {
		field = ""
	}
	v.writeCase(staff.StatusOf(err), func(out *web.View) { out.Fault(field, v.Refusal(err), v.Form.Get(field)) })
}
