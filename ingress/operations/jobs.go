package operations

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quittance/ingress/staff"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/internal/operation"
	"quittance/money/localtime"
)

// Fields of the forms of jobs.
const (
	fieldJob   = "id"
	fieldCount = "count"
	fieldSince = "since" // a day
)

// jobRoutes are the pages of deliveries and jobs, which are the same for the service's people and for an agency's. A lead of the
// service is the second person of both.
func (o *Operations) jobRoutes(root string) []staff.Route {
	see, act := o.routes(root)
	out := []staff.Route{
		see("deliveries", func(v *visit) { v.showDeliveries(http.StatusOK, "") }),
		o.file(root, "deliveries", (*visit).deliveriesFile),
		see("jobs", (*visit).jobs),
		see("jobs/{job}", (*visit).showJob),
		act("jobs", identity.MayRetry, (*visit).prepareJob),
		act("jobs/{job}/start", identity.MayRetry, (*visit).startJob),
		act("jobs/{job}/sign/begin", identity.MayRetry, (*visit).beginJob),
		act("jobs/{job}/sign", identity.MayRetry, (*visit).signJob),
		act("jobs/{job}/stop", identity.MayRetry, (*visit).stopJob),
		act("jobs/{job}/again", identity.MayRetry, (*visit).jobAgain),
	}
	if root == serviceRoot {
		out = append(out, act("jobs/{job}/approve/begin", identity.MayReplay, (*visit).beginJobApproval), act("jobs/{job}/approve", identity.MayReplay, (*visit).approveJob))
	}
	return out
}

// jobsView is the list of jobs.
type jobsView struct {
	view
	Grid                     staff.Grid
	Empty, NextURL, FirstURL string
}

// jobs is GET /ops/jobs.
func (v *visit) jobs() {
	w, path := v.w.Jobs, v.root()+"jobs"
	out := &jobsView{view: v.page(w.Title, path), FirstURL: v.URL(path)}
	out.Command, out.Tagged = staff.Command("quittance jobs list", "agency", v.slug(v.Acting.Person.AgencyID)), true
	list, next, err := v.o.cfg.Jobs.List(v.Context(), v.Acting.Person.AgencyID, v.Acting.Person.ID, v.Query(byAfter), pageSize)
	if err != nil {
		v.Failed("listing jobs", err)
		return
	}
	if next != "" {
		out.NextURL = v.URL(path, byAfter, next)
	}
	out.Grid = staff.Grid{Caption: w.Title, Heads: []string{w.MadeAt, w.What, w.Maker, w.Total, w.Done, w.Refused, w.State}}
	for _, j := range list {
		out.Grid.Rows = append(out.Grid.Rows, []staff.Cell{
			{Text: v.At(j.MadeAt), URL: v.jobURL(j.ID)},
			{Text: said(w.Kinds, j.Kind), More: v.agencyOf(j)},
			{Text: j.Maker.Name},
			{Text: strconv.Itoa(j.Total), Class: staff.ClassSum},
			{Text: strconv.Itoa(j.Done), Class: staff.ClassSum},
			{Text: strconv.Itoa(j.Refused), Class: staff.ClassSum},
			{Text: v.jobState(j)},
		})
	}
	if len(list) == 0 {
		out.Empty = w.None
	}
	v.Write(http.StatusOK, "jobs", out)
}

func (v *visit) jobPath(id string) string { return v.root() + "jobs/" + id }

func (v *visit) jobURL(id string, query ...string) string { return v.URL(v.jobPath(id), query...) }

// agencyOf names the agency of a job; all of them for none.
func (v *visit) agencyOf(j jobs.Job) string {
	if j.AgencyID == "" {
		return v.w.AllAgencies
	}
	return v.agency(j.AgencyID)
}

// jobState says how far a job is.
func (v *visit) jobState(j jobs.Job) string {
	w := v.w.Jobs
	if j.State == jobs.Done {
		return fmt.Sprintf(w.Ended, j.Done, j.Refused)
	}
	if !j.State.Ended() && j.Over(v.Now) {
		return w.Over
	}
	return said(w.States, j.State)
}

// jobView is the record of a job.
type jobView struct {
	view
	Facts                 []staff.Fact
	Why, WhyCode          string
	Rows                  staff.Grid
	NextURL               string
	Start                 *jobForm     // of one person
	Sign, Approve         *staff.Press // of two people
	StopURL, Stop         string       // empty: the person cannot stop it
	AgainURL, Again       string       // empty: nothing is left
	StopCommand, AgainCmd string
	AgainID               string // of the form
	CountHint             string
}

// jobForm starts a job of one person. Count is true when the number is typed.
type jobForm struct {
	URL, Label string
	Count      bool
}

// showJob is GET /ops/jobs/{job}.
func (v *visit) showJob() { v.writeJob(http.StatusOK, nil) }

// writeJob shows the record of a job, and what was refused.
func (v *visit) writeJob(status int, refused error) {
	j, err := v.o.cfg.Jobs.Read(v.Context(), v.Param("job"), v.Acting.Person.AgencyID)
	if err != nil {
		v.Failed("reading a job", err)
		return
	}
	after, _ := strconv.Atoi(v.Query(byAfter)) // the first page for what is no number
	rows, err := v.o.cfg.Jobs.RefusedRows(v.Context(), j.ID, after, pageSize+1)
	if err != nil {
		v.Unavailable("reading the rows of a job", err)
		return
	}
	to := v.destinations()
	w := v.w.Jobs
	out := &jobView{view: v.page(fmt.Sprintf(w.One, said(w.Kinds, j.Kind)), v.jobPath(j.ID)), Facts: v.jobFacts(j, to)}
	out.BackURL, out.BackText = v.URL(v.root()+"jobs"), w.Title
	out.Command, out.Tagged = "quittance jobs show "+j.ID, refused == nil
	if done := v.Query("done"); doneIn(done, j.State) {
		out.Notice = w.DoneTexts[done]
	}
	if why := j.Refusal(); why != nil {
		out.Why, out.WhyCode = v.because(j.Code, why), j.Code
	}
	if len(rows) > pageSize {
		rows = rows[:pageSize]
		out.NextURL = v.jobURL(j.ID, byAfter, strconv.Itoa(rows[pageSize-1].N))
	}
	out.Rows = staff.Grid{Caption: w.Rows, Heads: []string{w.Row, w.Delivery, w.Reason}}
	for _, r := range rows {
		out.Rows.Rows = append(out.Rows.Rows, []staff.Cell{{Text: strconv.Itoa(r.N)}, {Text: r.Subject, Class: "code"}, {Text: v.because(r.Code, r.Refusal()), More: r.Code}})
	}
	v.jobActs(out, j)
	var refusal *operation.Error
	if errors.As(refused, &refusal) {
		out.Fault(refusal.Field, v.Refusal(refused), v.Form.Get(fieldCount))
	}
	v.Write(status, "job", out)
}

// because returns why the service has ended a job, or a row was refused. Whoever reads it is another person than the one whose
// role or account is at fault.
func (v *visit) because(code string, refusal error) string {
	return cmp.Or(v.w.Jobs.Reasons[code], v.Refusal(refusal))
}

// doneIn reports whether what a step has done still is so: a job may have ended since, or before, and an address is kept.
func doneIn(step string, state jobs.State) bool {
	switch step {
	case "started", "approved":
		return state == jobs.Running
	case "proposed":
		return state == jobs.Proposed
	case "stopped":
		return state == jobs.Stopped
	}
	return !state.Ended() // the same is running or waits
}

// jobFacts are what is known of a job.
func (v *visit) jobFacts(j jobs.Job, to destinations) []staff.Fact {
	w, c := v.w.Jobs, j.Conditions
	state := ""
	if c.State != "" {
		state = said(v.w.DeliveryStates, c.State)
	} else if c.Of == "" {
		state = w.AnyOpen
	}
	destination, kind := "", ""
	if c.DestinationID != "" {
		destination = to.name(c.Kind, c.DestinationID)
	}
	if c.Kind != "" {
		kind = said(v.w.DeliveryKinds, c.Kind)
	}
	of := staff.Fact{Label: w.Of, Value: c.Of, Code: true}
	if c.Of != "" {
		of.URL = v.jobURL(c.Of)
	}
	return []staff.Fact{
		{Label: w.State, Value: v.jobState(j)},
		{Label: w.Total, Value: strconv.Itoa(j.Total)},
		{Label: w.Done, Value: strconv.Itoa(j.Done)},
		{Label: w.Refused, Value: strconv.Itoa(j.Refused)},
		{Label: v.w.Endpoints.Kind, Value: kind},
		{Label: w.StateOf, Value: state},
		{Label: w.Agency, Value: v.agencyOf(j)},
		{Label: v.w.Deliveries.To, Value: destination, Code: true},
		{Label: w.Since, Value: v.at(c.Since)},
		{Label: w.Until, Value: v.at(c.Until)},
		{Label: w.EndsAt, Value: v.at(j.EndsAt)},
		of,
		{Label: w.Maker, Value: j.Maker.Name},
		{Label: w.MadeAt, Value: v.At(j.MadeAt)},
		{Label: w.StartedAt, Value: v.at(j.StartedAt)},
		{Label: w.Decider, Value: j.Decider},
		{Label: w.DecidedAt, Value: v.at(j.DecidedAt)},
		{Label: w.StoppedBy, Value: j.StoppedBy},
		{Label: w.FinishedAt, Value: v.at(j.FinishedAt)},
		{Label: v.w.Endpoints.ID, Value: j.ID, Code: true},
	}
}

// jobActs adds what the person may do with a job.
func (v *visit) jobActs(out *jobView, j jobs.Job) {
	w, path := v.w.Jobs, v.jobPath(j.ID)
	may := v.Acting.May(identity.MayRetry, j.AgencyID) == nil
	lead := v.Acting.May(identity.MayReplay, j.AgencyID) == nil
	own := may && j.Maker.Kind == operation.ActorPerson && j.Maker.ID == v.Acting.Person.ID
	open := !j.State.Ended() && !j.Over(v.Now)
	switch {
	case own && open && j.State == jobs.Prepared && j.NeedsTwo():
		out.Sign = v.NewPress(path+"/sign/begin", path+"/sign", w.Propose)
		out.Sign.ID = "sign"
		out.Sign.Inputs = []staff.Input{{Name: fieldCount, Label: w.Count, Hint: fmt.Sprintf(w.CountHint, j.Total), Mode: "numeric", Max: 7, Required: true}}
	case own && open && j.State == jobs.Prepared:
		out.Start = &jobForm{URL: v.URL(path + "/start"), Label: fmt.Sprintf(w.Start, j.Total), Count: j.Total > jobs.TypedAbove}
	case lead && !own && open && j.State == jobs.Proposed:
		out.Approve = v.NewPress(path+"/approve/begin", path+"/approve", w.Approve)
		out.Approve.ID = "approve"
	}

	if (own || lead && may) && !j.State.Ended() {
		out.StopURL, out.Stop, out.StopCommand = v.URL(path+"/stop"), w.Stop, "quittance jobs stop "+j.ID
		if j.State == jobs.Prepared {
			out.Stop = w.Discard
		}
	}
	out.CountHint = fmt.Sprintf(w.CountHint, j.Total)
	if may && j.Again() {
		out.AgainID = uuid.Must(uuid.NewV7()).String()
		out.AgainURL, out.Again, out.AgainCmd = v.URL(path+"/again"), fmt.Sprintf(w.Again, j.Total-j.Done), "quittance jobs retry "+j.ID
	}
}

// prepareJob is POST /ops/jobs: it lists what the conditions of the form choose.
func (v *visit) prepareJob() {
	chosen := fields{}
	for _, name := range deliveryConditions {
		chosen[name] = strings.TrimSpace(v.Form.Get(name))
	}
	filter, err := v.deliveryFilter(chosen)
	if since := strings.TrimSpace(v.Form.Get(fieldSince)); err == nil && since != "" {
		filter.Since, err = localtime.Begin(since)
	}
	if err != nil {
		v.Failed("preparing a job", operation.Refuse(jobs.CodeDayMalformed, byDay, nil))
		return
	}
	to := v.destinations()
	filter.Kind, filter.DestinationID = to.named(filter.Kind, chosen[byEndpoint])
	v.prepare(v.Form.Get(fieldJob), jobs.Conditions{Kind: filter.Kind, DestinationID: filter.DestinationID, AgencyID: filter.TenantID, State: filter.State, Since: filter.Since, Until: filter.Until})
}

// prepare prepares a job and leads to its page; to that of the first one if it is running already.
func (v *visit) prepare(id string, c jobs.Conditions) {
	j, err := v.o.cfg.Jobs.Prepare(v.Context(), jobs.OnPage(v.Acting), id, jobs.KindRetry, c, v.Now)
	if first := sameJob(err); first != "" {
		v.See(v.jobPath(first), "done", "same")
		return
	}
	if err != nil {
		v.Failed("preparing a job", err)
		return
	}
	v.See(v.jobPath(j.ID))
}

// sameJob returns the id of the job that is in the way of another one of the same conditions; empty for other errors.
func sameJob(err error) string {
	var refusal *operation.Error
	if errors.As(err, &refusal) && refusal.Code == jobs.CodeSame {
		id, _ := refusal.Args["id"].(string)
		return id
	}
	return ""
}

// jobAgain is POST /ops/jobs/{job}/again: a job of what another one has left.
func (v *visit) jobAgain() {
	v.prepare(v.Form.Get(fieldJob), jobs.Conditions{Of: v.Param("job")})
}

// startJob is POST /ops/jobs/{job}/start.
func (v *visit) startJob() {
	j, err := v.o.cfg.Jobs.Start(v.Context(), jobs.OnPage(v.Acting), v.Param("job"), v.Form.Get(fieldCount), v.Now)
	v.steppedJob(j, err, "started", "starting a job")
}

// stopJob is POST /ops/jobs/{job}/stop.
func (v *visit) stopJob() {
	j, err := v.o.cfg.Jobs.Stop(v.Context(), jobs.OnPage(v.Acting), v.Param("job"), v.Now)
	v.steppedJob(j, err, "stopped", "stopping a job")
}

// steppedJob leads to a job after a step, or shows it with what was refused.
func (v *visit) steppedJob(j jobs.Job, err error, done, doing string) {
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code != jobs.CodeUnknown:
		v.writeJob(staff.StatusOf(err), err)
	case err != nil:
		v.Failed(doing, err)
	default:
		v.See(v.jobPath(j.ID), "done", done)
	}
}

// proposes and approves are the steps that a passkey signs.
func (v *visit) proposes(form url.Values) func(jobs.By) error {
	return func(by jobs.By) error {
		_, err := v.o.cfg.Jobs.Start(v.Context(), by, v.Param("job"), form.Get(fieldCount), v.Now)
		return err
	}
}

func (v *visit) approves() func(jobs.By) error {
	return func(by jobs.By) error {
		_, err := v.o.cfg.Jobs.Approve(v.Context(), by, v.Param("job"), v.Now)
		return err
	}
}

// beginJob is POST /ops/jobs/{job}/sign/begin.
func (v *visit) beginJob() { v.beginStep(v.proposes(v.Form), "proposed", jobs.Prepared) }

// beginJobApproval is POST /ops/jobs/{job}/approve/begin.
func (v *visit) beginJobApproval() { v.beginStep(v.approves(), "approved", jobs.Proposed) }

// beginStep answers with the options with which the passkey signs a step, or with where to go if the job is past it.
func (v *visit) beginStep(take func(jobs.By) error, done string, from jobs.State) {
	j, err := v.o.cfg.Jobs.Read(v.Context(), v.Param("job"), v.Acting.Person.AgencyID)
	if err == nil && j.State != from && (j.State == jobs.Proposed || j.State == jobs.Running) {
		v.answeredJob(done)
		return
	}
	if err != nil {
		v.answerRefusal(err, "reading a job")
		return
	}
	s, err := jobs.Prepare(jobs.OnPage(v.Acting), take)
	if err != nil {
		v.answerRefusal(err, "preparing a step of a job")
		return
	}
	options, err := v.o.cfg.Approvals.Challenge(v.Context(), v.Acting, s)
	if err != nil {
		v.answerRefusal(err, "preparing a step of a job")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// signJob is POST /ops/jobs/{job}/sign.
func (v *visit) signJob() { v.finishStep(v.proposes, "proposed") }

// approveJob is POST /ops/jobs/{job}/approve.
func (v *visit) approveJob() {
	v.finishStep(func(url.Values) func(jobs.By) error { return v.approves() }, "approved")
}

// finishStep takes a step with the answer of a passkey.
func (v *visit) finishStep(step func(url.Values) func(jobs.By) error, done string) {
	form, answer, err := v.ReadPress()
	if err != nil {
		v.answerRefusal(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	acting, err := v.o.cfg.Approvals.Answered(v.Context(), v.Acting, answer)
	if err == nil {
		err = step(form)(jobs.OnPage(acting))
	}
	if err != nil {
		v.answerRefusal(err, "taking a step of a job")
		return
	}
	v.answeredJob(done)
}

// answeredJob leads the script of a page to the job.
func (v *visit) answeredJob(done string) {
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.jobURL(v.Param("job"), "done", done)})
}

// recovers returns the form that prepares a job of what a destination has not accepted since a day; nil if the person may not.
func (v *visit) recovers(e deliveries.Entry) *againForm {
	if v.Acting.May(identity.MayRetry, "") != nil {
		return nil
	}
	return &againForm{URL: v.URL("ops/jobs"), ID: uuid.Must(uuid.NewV7()).String(), Hidden: map[string]string{byKind: string(e.Kind), byEndpoint: e.ID}, Command: staff.Command("quittance jobs start", "endpoint", e.Name)}
}
