package operatorcase_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/casework"
	"quittance/checkout"
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/operatorcase"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	sink "quittance/sinks/cases"
	"quittance/test/await"
	"quittance/test/backoffice"
	deliverytest "quittance/test/deliveries"
	"quittance/test/registries"
	"quittance/test/servers"
	"quittance/test/topics"
)

// unknown is the answer of nobody. Other answers are checkout.CodeOK for what was carried out, and the
// refusals of cases.Refusals.
const unknown checkout.Code = "unknown"

// outcome is a case, what people agree on in it, and how that ends.
type outcome struct {
	id         string
	kind       casework.Kind
	resolution casework.Resolution
	answer     checkout.Code
	json       bool // the command is to answer with it
}

// A close that the matcher refused after its approval was shown, and audited, as carried out by whoever
// had approved it, and the page of staff said that the operator had refused it. Each resolution of each
// kind of case ends in each way, and `cases approve`, `cases show`, the page of the case in both
// languages, the audit table and the events say the same: done, refused and why, or not known yet.
func TestOutcomes(t *testing.T) {
	operatorcase.WaitLonger(t, 2*time.Minute)
	b := newBook(t)
	var all []outcome
	for _, kind := range cases.Catalog().Kinds {
		if kind == cases.KindPoison {
			continue // the sink itself carries it out: TestPoisonAndLostReports
		}
		for i, r := range cases.Catalog().Allowed(kind) {
			for _, answer := range append(cases.Refusals(kind), checkout.CodeOK, unknown) {
				// An agreement that does not count is refused whatever it resolves. The matcher answers none of these:
				// the sink refuses them before (TestForgedDecisions).
				if slices.Contains(checkout.UnprovenCodes(), answer) && (i > 0 || cases.ByMatcher(kind)) {
					continue
				}
				all = append(all, outcome{fmt.Sprint("case_", len(all)), kind, r, answer, len(all)%2 == 0})
			}
		}
	}
	// What has no answer is tried again and again, and comes last.
	slices.SortStableFunc(all, func(a, b outcome) int {
		last := map[bool]int{true: 1}
		return last[a.answer == unknown] - last[b.answer == unknown]
	})
	var g errgroup.Group
	g.SetLimit(6)
	for _, o := range all {
		g.Go(func() error { return b.ends(t, o) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	olive := b.Enter(t, "Olive")
	for _, o := range all {
		b.shown(t, olive, o)
	}
}

// book answers as the processor and the matcher do, beside a running sink.
type book struct {
	*backoffice.World
	on  topics.Topics
	one cases.By

	mu       sync.Mutex
	answers  map[string]checkout.Code // by case, of the processor
	refused  map[string]string        // by case, the reasons of the events of refusals
	ids      map[string]string        // of the cases of closes, by outcome
	approved map[string]told          // by outcome
}

// now is the time of the commands.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// told is what a command has said.
type told struct {
	code           int
	stdout, stderr string
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{World: backoffice.New(t), on: topics.Make(t, 2), answers: map[string]checkout.Code{}, refused: map[string]string{}, ids: map[string]string{}, approved: map[string]told{}}
	b.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	for _, name := range []string{"One", "Two"} {
		m, err := identity.AddStaff(t.Context(), b.Pool, b.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: "impots"}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		if name == "One" {
			b.one = cases.By{Staff: m.Staff, Signer: b.Keys}
		}
		t.Setenv("QUITTANCE_STAFF_KEY", m.Secret.Reveal())
	}
	t.Setenv("QUITTANCE_POSTGRES", b.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", b.Keys.Reveal())
	s, err := sink.New(sink.Config{
		Kafka: b.on.Kafka, Codec: b.on.Codec, Store: b.Cases, People: identity.OpenBook(b.Pool, b.Keys), Processor: b,
		Events: cases.NewEvents(b.on.Kafka, b.on.Client, b.on.Topology, b.on.Codec, deliverytest.CaseEvents()), Proof: deliverytest.Cases(b.on.Kafka), Verify: decisions.Verify(b.Keys),
		Now: now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return b
}

// Ask answers a resolution as its case has it. What is carried out closes the case.
func (b *book) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	if n, notes := cmd.Do.(checkout.NoteProposal); notes && n.Step == casework.DecisionRefused {
		b.mu.Lock()
		b.refused[n.CaseID] = n.Reason
		b.mu.Unlock()
	}
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
		c := casework.Case{ID: do.CaseID, Kind: checkout.CaseOrphan, OpenedAt: registries.Epoch, Resolution: do.Resolution, Reference: do.Reference, ClosedBy: do.By, ClosedAt: now()}
		return checkout.Answer{Code: code}, b.event(2, c)
	}
	return checkout.Answer{Code: code}, nil
}

// event writes an event of a session that has the case.
func (b *book) event(sequence int64, c casework.Case) error {
	id := "chs_" + c.ID
	e := checkout.Event{
		ID: fmt.Sprint("evt_", c.ID, sequence), Type: checkout.EventCaseOpened, SessionID: id, Sequence: sequence, OccurredAt: now(),
		Session: checkout.Session{
			ID: id, TenantID: registries.AgencyA, ApplicationID: registries.AppA, OrderID: c.ID, Status: checkout.StatusFailed, Mode: checkout.ModeHosted, Amount: amount, Currency: "XAF",
			Cases: []checkout.Case{{Case: c, Expected: amount}},
		},
	}
	return b.write(schemas.TopicEvents, mapping.FromEvent(e))
}

// stillOpen is what a command says of a case that is open.
var stillOpen = regexp.MustCompile(`(?m)^State +open$`)

// amount of the cases is above what one person may decide about.
const amount = 9000

func (b *book) write(topic string, r record.Record) error {
	value, err := b.on.Codec.Encode(r)
	if err == nil {
		err = b.on.Client.ProduceSync(context.Background(), &kgo.Record{Topic: b.on.Topology.Name(topic), Value: value}).FirstErr()
	}
	return err
}

// opened opens the case, and proposes.
func (b *book) opened(t *testing.T, o outcome) error {
	if o.kind == cases.KindClose {
		d, err := b.Cases.OpenClose(t.Context(), b.one, cases.CloseRequest{AgencyID: registries.AgencyA, Account: o.id, From: "2026-11-01", To: "2026-11-02", Digest: o.id, Reason: "r"}, now())
		b.mu.Lock()
		b.ids[o.id] = d.ID
		b.mu.Unlock()
		return err
	}
	b.mu.Lock()
	b.ids[o.id], b.answers[o.id] = o.id, o.answer
	b.mu.Unlock()
	var err error
	if cases.ByMatcher(o.kind) {
		f := b.finding(o)
		f.State, f.Kind, f.Reason = journal.FindingOpen, "bundle_differs", "r"
		f.Sources, f.Lines = []string{"2026-11-20/" + o.id}, []string{"2026-11-20/" + o.id + "#1"}
		err = b.write(schemas.TopicReconciliation, &f)
	} else {
		err = b.event(1, casework.Case{ID: o.id, Kind: o.kind, Amount: amount, Currency: "XAF", OpenedAt: registries.Epoch})
	}
	if err != nil {
		return err
	}
	b.within(t, o, "is a case", func(d cases.Detail) bool { return d.ID != "" })
	reference := "ref"
	if o.resolution == cases.ResolutionMatchByHand {
		reference = "" // the break has both sides
	}
	_, err = b.Cases.Propose(t.Context(), b.one, cases.Request{CaseID: o.id, Resolution: o.resolution, Reference: reference, Reason: "r"}, now())
	return err
}

func (b *book) finding(o outcome) record.Finding {
	f := record.Finding{
		FindingID: "brk_" + o.id, CaseID: o.id, Type: journal.FindingBreak, TenantID: registries.AgencyA, Account: "mtn", Currency: "XAF", Part: 1, Parts: 1, Rule: 1,
		RunID: "run", Day: "2026-11-20", Hop: journal.HopReceipt, Stage: "none", At: now(), Amount: amount,
	}
	if o.kind == cases.KindProposal {
		f.Type = journal.FindingProposal
	}
	if o.resolution == cases.ResolutionMatchByHand {
		f.Amount = 0
	}
	return f
}

// matched writes the matcher's answer.
func (b *book) matched(o outcome) error {
	if o.kind != cases.KindClose {
		f := b.finding(o)
		f.State = journal.FindingCleared // RefusalEnded
		if o.answer == checkout.CodeOK {
			f.State, f.Resolution = journal.FindingResolved, string(o.resolution)
		}
		if o.answer == cases.RefusalChanged {
			f.Resolution = string(cases.ResolutionRefused)
		}
		return b.write(schemas.TopicReconciliation, &f)
	}
	c := record.Close{
		CloseID: "cls_" + o.id, TenantID: registries.AgencyA, Account: o.id, FromDay: "2026-11-01", ToDay: "2026-11-02", CaseID: b.caseID(o), Digest: o.id, Currency: "XAF", Rule: 1,
		State: journal.CloseClosed, At: now(), Watermarks: map[string]string{},
	}
	if o.answer != checkout.CodeOK {
		c.State, c.Reason = journal.CloseRefused, string(o.answer)
	}
	return b.write(schemas.TopicReconciliation, &c)
}

// caseID returns the id of the case.
func (b *book) caseID(o outcome) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ids[o.id]
}

func (b *book) within(t *testing.T, o outcome, what string, done func(cases.Detail) bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		d, err := b.Cases.Show(t.Context(), nil, b.caseID(o), now())
		if err != nil && d.ID != "" || time.Now().After(until) {
			t.Errorf("%+v %s: not within a minute, %v; %+v", o, what, err, b.said(o))
			return
		}
		if done(d) {
			return
		}
	}
}

func (b *book) said(o outcome) told {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.approved[o.id]
}

// ends has two people agree, the second one by the command, and waits for its end. When nobody answers, its
// person interrupts it.
func (b *book) ends(t *testing.T, o outcome) error {
	if err := b.opened(t, o); err != nil {
		return fmt.Errorf("%+v: %w", o, err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var g errgroup.Group
	g.Go(func() error {
		var out, errs bytes.Buffer
		code := cli.Program{Name: "quittance", Groups: []cli.Group{{Commands: []cli.Command{operatorcase.Command()}}}}.Run(ctx, []string{"cases", "approve", b.caseID(o), fmt.Sprintf("--json=%v", o.json)}, &out, &errs)
		b.mu.Lock()
		b.approved[o.id] = told{code, out.String(), errs.String()}
		b.mu.Unlock()
		return nil
	})
	b.within(t, o, "is approved", func(d cases.Detail) bool { return d.Proposals[0].State != cases.ProposalOpen })
	if o.answer == unknown {
		interrupt()
	} else if cases.ByMatcher(o.kind) {
		if err := b.matched(o); err != nil {
			return err
		}
	}
	return g.Wait()
}

// shown compares what commands, pages, audit table and events say of an outcome.
func (b *book) shown(t *testing.T, olive *backoffice.Browser, o outcome) {
	t.Helper()
	id := b.caseID(o)
	what := fmt.Sprintf("%s of %s, answered %s", o.resolution, o.kind, o.answer)
	state, refusal, audited, exit := cases.ProposalRefused, string(o.answer), "case.refused", 1
	french, english, command := "Refusée à l’exécution", "Refused when carried out", "nothing was done: "+string(o.answer)+": "
	closed := cases.ByMatcher(o.kind)
	switch {
	case o.answer == checkout.CodeOK:
		state, refusal, audited, exit, closed = cases.ProposalCarriedOut, "", "case.carried_out", 0, true
		french, english, command = "Exécutée", "Carried out", ""
	case o.answer == unknown:
		state, refusal, audited, closed = cases.ProposalApproved, "", "case.approve", false
		french, english, command = "Approuvée, résultat pas encore connu", "Approved, outcome not known yet", "its outcome is not known yet"
	}

	approve := b.approved[o.id]
	if approve.code != exit || !strings.Contains(approve.stderr, command) || (command == "") != (approve.stderr == "") {
		t.Errorf("%s: `cases approve` ends with %d and %q", what, approve.code, approve.stderr)
	}
	if o.json {
		var said struct {
			State     string
			Proposals []struct{ State, Refusal string }
		}
		if err := json.Unmarshal([]byte(approve.stdout), &said); err != nil || len(said.Proposals) != 1 || (said.State == "closed") != closed || said.Proposals[0].State != string(state) || said.Proposals[0].Refusal != refusal {
			t.Errorf("%s: `cases approve --json` says %q, %v", what, approve.stdout, err)
		}
	} else {
		line := map[cases.ProposalState]string{
			cases.ProposalRefused: "refused: " + refusal, cases.ProposalApproved: "approved by Two, outcome not known yet", cases.ProposalCarriedOut: "carried_out, approved by Two",
		}[state]
		if !strings.Contains(approve.stdout, line) || stillOpen.MatchString(approve.stdout) == closed {
			t.Errorf("%s: `cases approve` lacks %q:\n%s", what, line, approve.stdout)
		}
	}

	for lang, want := range map[string]string{"fr": french, "en": english} {
		page := olive.Get("/ops/cases/" + id + "?lang=" + lang)
		text := html.UnescapeString(page.Body.String())
		if page.Code != http.StatusOK || !strings.Contains(text, "<p><strong>"+want+"</strong></p>") || refusal != "" && !strings.Contains(text, " ("+refusal+")<") {
			t.Errorf("%s: the page in %s is %d and lacks %q with its reason:\n%s", what, lang, page.Code, want, text)
		}
		if o.answer != checkout.CodeOK && o.resolution != checkout.ResolutionRefused && (strings.Contains(text, "Refusé chez l’opérateur</dd>") || strings.Contains(text, "Refused at the operator</dd>")) {
			t.Errorf("%s: the page in %s says that the operator has refused", what, lang)
		}
	}

	var action, actor, why string
	if err := b.Pool.QueryRow(t.Context(), `SELECT action, actor_kind, coalesce(detail ->> 'refusal', '') FROM audit WHERE subject = $1 AND action NOT IN ('case.read', 'case.show') ORDER BY audit.id DESC LIMIT 1`, id).Scan(&action, &actor, &why); err != nil {
		t.Fatal(err)
	}
	if action != audited || why != refusal || (actor == "service") != (state == cases.ProposalRefused) {
		t.Errorf("%s: audited as %s %q of a %s", what, action, why, actor)
	}
	if cases.ByMatcher(o.kind) {
		b.exited(t, o, what)
		return
	}
	told := func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.refused[id]
	}
	if refusal != "" {
		await.Until(t, what+": the event of the refusal", func() bool { return told() != "" })
	}
	if got := told(); got != refusal {
		t.Errorf("%s: an event says that it was refused because of %q", what, got)
	}
}

// exited checks the event that closes a case of the matcher; there is none while its answer is not known.
func (b *book) exited(t *testing.T, o outcome, what string) {
	t.Helper()
	resolution, by := o.resolution, "One"
	switch {
	case o.answer == cases.RefusalEnded:
		resolution, by = casework.Resolution(journal.FindingCleared), cases.Matcher
	case o.answer != checkout.CodeOK:
		resolution, by = cases.ResolutionRefused, cases.Matcher
	}
	var exits []checkout.Event
	if _, err := b.on.Kafka.ReadAll(t.Context(), b.on.Topology.Name(schemas.TopicCases), func(r *kgo.Record) error {
		var e record.Event
		if err := b.on.Codec.Decode(r.Value, &e); err != nil {
			return err
		}
		if e.Detail[checkout.DetailCaseID] == b.caseID(o) && e.Type == string(checkout.EventCaseResolved) {
			exits = append(exits, mapping.ToEvent(&e))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if o.answer == unknown {
		if len(exits) > 0 {
			t.Errorf("%s: the case has the exit %v", what, exits[0].Detail)
		}
		return
	}
	if len(exits) == 0 {
		t.Errorf("%s: no event closes the case", what)
		return
	}
	last := exits[len(exits)-1]
	if last.Detail[checkout.DetailResolution] != string(resolution) || last.Detail[checkout.DetailBy] != by || resolution == cases.ResolutionRefused && last.Detail[checkout.DetailReason] != string(o.answer) {
		t.Errorf("%s: the last event is %s %v", what, last.Type, last.Detail)
	}
}
