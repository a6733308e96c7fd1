package operations

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quittance/ingress/staff"
	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/money/language"
	"quittance/money/localtime"
)

var importConditions = []string{byState, byDay, byAgency}

// fieldRequest is the id of what a form requests, which names it before it is stored.
const fieldRequest = "request"

// importRoutes are the pages of imports of statements, which are the same for the service's people and for an agency's.
func (o *Operations) importRoutes(root string) []staff.Route {
	see, act := o.routes(root)
	file := see("imports/{import}/files/{request}", (*visit).readFile)
	file.May = identity.MayPropose // as who may request it
	return []staff.Route{
		see("imports", (*visit).imports),
		see("imports/{import}", (*visit).showImport),
		file,
		act("imports/{import}/ask/{what}/begin", identity.MayPropose, (*visit).beginAsk),
		act("imports/{import}/ask/{what}", identity.MayPropose, (*visit).ask),
		act("imports/{import}/dismiss/begin", identity.MayApprove, (*visit).beginDismissal),
		act("imports/{import}/dismiss", identity.MayApprove, (*visit).dismiss),
		act("imports/{import}/reopen", identity.MayDecide, (*visit).reopen),
		act("imports/{import}/{what}/{request}/approve/begin", identity.MayApprove, (*visit).beginImportApproval),
		act("imports/{import}/{what}/{request}/approve", identity.MayApprove, (*visit).approveImport),
		act("imports/{import}/{what}/{request}/reject", identity.MayDecide, (*visit).rejectImport),
	}
}

// importsView is the list of imports.
type importsView struct {
	view
	Grid                     staff.Grid
	States, Agencies         []staff.Choice
	Chosen                   fields
	Empty, NextURL, FirstURL string
	ListPath                 string // of the form with the conditions
	Filtered                 bool
}

// imports is GET /ops/imports.
func (v *visit) imports() {
	chosen := v.conditions(importConditions...)
	w, path := v.w.Imports, v.root()+"imports"
	out := &importsView{view: v.page(w.Title, path, chosen.query(importConditions)...), Chosen: chosen, Filtered: len(chosen) > 0, ListPath: "/" + path}
	out.Command = staff.Command("quittance statements list", "agency", v.slug(chosen[byAgency]))
	out.States = choices(w.AnyState, chosen[byState], w.States, intake.ImportStates()...)
	out.Agencies = v.agencies(chosen[byAgency])
	out.FirstURL = v.URL(path, chosen.query(importConditions)...)
	f := intake.PageFilter{AgencyID: chosen[byAgency], State: intake.Decision(chosen[byState]), After: v.Query(byAfter), Limit: pageSize + 1}
	if day := chosen[byDay]; day != "" {
		begin, err := localtime.Begin(day)
		if err != nil {
			out.Fault(byDay, v.w.Payments.DayMalformed, day)
			v.Write(http.StatusUnprocessableEntity, "imports", out)
			return
		}
		f.From, f.To = begin, begin.AddDate(0, 0, 1)
	}
	list, err := v.o.cfg.Imports.Page(v.Context(), v.Acting.Person, f)
	if err != nil {
		v.Failed("listing imports", err)
		return
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		out.NextURL = v.URL(path, chosen.query(importConditions, byAfter, f.Cursor(v.Acting.Person, list[pageSize-1]))...)
	}
	out.Grid, out.Tagged = staff.Grid{Caption: w.Title, Heads: []string{w.ImportedAt, w.Account, w.Days, w.Lines, w.Net, w.State}}, true
	if v.Acting.Service() {
		out.Grid.Heads = slices.Insert(out.Grid.Heads, 1, w.Agency)
	}
	for _, i := range list {
		out.Grid.Rows = append(out.Grid.Rows, v.importRow(i))
	}
	if len(list) == 0 {
		out.Empty = w.None
		if out.Filtered {
			out.Empty = w.NoneSo
		}
	}
	v.Write(http.StatusOK, "imports", out)
}

// importRow is an import of the list.
func (v *visit) importRow(i intake.Import) []staff.Cell {
	mode := ""
	if !i.Live {
		mode = v.mode(false)
	}
	out := []staff.Cell{{Text: v.At(i.ImportedAt), URL: v.importURL(i.ID)}}
	if v.Acting.Service() {
		out = append(out, staff.Cell{Text: v.agency(i.AgencyID)})
	}
	minor, currency := i.Net()
	return append(
		out,
		staff.Cell{Text: i.Code, More: mode}, staff.Cell{Text: v.days(i.Days())}, staff.Cell{Text: fmt.Sprint(i.Lines), Class: staff.ClassSum},
		staff.Cell{Text: v.sum(minor, currency), Class: staff.ClassSum}, staff.Cell{Text: said(v.w.Imports.States, i.State)},
	)
}

// days says the days of a statement.
func (v *visit) days(first, last string) string {
	day := func(text string) string {
		at, err := localtime.Begin(text)
		if err != nil {
			return cmp.Or(text, "–")
		}
		return language.Day(v.Lang, at)
	}
	if first == last {
		return day(first)
	}
	return day(first) + " – " + day(last)
}

func (v *visit) importPath(id string) string { return v.root() + "imports/" + id }

func (v *visit) importURL(id string, query ...string) string {
	return v.URL(v.importPath(id), query...)
}

// importView is the record of an import.
type importView struct {
	view
	Facts              []staff.Fact
	Warn               string
	Statements, Others staff.Grid
	Requests           []requestView
	Acts               []actView
}

// requestView is a request about an import, with what the person may do.
type requestView struct {
	Title, State, Means string
	Facts               []staff.Fact
	Approve             *staff.Press // nil: the person cannot approve it
	RejectURL, Reject   string       // empty: the person cannot end it
	ReadURL             string       // empty: the person cannot read the file
}

// actView is a form: one that the person's passkey signs, or one that needs none.
type actView struct {
	ID, Title, Text string
	Press           *staff.Press
	URL, Send       string // of a form without a passkey
}

// showImport is GET /ops/imports/{import}.
func (v *visit) showImport() { v.writeImport(http.StatusOK, nil) }

// writeImport shows the record of an import; fault adds what is wrong with the form that takes a dismissal back.
func (v *visit) writeImport(status int, fault func(*web.View)) {
	d, err := v.o.cfg.Imports.Detail(v.Context(), v.Acting.Person, v.Param("import"), v.Now)
	if err != nil {
		v.Failed("reading an import", err)
		return
	}
	if !v.Record("statements.record", d.ID, d.AgencyID, nil) {
		return
	}
	w := v.w.Imports
	out := &importView{view: v.page(fmt.Sprintf(w.One, d.Code), v.importPath(d.ID)), Facts: v.importFacts(d)}
	out.BackURL, out.BackText = v.URL(v.root()+"imports"), w.Title
	out.Test, out.Tagged, out.Command = !d.Live, fault == nil, "quittance statements show "+d.ID
	out.Notice = w.Done[v.Query("done")]
	switch {
	case d.Unsigned:
		out.Warn = w.Unsigned
	case d.Lapsed:
		out.Warn = w.Lapsed
	}
	heads := []string{w.Statement, w.Days, w.Lines, w.Net, w.Opening, w.Closing}
	out.Statements = staff.Grid{Caption: w.Statements, Heads: heads}
	for _, f := range d.Statements {
		out.Statements.Rows = append(out.Statements.Rows, v.factsRow(f, ""))
	}
	out.Others = staff.Grid{Caption: w.Others, Heads: heads}
	for _, o := range d.Others {
		out.Others.Rows = append(out.Others.Rows, v.factsRow(o.Facts, v.importURL(o.ImportID)))
	}
	for _, r := range d.Requests {
		out.Requests = append(out.Requests, v.request(d, r))
	}
	out.Acts = v.importActs(d)
	out.Typed[fieldReason] = v.Form.Get(fieldReason)
	if fault != nil {
		fault(&out.View.View)
	}
	v.Write(status, "import", out)
}

// factsRow is a statement of an import.
func (v *visit) factsRow(f intake.Facts, url string) []staff.Cell {
	name := f.ID
	if f.Page > 1 || !f.Last && f.Page > 0 {
		name = fmt.Sprintf("%s · %d", f.ID, f.Page)
	}
	opening, closing := "–", "–"
	if f.Balanced {
		opening, closing = v.sum(f.Opening, f.Currency), v.sum(f.Closing, f.Currency)
	}
	return []staff.Cell{
		{Text: name, URL: url},
		{Text: v.days(f.From, f.To)},
		{Text: fmt.Sprint(f.Lines), Class: staff.ClassSum},
		{Text: v.sum(f.Net, f.Currency), Class: staff.ClassSum},
		{Text: opening, Class: staff.ClassSum},
		{Text: closing, Class: staff.ClassSum},
	}
}

// importFacts are what is known of an import.
func (v *visit) importFacts(d intake.Detail) []staff.Fact {
	w := v.w.Imports
	why := make([]string, len(d.Faults))
	for i, kind := range d.Faults {
		why[i] = said(w.Faults, kind)
	}
	minor, currency := d.Net()
	kept := w.FileGone
	if d.Kept {
		kept = w.FileKept
	}
	return []staff.Fact{
		{Label: w.State, Value: said(w.States, d.State)},
		{Label: w.Why, Value: strings.Join(why, " ")},
		{Label: w.Agency, Value: v.agency(d.AgencyID)},
		{Label: w.Account, Value: d.Code},
		{Label: v.w.Case.Mode, Value: v.mode(d.Live)},
		{Label: w.Days, Value: v.days(d.Days())},
		{Label: w.Lines, Value: fmt.Sprint(d.Lines)},
		{Label: w.Net, Value: v.sum(minor, currency)},
		{Label: w.Actor, Value: d.Actor},
		{Label: w.ImportedAt, Value: v.At(d.ImportedAt)},
		{Label: w.Profile, Value: d.Profile, Code: true},
		{Label: w.Digest, Value: d.FileDigest, Code: true},
		{Label: w.Size, Value: fmt.Sprintf(w.Bytes, d.Size)},
		{Label: w.File, Value: kept},
		{Label: v.w.Case.ID, Value: d.ID, Code: true},
	}
}

// word is the name of a kind of request, as the tables of words have it.
func word(r intake.Asked) string {
	switch {
	case r.Dismissal:
		return "dismissal"
	case r.Restores:
		return "restoration"
	}
	return string(r.Kind)
}

const acceptedState = intake.Decision("accepted")

// request is a request about an import.
func (v *visit) request(d intake.Detail, r intake.Asked) requestView {
	w := v.w.Imports
	kind := word(r)
	out := requestView{Title: said(w.Requests, kind), State: said(w.RequestStates, r.State)}
	if r.Over(v.Now) {
		out.State = w.Over
	} else {
		out.Means = w.Means[kind+" "+r.State]
	}
	until := ""
	if r.Waits(v.Now) || out.Means != "" && r.State != string(intake.WithdrawalDone) && !r.Dismissal {
		until = v.At(r.Until)
	}
	out.Facts = []staff.Fact{
		{Label: w.RequestedBy, Value: r.RequestedBy},
		{Label: w.RequestedAt, Value: v.at(r.RequestedAt)},
		{Label: v.w.Case.Reason, Value: r.Reason},
		{Label: w.DecidedBy, Value: r.DecidedBy},
		{Label: v.w.Case.DecidedAt, Value: v.at(r.DecidedAt)},
		{Label: w.Until, Value: until},
		{Label: w.Command, Value: v.commandOf(d, r), Code: true},
	}
	path := v.importPath(d.ID) + "/" + string(r.Kind) + "/" + r.ID
	own := r.Requester == v.Acting.Person.ID
	if r.Waits(v.Now) {
		if !own && v.Acting.May(identity.MayApprove, d.AgencyID) == nil {
			out.Approve = v.NewPress(path+"/approve/begin", path+"/approve", v.w.Case.ApproveSend)
			out.Approve.ID, out.Approve.Hidden = "approve-"+r.ID, map[string]string{fieldShown: r.Shown}
		}
		needed := identity.MayApprove
		if own {
			needed = identity.MayPropose
		}
		if r.Kind != intake.KindReading && v.Acting.May(needed, d.AgencyID) == nil {
			if out.RejectURL, out.Reject = v.URL(path+"/reject"), w.Reject; own {
				out.Reject = w.TakeBack
			}
		}
	}
	if r.Kind == intake.KindReading && own && r.Readable && !r.Over(v.Now) {
		out.ReadURL = v.URL(v.importPath(d.ID) + "/files/" + r.ID)
	}
	return out
}

// commandOf is the command that shows a request.
func (v *visit) commandOf(d intake.Detail, r intake.Asked) string {
	of := map[intake.Kind]string{intake.KindRelease: "release", intake.KindWithdrawal: "withdraw", intake.KindReading: "original"}
	if r.Dismissal {
		return "quittance audit list --subject " + d.ID
	}
	return staff.Command("quittance statements "+of[r.Kind]+" list", "agency", v.slug(d.AgencyID))
}

// importActs are the forms with which the person may begin something.
func (v *visit) importActs(d intake.Detail) (out []actView) {
	w := v.w.Imports
	waits := func(kind intake.Kind) bool {
		return slices.ContainsFunc(d.Requests, func(r intake.Asked) bool { return r.Kind == kind && r.Waits(v.Now) })
	}
	agreed := slices.ContainsFunc(d.Requests, func(r intake.Asked) bool {
		return r.State == string(intake.WithdrawalAgreed) && !r.Over(v.Now)
	})
	add := func(name, path, label string, hidden map[string]string) {
		p := v.NewPress(path+"/begin", path, label)
		p.ID, p.Hidden = name, hidden
		p.Inputs = []staff.Input{{Name: fieldReason, Label: v.w.Case.Reason, Hint: v.w.Case.ReasonHint, Max: 500, Required: true}}
		out = append(out, actView{ID: name, Title: w.Acts[name], Text: w.ActTexts[name], Press: p})
	}
	ask := func(name string, kind intake.Kind) {
		if v.Acting.May(identity.MayPropose, d.AgencyID) == nil && !waits(kind) {
			add(name, v.importPath(d.ID)+"/ask/"+string(kind), w.Ask, map[string]string{fieldRequest: uuid.Must(uuid.NewV7()).String()})
		}
	}
	switch {
	case d.Quarantined():
		ask("release", intake.KindRelease)
	case d.State == acceptedState && !agreed:
		ask("withdrawal", intake.KindWithdrawal)
		if d.Earlier {
			ask("restoration", intake.KindRelease)
		}
	}
	if (d.Quarantined() || d.State == intake.Released) && v.Acting.May(identity.MayApprove, d.AgencyID) == nil {
		add("dismissal", v.importPath(d.ID)+"/dismiss", w.Dismiss, map[string]string{fieldRequest: uuid.Must(uuid.NewV7()).String()})
	}
	if d.State == intake.Dismissed && !d.Unsigned && d.Kept && v.Acting.May(identity.MayDecide, d.AgencyID) == nil {
		out = append(out, actView{ID: "reopen", Title: w.Acts["reopen"], Text: w.ActTexts["reopen"], URL: v.URL(v.importPath(d.ID) + "/reopen"), Send: w.Reopen})
	}
	if d.Kept {
		ask("reading", intake.KindReading)
	}
	return out
}

// onImport is the person for the noun of imports.
func (v *visit) onImport(request string) intake.By {
	by := intake.OnPage(v.Acting)
	by.RequestID = request
	return by
}

// answered leads the script of a page to the import.
func (v *visit) answered(id, done string) {
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.importURL(id, "done", done)})
}

// press is a step about an import that a passkey signs: take takes it as a person. done is what the page says then.
type press struct {
	id, done string
	take     func(intake.By) error
}

// begin answers with the options with which the passkey signs a step. shown is the digest that the page has shown; empty for none.
func (v *visit) begin(p press, request, shown string) {
	s, err := intake.Prepare(v.onImport(request), p.take)
	if err == nil && shown != "" && shown != s.Digest {
		err = operation.Refuse("record.changed", "", nil)
	}
	if err != nil {
		v.answerRefusal(err, "preparing a decision about an import")
		return
	}
	options, err := v.o.cfg.Approvals.Challenge(v.Context(), v.Acting, s)
	if err != nil {
		v.answerRefusal(err, "preparing a decision about an import")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// finish takes a step with the answer of a passkey.
func (v *visit) finish(p press, request string, answer []byte) {
	acting, err := v.o.cfg.Approvals.Answered(v.Context(), v.Acting, answer)
	if err == nil {
		by := v.onImport(request)
		by.Acting = acting
		err = p.take(by)
	}
	if err != nil {
		v.answerRefusal(err, "deciding about an import")
		return
	}
	v.answered(p.id, p.done)
}

// importOf reads the import that a form of a page is about. ok is false if the form is answered.
func (v *visit) importOf() (d intake.Detail, ok bool) {
	d, err := v.o.cfg.Imports.Detail(v.Context(), v.Acting.Person, v.Param("import"), v.Now)
	if err != nil {
		v.answerRefusal(err, "reading an import")
	}
	return d, err == nil
}

// repeated answers a form that was sent before: its request is stored as the person's own.
func (v *visit) repeated(d intake.Detail, request, reason, done string) bool {
	again := slices.ContainsFunc(d.Requests, func(r intake.Asked) bool {
		return r.ID == request && r.Requester == v.Acting.Person.ID && r.Reason == reason
	})
	if again {
		v.answered(d.ID, done)
	}
	return again
}

// beginAsk is POST /ops/imports/{import}/ask/{what}/begin.
func (v *visit) beginAsk() { v.beginPress(v.asking, "asked") }

// ask is POST /ops/imports/{import}/ask/{what}, with the form and the answer of a passkey to it.
func (v *visit) ask() { v.pressed(v.asking, "asked") }

func (v *visit) asking(d intake.Detail, reason string) press {
	kind := intake.Kind(v.Param("what"))
	return press{d.ID, "asked", func(by intake.By) error {
		return v.o.cfg.Imports.Ask(v.Context(), by, kind, d.ID, reason, v.Now)
	}}
}

// beginPress answers with the options with which a passkey signs the step of a form with a reason.
func (v *visit) beginPress(of func(intake.Detail, string) press, done string) {
	if d, ok := v.importOf(); ok {
		reason := strings.TrimSpace(v.Form.Get(fieldReason))
		if !v.repeated(d, v.Form.Get(fieldRequest), reason, done) {
			v.begin(of(d, reason), v.Form.Get(fieldRequest), "")
		}
	}
}

// pressed takes the step of a form with a reason.
func (v *visit) pressed(of func(intake.Detail, string) press, done string) {
	d, ok := v.importOf()
	if !ok {
		return
	}
	form, answer, err := v.ReadPress()
	if err != nil {
		v.answerRefusal(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	reason := strings.TrimSpace(form.Get(fieldReason))
	if !v.repeated(d, form.Get(fieldRequest), reason, done) {
		v.finish(of(d, reason), form.Get(fieldRequest), answer)
	}
}

// beginDismissal is POST /ops/imports/{import}/dismiss/begin.
func (v *visit) beginDismissal() { v.beginPress(v.dismissing, "dismissed") }

// dismiss is POST /ops/imports/{import}/dismiss.
func (v *visit) dismiss() { v.pressed(v.dismissing, "dismissed") }

func (v *visit) dismissing(d intake.Detail, reason string) press {
	return press{d.ID, "dismissed", func(by intake.By) error {
		return v.o.cfg.Imports.Dismiss(v.Context(), by, d.ID, reason, v.Now)
	}}
}

// approving is the approval of a request of an import. ok is false if the form is answered.
func (v *visit) approving() (p press, ok bool) {
	d, ok := v.importOf()
	if !ok {
		return p, false
	}
	r, ok := d.Asked(intake.Kind(v.Param("what")), v.Param("request"))
	if !ok {
		v.answerRefusal(operation.Refuse("statement.unknown", "id", nil), "")
		return p, false
	}
	return press{d.ID, "approved", func(by intake.By) error {
		return v.o.cfg.Imports.Approve(v.Context(), by, r.Kind, r.ID, v.Now)
	}}, true
}

// beginImportApproval is POST /ops/imports/{import}/{what}/{request}/approve/begin.
func (v *visit) beginImportApproval() {
	if p, ok := v.approving(); ok {
		v.begin(p, "", cmp.Or(v.Form.Get(fieldShown), "-"))
	}
}

// approveImport is POST /ops/imports/{import}/{what}/{request}/approve, with the answer of a passkey.
func (v *visit) approveImport() {
	p, ok := v.approving()
	if !ok {
		return
	}
	_, answer, err := v.ReadPress()
	if err != nil {
		v.answerRefusal(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	v.finish(p, "", answer)
}

// rejectImport is POST /ops/imports/{import}/{what}/{request}/reject. Whoever made the request takes it back with it.
func (v *visit) rejectImport() {
	d, err := v.o.cfg.Imports.Detail(v.Context(), v.Acting.Person, v.Param("import"), v.Now)
	r, known := d.Asked(intake.Kind(v.Param("what")), v.Param("request"))
	if err == nil && !known {
		err = operation.Refuse("statement.unknown", "id", nil)
	}
	if err == nil {
		err = v.o.cfg.Imports.Reject(v.Context(), v.onImport(""), r.Kind, r.ID, v.Now)
	}
	if err != nil {
		v.Failed("rejecting a request about an import", err)
		return
	}
	v.See(v.importPath(d.ID), "done", "rejected")
}

// reopen is POST /ops/imports/{import}/reopen. It needs no passkey: nothing of a file in quarantine counts.
func (v *visit) reopen() {
	d, err := v.o.cfg.Imports.Detail(v.Context(), v.Acting.Person, v.Param("import"), v.Now)
	if err == nil {
		err = v.o.cfg.Imports.Reopen(v.Context(), v.onImport(""), d.ID, strings.TrimSpace(v.Form.Get(fieldReason)), v.Now)
	}
	var refusal *operation.Error
	switch {
	case err == nil:
		v.See(v.importPath(d.ID), "done", "reopened")
	case errors.As(err, &refusal) && refusal.Field == fieldReason:
		v.writeImport(staff.StatusOf(err), func(out *web.View) { out.Fault(fieldReason, v.Refusal(err), v.Form.Get(fieldReason)) })
	default:
		v.Failed("taking a dismissal back", err)
	}
}

// readFile is GET /ops/imports/{import}/files/{request}: the file, for the person who requested it and whom another one has
// allowed to read it. It is never shown as a page: its names and texts are others'.
func (v *visit) readFile() {
	d, err := v.o.cfg.Imports.Detail(v.Context(), v.Acting.Person, v.Param("import"), v.Now)
	r, known := d.Asked(intake.KindReading, v.Param("request"))
	if err == nil && (!known || r.Requester != v.Acting.Person.ID) {
		err = operation.Refuse("statement.unknown", "id", nil)
	}
	if err != nil {
		v.Failed("reading an import", err)
		return
	}
	to := v.Download("quittance-"+registry.Mode(d.Live)+"-"+d.Code+"-"+d.ID, d.Size)
	switch err := v.o.cfg.Imports.Read(v.Context(), v.onImport(""), r.ID, v.Now, to); {
	case err == nil:
		to.End()
	case to.Begun:
		to.Broken("reading the file of an import", err) // the answer lacks its end, which the browser says
	default:
		v.Failed("reading the file of an import", err)
	}
}
