package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/commands"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping"
	sink "quittance/sinks/cases"
	deliverytest "quittance/test/deliveries"
	"quittance/test/processor"
	"quittance/test/registries"
	"quittance/test/servers"
)

const patience = 20 * time.Second

// numbered is a schema registry in memory.
type numbered struct {
	mu    sync.Mutex
	texts []string
}

func (n *numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) ID(_ context.Context, _, schema string, _ bool) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, schema)
	return len(n.texts), nil
}

func (n *numbered) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

// world has a processor whose events go to Kafka, staff and a store.
type world struct {
	registries.House
	*processor.Processor
	store     *cases.Store
	kafka     kafka.Config
	topology  *kafka.Topology
	codec     *schemas.Codec
	client    *kgo.Client
	events    *cases.Events
	one, two  cases.By // of an agency
	ops, more cases.By // of operations
	published int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	h := registries.SetUp(t)
	h.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 0"))
	w := &world{
		House: h, Processor: processor.New(t, registries.Epoch), store: cases.NewStore(h.Pool).Verifying(h.Keys),
		kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 2},
	}
	var err error
	if w.client, err = w.kafka.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	if _, err := kafka.Migrate(t.Context(), w.kafka, w.client); err != nil {
		t.Fatal(err)
	}
	if w.topology, err = kafka.Load(t.Context(), w.kafka, w.client); err != nil {
		t.Fatal(err)
	}
	if w.codec, err = schemas.NewCodec(t.Context(), &numbered{}, true); err != nil {
		t.Fatal(err)
	}
	w.events = cases.NewEvents(w.kafka, w.client, w.topology, w.codec, deliverytest.CaseEvents())
	agencies := map[string]string{"One": "impots", "Two": "impots", "Ops": "", "More": ""}
	for name, by := range map[string]*cases.By{"One": &w.one, "Two": &w.two, "Ops": &w.ops, "More": &w.more} {
		m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: agencies[name]}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		by.Staff, by.Signer = m.Staff, h.Keys
	}
	return w
}

// publish writes new events to Kafka. The caller holds the processor's lock.
func (w *world) publish() {
	for ; w.published < len(w.Events); w.published++ {
		e := w.Events[w.published]
		value, err := w.codec.Encode(mapping.FromEvent(e))
		if err == nil {
			err = w.client.ProduceSync(context.Background(), &kgo.Record{Topic: w.topology.Name(schemas.TopicEvents), Value: value}).FirstErr()
		}
		if err != nil {
			w.T.Errorf("publishing %s: %v", e.Type, err)
		}
	}
}

// Ask decides a command as the processor does, which checks what people agreed on first.
func (w *world) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	w.Lock()
	defer w.Unlock()
	if do, ok := cmd.Do.(checkout.Resolve); ok {
		s := w.Sessions[cmd.SessionID]
		if c, known := s.Case(do.CaseID); known && c.Open() {
			if err := do.Agreement().Check(do.Terms(s, c, cmd.At), decisions.Verify(w.House.Keys)); err != nil {
				return checkout.Answer{Code: checkout.ApprovalCode(err)}, nil
			}
		}
	}
	a := w.Decide(cmd)
	w.publish()
	return a, nil
}

// do asks and expects the code.
func (w *world) do(t *testing.T, want checkout.Code, id string, action checkout.Action) checkout.Answer {
	t.Helper()
	a, err := w.Ask(t.Context(), checkout.Command{SessionID: id, Do: action})
	if err != nil || a.Code != want {
		t.Fatalf("%T is answered %s, want %s; %v", action, a.Code, want, err)
	}
	return a
}

// late makes a session with late money, and returns its id and its case.
func (w *world) late(t *testing.T, n int) (id, caseID string) {
	t.Helper()
	id = checkout.NewSessionID(registries.Epoch, 0, [16]byte{byte(n)})
	s := checkout.Session{
		ID: id, ApplicationID: registries.AppA, TenantID: registries.AgencyA, OrderID: id, Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, TransactionID: id,
		Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}}, CreatedAt: registries.Epoch, ExpiresAt: registries.Epoch.Add(time.Hour),
	}
	w.do(t, checkout.CodeOK, id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000})
	w.do(t, checkout.CodeOK, id, checkout.Collect{CollectionID: "k-" + id, OfferID: checkout.OfferMomo, Payer: "p", Total: 5075, ApprovalWindow: time.Minute, SendWithin: time.Minute})
	w.do(t, checkout.CodeOK, id, checkout.Cancel{By: checkout.ByIntegrator})
	w.do(t, checkout.CodeOK, id, checkout.Outcome{CollectionID: "k-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF"})
	session := w.Session(id)
	if len(session.Cases) != 1 || session.Cases[0].Kind != checkout.CaseLatePayment {
		t.Fatalf("the session has %+v", session.Cases)
	}
	return id, session.Cases[0].ID
}

// runs starts a sink. stop waits for its end.
func (w *world) runs(t *testing.T, asker sink.Asker) (stop func()) {
	t.Helper()
	return w.runsWith(t, asker, w.events)
}

func (w *world) runsWith(t *testing.T, asker sink.Asker, events sink.Events) (stop func()) {
	t.Helper()
	s, err := sink.New(sink.Config{
		Kafka: w.kafka, Codec: w.codec, Store: w.store, People: identity.OpenBook(w.Pool, w.House.Keys), Processor: asker, Events: events, Proof: deliverytest.Cases(w.kafka), Verify: decisions.Verify(w.House.Keys), Now: w.Now, Again: 50 * time.Millisecond, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
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
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func (w *world) show(t *testing.T, id string) cases.Detail {
	t.Helper()
	d, err := w.store.Show(t.Context(), nil, id, w.Now())
	if err != nil && d.ID != "" {
		t.Fatal(err)
	}
	return d
}

func (w *world) within(t *testing.T, what string, done func() bool) {
	t.Helper()
	registries.Within(t, patience, what, done)
}

// agree proposes and approves a resolution.
func (w *world) agree(t *testing.T, id string, r casework.Resolution) {
	t.Helper()
	w.within(t, "the case", func() bool { return w.show(t, id).ID != "" })
	if _, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: id, Resolution: r, Reference: "ref", Reason: "r"}, w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Approve(t.Context(), w.two, id, 0, w.Now()); err != nil {
		t.Fatal(err)
	}
}

// exits counts the events that closed the case.
func (w *world) exits(id string) (n int) {
	w.Change(func() {
		for _, e := range w.Events {
			if e.Type == checkout.EventCaseResolved && e.Detail[checkout.DetailCaseID] == id {
				n++
			}
		}
	})
	return n
}

// asker is a processor between which and the sink something fails.
type asker func(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)

func (a asker) Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
	return a(ctx, cmd)
}

// Money that arrived after the end of its session blocked the order for ever, and nobody
// could honour it. Two members of staff agree, and the session is completed.
func TestLatePaymentIsHonoured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	session, id := w.late(t, 1)
	w.agree(t, id, checkout.ResolutionHonour)
	w.within(t, "the resolution", func() bool {
		d := w.show(t, id)
		return d.State() == cases.StateClosed && d.Proposals[0].State == cases.ProposalCarriedOut
	})
	if s := w.Session(session); !s.Paid() || !s.Late {
		t.Errorf("the session is %+v", s)
	}
	if d := w.show(t, id); d.Resolution != checkout.ResolutionHonour || d.ClosedBy != "One" || d.AgencyID != registries.AgencyA || d.OrderID != session {
		t.Errorf("the case is %+v", d)
	}
}

// The processor lost the answer to a step. Each step is one event, in order, before the
// exit of the case.
func TestStepsOfProposalsAreEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lost sync.Map
	w.runs(t, asker(func(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
		a, err := w.Ask(ctx, cmd)
		same, marshalling := json.Marshal(cmd.Do)
		if marshalling != nil {
			return a, marshalling
		}
		if _, before := lost.LoadOrStore(string(same), true); !before {
			return checkout.Answer{}, fmt.Errorf("lost: %w", commands.ErrUnavailable)
		}
		return a, err
	}))
	session, id := w.late(t, 1)
	w.within(t, "the case", func() bool { return w.show(t, id).ID != "" })
	if _, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: id, Resolution: checkout.ResolutionRefund, Reference: "wire 7", Reason: "r"}, w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Reject(t.Context(), w.two, id, "not in the statement", w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Propose(t.Context(), w.two, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Approve(t.Context(), w.one, id, 2, w.Now()); err != nil {
		t.Fatal(err)
	}
	w.within(t, "the resolution", func() bool { return w.show(t, id).Proposals[1].State == cases.ProposalCarriedOut })
	var steps []string
	w.Change(func() {
		for _, e := range w.Events {
			if e.SessionID == session && strings.HasPrefix(string(e.Type), "case.") {
				steps = append(steps, string(e.Type)+" "+e.Detail[checkout.DetailProposal]+" "+e.Detail[checkout.DetailBy])
			}
		}
	})
	if want := []string{"case.proposed 1 One", "case.rejected 1 Two", "case.proposed 2 Two", "case.approved 2 One", "case.resolved  Two"}; !slices.Equal(steps, want) {
		t.Errorf("the events are %q", steps)
	}
}

// A refusal of the processor is shown, and the case stays open.
func TestRefusalIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse := checkout.CodeInFlight
	w.runs(t, asker(func(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
		if _, resolves := cmd.Do.(checkout.Resolve); !resolves {
			return w.Ask(ctx, cmd)
		}
		return checkout.Answer{Code: refuse}, nil
	}))
	_, id := w.late(t, 1)
	w.agree(t, id, checkout.ResolutionHonour)
	w.within(t, "the refusal", func() bool { return w.show(t, id).Proposals[0].State == cases.ProposalRefused })
	if d := w.show(t, id); d.Proposals[0].Refusal != string(refuse) || !d.Open() {
		t.Errorf("%+v", d)
	}
}

// The sink is killed between any two steps of a resolution: before the command, after the
// decision, before the answer is recorded, before the event is applied. Each case is
// closed once, and no proposal is lost.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := func() {}
	var crash atomic.Pointer[context.CancelFunc]
	die := func() error {
		(*crash.Load())()
		return fmt.Errorf("killed: %w", commands.ErrUnavailable)
	}
	for n, step := range []struct {
		name string
		ask  asker
	}{
		{"before the command", func(context.Context, checkout.Command) (checkout.Answer, error) { return checkout.Answer{}, die() }},
		{"after the decision", func(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
			if _, err := w.Ask(ctx, cmd); err != nil {
				return checkout.Answer{}, err
			}
			return checkout.Answer{}, die()
		}},
		{"before the event is published", func(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
			w.Lock()
			defer w.Unlock()
			w.Decide(cmd)
			return checkout.Answer{}, die()
		}},
		{"before the answer is recorded", func(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
			// Another transaction holds the row until the sink has ended.
			tx, err := w.Pool.Begin(ctx)
			if err != nil {
				return checkout.Answer{}, err
			}
			if _, err := tx.Exec(ctx, `SELECT FROM case_proposals WHERE case_id = $1 FOR UPDATE`, cmd.Do.(checkout.Resolve).CaseID); err != nil {
				return checkout.Answer{}, err
			}
			held = func() { _ = tx.Rollback(context.Background()) }
			a, err := w.Ask(ctx, cmd)
			_ = die()
			return a, err
		}},
	} {
		stop := w.runs(t, w)
		_, id := w.late(t, n+1)
		w.within(t, "the case", func() bool { return w.show(t, id).ID != "" })
		stop()

		w.agree(t, id, checkout.ResolutionRefund)
		dead := make(chan struct{})
		kill := context.CancelFunc(sync.OnceFunc(func() { close(dead) }))
		crash.Store(&kill)
		stop = w.runs(t, asker(func(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
			if _, resolves := cmd.Do.(checkout.Resolve); !resolves {
				return w.Ask(ctx, cmd)
			}
			return step.ask(ctx, cmd)
		}))
		<-dead
		stop()
		held()
		held = func() {}
		w.Change(w.publish)

		stop = w.runs(t, w)
		w.within(t, step.name, func() bool {
			d := w.show(t, id)
			return d.State() == cases.StateClosed && d.Proposals[0].State == cases.ProposalCarriedOut
		})
		stop()
		if got := w.exits(id); got != 1 {
			t.Errorf("%s: the case has %d exits", step.name, got)
		}
	}
	if open, err := w.store.CountOpen(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
}

// Each poison record is a case, once, with its position and its error. So is a report of
// money of no known session.
func TestPoisonAndLostReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	original := &kgo.Record{Topic: w.topology.Name(schemas.TopicEvents), Partition: 1, Offset: 42, Value: []byte("junk")}
	topics := sink.PoisonTopics()
	for _, topic := range topics {
		if err := w.client.ProduceSync(t.Context(), schemas.Poison(w.topology.Name(topic), original, errors.New("cannot be decoded"))).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	// The sink itself sets a record aside, which becomes a case too.
	if err := w.client.ProduceSync(t.Context(), &kgo.Record{Topic: w.topology.Name(schemas.TopicEvents), Value: []byte("junk")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	unknown := checkout.NewSessionID(registries.Epoch, 0, [16]byte{99})
	w.do(t, checkout.CodeSessionNotFound, unknown, checkout.Outcome{CollectionID: "x", Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 70, Currency: "XAF"})
	list := func() []cases.Case {
		all, err := w.store.List(t.Context(), nil, cases.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := len(topics) + 2
	stop := w.runs(t, w)
	w.within(t, "the cases", func() bool { return len(list()) == want })
	stop()
	w.Exec(t, `TRUNCATE cases, case_positions`)
	w.runs(t, w)
	w.within(t, "the cases after a rebuild", func() bool { return len(list()) == want })
	for _, c := range list() {
		switch c.Kind {
		case cases.KindPoison:
			if c.Evidence[cases.EvidenceTopic] != w.topology.Name(schemas.TopicEvents) || c.Evidence[cases.EvidenceError] == "" || c.AgencyID != "" || c.InSession {
				t.Errorf("%+v", c)
			}
		case checkout.CaseOrphan:
			if c.SessionID != unknown || c.Amount != 70 || c.CollectionID != "x" || c.InSession {
				t.Errorf("%+v", c)
			}
		default:
			t.Errorf("%+v", c)
		}
	}
}
