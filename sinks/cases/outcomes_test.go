package cases_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/registries"
)

// Refusals of the processor and of the matcher after an approval. CodeOK is that it was carried out,
// unknown that there is no answer.
const unknown checkout.Code = "unknown"

var (
	byProcessor = []checkout.Code{
		checkout.CodeOK, checkout.CodeSessionNotFound, checkout.CodeCaseNotFound, checkout.CodeCaseClosed, checkout.CodeCaseNotAllowed, checkout.CodeInFlight, checkout.CodeDueInPayment,
		checkout.CodeDueReturned, checkout.CodeOrderPaid, unknown,
	}
	ofFindings = []checkout.Code{checkout.CodeOK, cases.RefusalChanged, cases.RefusalEnded, unknown}
	ofCloses   = []checkout.Code{
		checkout.CodeOK, "period.changed", "period.closed", "period.day_malformed", "period.not_over", "period.not_matched", "period.quarantined", "period.import_pending",
		"period.statement_missing", "period.rebuild_needed", unknown,
	}
)

// outcome is a case, what people agree on in it, and how that ends.
type outcome struct {
	id         string
	kind       casework.Kind
	resolution casework.Resolution
	answer     checkout.Code
}

// A close that the matcher refused after its approval was shown, and audited, as carried out by whoever
// had approved it. Each resolution of each kind of case ends in each way, and its proposal, its case, the
// audit table and the events say the same: done, refused and why, or not known yet.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &book{world: w, answers: map[string]checkout.Code{}}
	w.runs(t, b)
	var all []outcome
	for _, kind := range cases.Catalog().Kinds {
		answers := byProcessor
		switch {
		case kind == cases.KindPoison:
			continue // the sink itself carries it out: TestPoisonAndLostReports
		case kind == cases.KindClose:
			answers = ofCloses
		case cases.ByMatcher(kind):
			answers = ofFindings
		}
		for _, r := range cases.Catalog().Allowed(kind) {
			for _, answer := range answers {
				all = append(all, b.opened(t, outcome{fmt.Sprint("case_", len(all)), kind, r, answer}))
			}
		}
	}
	for _, o := range all {
		b.agreed(t, o)
		if cases.ByMatcher(o.kind) && o.answer != unknown {
			b.matched(t, o)
		}
	}
	for _, o := range all {
		b.ends(t, o)
	}
}

// book answers as the processor and the matcher do.
type book struct {
	*world
	mu      sync.Mutex
	answers map[string]checkout.Code // by case, of the processor
}

// Ask answers a resolution as its case has it. What is carried out closes the case.
func (b *book) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	do, resolves := cmd.Do.(checkout.Resolve)
	if !resolves {
		return checkout.Answer{Code: checkout.CodeOK}, nil
	}
	b.mu.Lock()
	code := b.answers[do.CaseID]
	b.mu.Unlock()
	if code == unknown {
		return checkout.Answer{}, errors.New("the processor is away")
	}
	if code == checkout.CodeOK {
		c := casework.Case{ID: do.CaseID, Kind: checkout.CaseOrphan, OpenedAt: registries.Epoch, Resolution: do.Resolution, Reference: do.Reference, ClosedBy: do.By, ClosedAt: b.Now()}
		return checkout.Answer{Code: code}, b.event(2, c)
	}
	return checkout.Answer{Code: code}, nil
}

// event writes an event of a session that has the case.
func (b *book) event(sequence int64, c casework.Case) error {
	id := "chs_" + c.ID
	e := checkout.Event{
		ID: fmt.Sprint("evt_", c.ID, sequence), Type: checkout.EventCaseOpened, SessionID: id, Sequence: sequence, OccurredAt: b.Now(),
		Session: checkout.Session{
			ID: id, TenantID: registries.AgencyA, ApplicationID: registries.AppA, OrderID: c.ID, Status: checkout.StatusFailed, Mode: checkout.ModeHosted, Amount: 100, Currency: "XAF",
			Cases: []checkout.Case{{Case: c, Expected: 100}},
		},
	}
	value, err := b.codec.Encode(mapping.FromEvent(e))
	if err == nil {
		err = b.client.ProduceSync(context.Background(), &kgo.Record{Topic: b.topology.Name(schemas.TopicEvents), Value: value}).FirstErr()
	}
	return err
}

// opened opens the case.
func (b *book) opened(t *testing.T, o outcome) outcome {
	t.Helper()
	switch {
	case o.kind == cases.KindClose: // agreed
	case cases.ByMatcher(o.kind):
		f := b.record(o)
		f.State, f.Kind, f.Reason = journal.FindingOpen, "bundle_differs", "r"
		f.Sources, f.Lines = []string{"2026-11-20/" + o.id}, []string{"2026-11-20/" + o.id + "#1"}
		b.finding(t, f)
	default:
		b.mu.Lock()
		b.answers[o.id] = o.answer
		b.mu.Unlock()
		if err := b.event(1, casework.Case{ID: o.id, Kind: o.kind, Amount: 100, Currency: "XAF", OpenedAt: registries.Epoch}); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (b *book) record(o outcome) record.Finding {
	f := record.Finding{FindingID: "brk_" + o.id, CaseID: o.id, Type: journal.FindingBreak}
	if o.kind == cases.KindProposal {
		f.Type = journal.FindingProposal
	}
	return f
}

// agreed has two people agree. The case of a close has its id since it was proposed.
func (b *book) agreed(t *testing.T, o outcome) {
	t.Helper()
	if o.kind != cases.KindClose {
		reference := "ref"
		if o.resolution == cases.ResolutionMatchByHand {
			reference = "" // the break has both sides
		}
		b.propose(t, b.one, o.id, o.resolution, reference)
		b.approve(t, b.two, o.id, 1)
		return
	}
	d, err := b.store.OpenClose(t.Context(), b.one, cases.CloseRequest{AgencyID: registries.AgencyA, Account: o.id, From: "2026-11-01", To: "2026-11-02", Digest: o.id, Reason: "r"}, b.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.answers[o.id] = checkout.Code(d.ID)
	b.approve(t, b.two, d.ID, 1)
}

// caseID returns the id of the case.
func (b *book) caseID(o outcome) string {
	if o.kind == cases.KindClose {
		return string(b.answers[o.id])
	}
	return o.id
}

// matched writes the matcher's answer.
func (b *book) matched(t *testing.T, o outcome) {
	t.Helper()
	if o.kind != cases.KindClose {
		f := b.record(o)
		f.State = journal.FindingCleared // RefusalEnded
		if o.answer == checkout.CodeOK {
			f.State, f.Resolution = journal.FindingResolved, string(o.resolution)
		}
		if o.answer == cases.RefusalChanged {
			f.Resolution = string(cases.ResolutionRefused)
		}
		b.finding(t, f)
		return
	}
	c := record.Close{
		CloseID: "cls_" + o.id, TenantID: registries.AgencyA, Account: o.id, FromDay: "2026-11-01", ToDay: "2026-11-02", CaseID: b.caseID(o), Digest: o.id, Currency: "XAF", Rule: 1,
		State: journal.CloseClosed, At: b.Now(), Watermarks: map[string]string{},
	}
	if o.answer != checkout.CodeOK {
		c.State, c.Reason = journal.CloseRefused, string(o.answer)
	}
	value, err := b.codec.Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topology.Name(schemas.TopicReconciliation), Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the outcome, and checks that proposal, case, audit table and events agree.
func (b *book) ends(t *testing.T, o outcome) {
	t.Helper()
	id := b.caseID(o)
	want, refusal, audited, open := cases.ProposalRefused, string(o.answer), "case.refused", !cases.ByMatcher(o.kind)
	if o.answer == checkout.CodeOK {
		want, refusal, audited, open = cases.ProposalCarriedOut, "", "case.carried_out", false
	}
	if o.answer == unknown {
		want, refusal, audited, open = cases.ProposalApproved, "", "case.approve", true
	}
	var d cases.Detail
	what := fmt.Sprintf("%s of %s, answered %s", o.resolution, o.kind, o.answer)
	b.within(t, what, func() bool {
		d = b.show(t, id)
		return d.Proposals[0].State == want && d.Open() == open
	})
	if d.Proposals[0].Refusal != refusal {
		t.Errorf("%s: the proposal says %q", what, d.Proposals[0].Refusal)
	}
	var action, actor, said string
	if err := b.Pool.QueryRow(t.Context(), `SELECT action, actor_kind, coalesce(detail ->> 'refusal', '') FROM audit WHERE subject = $1 ORDER BY audit.id DESC LIMIT 1`, id).Scan(&action, &actor, &said); err != nil {
		t.Fatal(err)
	}
	if action != audited || said != refusal || (actor == "service") != (want == cases.ProposalRefused) {
		t.Errorf("%s: audited as %s %q of a %s", what, action, said, actor)
	}
	if !open && cases.ByMatcher(o.kind) {
		b.exited(t, o, what)
	}
}

// exited checks the event that closes a case of the matcher.
func (b *book) exited(t *testing.T, o outcome, what string) {
	t.Helper()
	resolution, by := o.resolution, "One"
	switch {
	case o.answer == cases.RefusalEnded:
		resolution, by = casework.Resolution(journal.FindingCleared), cases.Matcher
	case o.answer != checkout.CodeOK:
		resolution, by = cases.ResolutionRefused, cases.Matcher
	}
	events, _ := b.recorded(t, b.caseID(o))
	last := events[len(events)-1]
	if last.Type != checkout.EventCaseResolved || last.Detail[checkout.DetailResolution] != string(resolution) || last.Detail[checkout.DetailBy] != by ||
		resolution == cases.ResolutionRefused && last.Detail[checkout.DetailReason] != string(o.answer) {
		t.Errorf("%s: the last event is %s %v", what, last.Type, last.Detail)
	}
}
