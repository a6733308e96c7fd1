package cases_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/registries"
)

// lost makes a report of money of no known session, and returns its case.
func (w *world) lost(t *testing.T, n int) (caseID string) {
	t.Helper()
	id := checkout.NewSessionID(registries.Epoch, 0, [16]byte{byte(100 + n)})
	w.do(t, checkout.CodeSessionNotFound, id, checkout.Outcome{
		CollectionID: fmt.Sprintf("lost-%d", n), Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 70, Currency: "XAF",
		OperatorRef: "op-lost", Account: "acc-9", ApprovedAt: registries.Epoch.AddDate(0, 0, -2),
	})
	w.Change(func() { caseID = w.Events[len(w.Events)-1].Detail[checkout.DetailCaseID] })
	return caseID
}

// recorded returns the records of cases.events about a case. Records of the same event must
// be equal.
func (w *world) recorded(t *testing.T, id string) (events []checkout.Event, written int) {
	t.Helper()
	seen := map[string]checkout.Event{}
	_, err := w.kafka.ReadAll(t.Context(), w.topology.Name(schemas.TopicCases), func(r *kgo.Record) error {
		var e record.Event
		if err := w.codec.Decode(r.Value, &e); err != nil {
			return err
		}
		if e.Detail[checkout.DetailCaseID] != id {
			return nil
		}
		got := mapping.ToEvent(&e)
		written++
		before, again := seen[got.ID]
		if !again {
			seen[got.ID], events = got, append(events, got)
		} else if got.Type != before.Type || !got.OccurredAt.Equal(before.OccurredAt) || !maps.Equal(got.Detail, before.Detail) {
			t.Errorf("the event %+v was written before as %+v", got, before)
		}
		if string(r.Key) != id || e.Session != nil || e.Sequence != 0 {
			t.Errorf("the record of %+v has the key %q", got, r.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, written
}

// steps are the events of a case: type, proposal and who.
func (w *world) steps(t *testing.T, id string) (out []string) {
	t.Helper()
	events, _ := w.recorded(t, id)
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s %s", e.Type, e.Detail[checkout.DetailProposal], e.Detail[checkout.DetailBy]))
	}
	return out
}

func (w *world) propose(t *testing.T, by cases.By, id string, r casework.Resolution, reference string) {
	t.Helper()
	w.within(t, "the case "+id, func() bool { return w.show(t, id).ID != "" })
	if _, err := w.store.Propose(t.Context(), by, cases.Request{CaseID: id, Resolution: r, Reference: reference, Reason: "r"}, w.Now()); err != nil {
		t.Fatal(err)
	}
}

func (w *world) approve(t *testing.T, by cases.By, id string, number int) {
	t.Helper()
	if _, err := w.store.Approve(t.Context(), by, id, number, w.Now()); err != nil {
		t.Fatal(err)
	}
}

func (w *world) carriedOut(t *testing.T, id string) {
	t.Helper()
	w.within(t, "the exit of "+id, func() bool {
		d := w.show(t, id)
		return d.State() == cases.StateClosed && len(d.Proposals) > 0 && d.Proposals[len(d.Proposals)-1].State == cases.ProposalCarriedOut
	})
}

// What staff did with a case without a session was in Postgres only: the journal knew
// neither the proposals nor the exit. Now each step is an event, once, of both kinds of
// cases, and a lapse is one in both worlds.
func TestCasesWithoutASessionAreEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	orphan := w.lost(t, 1)
	original := &kgo.Record{Topic: w.topology.Name(schemas.TopicEvents), Partition: 1, Offset: 42, Value: []byte("junk")}
	if err := w.client.ProduceSync(t.Context(), schemas.Poison(w.topology.Name(schemas.TopicPoisonReadmodel), original, errors.New("cannot be decoded"))).FirstErr(); err != nil {
		t.Fatal(err)
	}
	session, late := w.late(t, 1)

	w.propose(t, w.ops, orphan, checkout.ResolutionRefund, "wire 7")
	if _, err := w.store.Reject(t.Context(), w.more, orphan, "not in the statement", w.Now()); err != nil {
		t.Fatal(err)
	}
	w.propose(t, w.more, orphan, casework.ResolutionWriteOff, "memo 1")
	w.propose(t, w.one, late, checkout.ResolutionRefund, "wire 9")
	w.Change(func() { w.Time = w.Time.Add(7 * 24 * time.Hour) })
	for _, id := range []string{orphan, late} {
		w.within(t, "the lapse", func() bool {
			d := w.show(t, id)
			return !d.Proposals[len(d.Proposals)-1].FinishedAt.IsZero()
		})
	}
	if _, err := w.store.Approve(t.Context(), w.ops, orphan, 2, registries.Epoch); err == nil {
		t.Error("a proposal that has lapsed was approved by a late clock")
	}
	w.propose(t, w.ops, orphan, checkout.ResolutionRefund, "wire 8")
	w.approve(t, w.more, orphan, 3)
	w.carriedOut(t, orphan)
	if got, want := w.steps(t, orphan), []string{
		"case.opened  ", "case.proposed 1 Ops", "case.rejected 1 More", "case.proposed 2 More", "case.lapsed 2 ", "case.proposed 3 Ops", "case.approved 3 More", "case.resolved  Ops",
	}; !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	events, _ := w.recorded(t, orphan)
	exit := events[len(events)-1]
	if c := exit.Case(); !c.TakesBack() || c.Amount != 70 || c.Currency != "XAF" || c.Account != "acc-9" || !c.ApprovedAt.Equal(registries.Epoch.AddDate(0, 0, -2)) ||
		!c.OpenedAt.Equal(registries.Epoch) || !c.ClosedAt.Equal(registries.Epoch.Add(7*24*time.Hour)) || c.Reference != "wire 8" || exit.Detail[checkout.DetailLive] != "false" ||
		exit.Detail[checkout.DetailApprovedBy] != "More" || exit.SessionID != w.show(t, orphan).SessionID {
		t.Errorf("the exit is %+v of %+v", exit, c)
	}
	if d := w.show(t, orphan); d.Resolution != checkout.ResolutionRefund || d.Reference != "wire 8" || d.ClosedBy != "Ops" {
		t.Errorf("the case is %+v", d)
	}

	list, err := w.store.List(t.Context(), nil, cases.Filter{Kind: cases.KindPoison})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	poison := list[0].ID
	w.propose(t, w.ops, poison, casework.ResolutionAcknowledge, "")
	w.approve(t, w.more, poison, 0)
	w.carriedOut(t, poison)
	if got, want := w.steps(t, poison), []string{"case.opened  ", "case.proposed 1 Ops", "case.approved 1 More", "case.resolved  Ops"}; !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	events, _ = w.recorded(t, poison)
	if d := events[0].Detail; d[checkout.DetailReason] != "cannot be decoded" || d[cases.EvidenceOffset] != "42" || d[checkout.DetailCaseKind] != "poison" {
		t.Errorf("the opening says %v", d)
	}

	w.within(t, "the lapse in the session", func() (found bool) {
		w.Change(func() {
			found = slices.ContainsFunc(w.Events, func(e checkout.Event) bool {
				return e.SessionID == session && e.Type == checkout.EventCaseLapsed && e.Detail[checkout.DetailCaseID] == late
			})
		})
		return found
	})
	if got := w.Audited(t); slices.Index(got, "case.carried_out") < 0 {
		t.Errorf("recorded %v", got)
	}
}

// dying is the topic of a sink that is killed at the first event of a type: before it is
// written, or after that and before anything else.
type dying struct {
	*cases.Events
	at    checkout.EventType
	after bool
	die   func()
}

func (d *dying) Write(ctx context.Context, events ...checkout.Event) error {
	if !slices.ContainsFunc(events, func(e checkout.Event) bool { return e.Type == d.at }) {
		return d.Events.Write(ctx, events...)
	}
	defer d.die()
	if d.after {
		if err := d.Events.Write(ctx, events...); err != nil {
			return err
		}
	}
	return errors.New("killed")
}

// The sink is killed between any two steps of a case without a session. No step is lost, an
// event that is written again is the same, and the case has one exit.
func TestKilledBetweenAnyTwoStepsWithoutASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	for _, at := range []checkout.EventType{checkout.EventCaseOpened, checkout.EventCaseProposed, checkout.EventCaseApproved, checkout.EventCaseResolved} {
		for _, after := range []bool{false, true} {
			n++
			name := fmt.Sprintf("%s, written: %v", at, after)
			id := w.lost(t, n)
			if at != checkout.EventCaseOpened {
				stop := w.runs(t, w)
				w.within(t, name, func() bool { return len(w.steps(t, id)) == 1 })
				stop()
				w.propose(t, w.ops, id, checkout.ResolutionRefund, "ref")
				w.approve(t, w.more, id, 0)
			}
			dead := make(chan struct{})
			stop := w.runsWith(t, w, &dying{Events: w.events, at: at, after: after, die: sync.OnceFunc(func() { close(dead) })})
			<-dead
			stop()

			stop = w.runs(t, w)
			if at == checkout.EventCaseOpened {
				w.propose(t, w.ops, id, checkout.ResolutionRefund, "ref")
				w.approve(t, w.more, id, 0)
			}
			w.carriedOut(t, id)
			stop()
			if got, want := w.steps(t, id), []string{"case.opened  ", "case.proposed 1 Ops", "case.approved 1 More", "case.resolved  Ops"}; !slices.Equal(got, want) {
				t.Errorf("%s: the events are %q, want %q", name, got, want)
			}
		}
	}
	if open, err := w.store.CountOpen(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
}

// Postgres is restored to a time before a refund, which it has forgotten. Two people agree
// on another one. It is not recorded: the sink first reads what happened to the case.
func TestRestoredPostgresForgetsNoExit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.runs(t, w)
	id := w.lost(t, 1)
	w.within(t, "the opening", func() bool { return len(w.steps(t, id)) == 1 })
	stop()
	tables := []string{"cases", "case_positions", "case_proposals"}
	for _, table := range tables {
		w.Exec(t, `CREATE TABLE dump_`+table+` AS TABLE `+table)
	}
	w.propose(t, w.ops, id, checkout.ResolutionRefund, "wire 7")
	w.approve(t, w.more, id, 0)
	stop = w.runs(t, w)
	w.carriedOut(t, id)
	stop()

	for _, table := range tables {
		w.Exec(t, `DELETE FROM `+table)
		w.Exec(t, `INSERT INTO `+table+` TABLE dump_`+table)
	}
	w.Change(func() { w.Time = w.Time.Add(48 * time.Hour) })
	w.propose(t, w.more, id, checkout.ResolutionRefund, "wire 8")
	w.approve(t, w.ops, id, 0)
	stop = w.runs(t, w)
	w.within(t, "the end of the second proposal", func() bool {
		d := w.show(t, id)
		return d.State() == cases.StateClosed && d.Proposals[0].State != cases.ProposalApproved
	})
	stop()
	if d := w.show(t, id); d.Reference != "wire 7" || d.ClosedBy != "Ops" || d.Proposals[0].State == cases.ProposalCarriedOut {
		t.Errorf("%+v", d)
	}
	exits := 0
	events, _ := w.recorded(t, id)
	for _, e := range events {
		if e.Type == checkout.EventCaseResolved {
			exits++
		}
	}
	if exits != 1 {
		t.Errorf("%d exits in %q", exits, w.steps(t, id))
	}
	// Everything but the proposals comes back from Kafka.
	w.Exec(t, `TRUNCATE cases, case_positions`)
	before, _ := w.recorded(t, id)
	w.runs(t, w)
	w.within(t, "the case after a rebuild", func() bool { return w.show(t, id).State() == cases.StateClosed && w.show(t, id).ID != "" })
	w.within(t, "the openings are recorded", func() bool {
		list, err := w.store.Unrecorded(t.Context(), 10)
		return err == nil && len(list) == 0
	})
	// An event may be written again, with the same id, before it was read.
	if after, _ := w.recorded(t, id); len(after) != len(before) {
		t.Errorf("the rebuild has made %d events", len(after)-len(before))
	}
}

// An operator reports the same money of no known session for a week. It is one case with
// one opening, that of the first report.
func TestRepeatedReportIsOneCase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	id := w.lost(t, 1)
	for range 7 {
		w.Change(func() { w.Time = w.Time.Add(24 * time.Hour) })
		if again := w.lost(t, 1); again != id {
			t.Fatalf("the report is the case %s, want %s", again, id)
		}
	}
	last := w.lost(t, 2) // reading it means having read the others
	w.within(t, "the openings", func() bool { return len(w.steps(t, id)) > 0 && len(w.steps(t, last)) > 0 })
	events, _ := w.recorded(t, id)
	if len(events) != 1 || !events[0].OccurredAt.Equal(registries.Epoch) {
		t.Errorf("the events are %+v", events)
	}
}
