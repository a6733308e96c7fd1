package erp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	deliverytest "quittance/test/deliveries"
	"quittance/test/processor"
	"quittance/test/servers"
)

// circle is the whole way of confirmations: a processor whose notifications go to Kafka, the
// planner, the worker, the schedule, an ERP, and the reporter that tells the processor.
type circle struct {
	*deliverytest.Bench
	*processor.Processor
	t        *testing.T
	receiver *deliverytest.Receiver
	cfg      delivery.WorkerConfig
	sent     int
}

func newCircle(t *testing.T) *circle {
	t.Helper()
	c := &circle{Bench: bench(t), t: t, receiver: deliverytest.NewReceiver(t, "Idempotency-Key")}
	c.Processor = processor.New(t, c.Bench.Now().Truncate(time.Millisecond))
	c.cfg = sender(c.Bench, oneERP(c.receiver.URL))
	return c
}

// delivers starts planner, worker and schedule.
func (c *circle) delivers() (stop func()) {
	c.t.Helper()
	return deliverytest.Start(c.t, deliverytest.Planner(c.t, c.cfg), deliverytest.Worker(c.t, c.cfg), c.Schedule(c.t))
}

// teller is a processor between which and the reporter something fails.
type teller func(ctx context.Context, cmds []checkout.Command) error

func (f teller) TellAll(ctx context.Context, cmds []checkout.Command) error { return f(ctx, cmds) }

// TellAll decides commands as the processor does.
func (c *circle) TellAll(_ context.Context, cmds []checkout.Command) error {
	c.Lock()
	for _, cmd := range cmds {
		cmd.At = c.Time
		c.Decide(cmd)
	}
	c.Unlock()
	c.publish()
	return nil
}

// do decides one action and publishes what it asks of the ERP.
func (c *circle) do(id string, do checkout.Action) checkout.Answer {
	c.t.Helper()
	a := c.Do(id, do)
	c.publish()
	return a
}

// publish writes the notifications of new events.
func (c *circle) publish() {
	var out []*record.Notification
	c.Lock()
	for ; c.sent < len(c.Events); c.sent++ {
		made, err := mapping.ToConfirmations(c.Events[c.sent])
		if err != nil {
			c.t.Error(err)
		}
		out = append(out, made...)
	}
	c.Unlock()
	if len(out) > 0 {
		c.Notify(c.t, schemas.TopicConfirmations, true, out...)
	}
}

// reports starts a reporter.
func (c *circle) reports(to erp.Teller) (stop func()) {
	c.t.Helper()
	r, err := erp.NewReporter(erp.ReporterConfig{
		Kafka: c.Kafka, Codec: c.Codec, Processor: to, Now: c.Bench.Now,
		Outcomes: deliverytest.Outcomes(), Log: servers.Logger(c.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return deliverytest.Start(c.t, r)
}

// pay makes a session with a due and completes it.
func (c *circle) pay(id string) {
	c.t.Helper()
	s := checkout.Session{
		ID: id, TenantID: "agency", ApplicationID: "app", OrderID: "order-" + id, TransactionID: "tx-" + id, PaymentRef: "0000000000000097", Amount: 5000, Currency: "XAF",
		Mode: checkout.ModeHosted, ERP: true, Metadata: map[string]string{checkout.MetadataERPDueRef: "due-" + id}, ExpiresAt: c.Processor.Now().Add(time.Hour),
		Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}},
	}
	c.do(id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000})
	c.do(id, checkout.Collect{CollectionID: "c-" + id, OfferID: checkout.OfferMomo, Total: 5075, ApprovalWindow: time.Minute, SendWithin: time.Minute})
	if a := c.do(id, checkout.Outcome{CollectionID: "c-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF"}); !a.Session.Paid() {
		c.t.Fatalf("the session is %+v", a.Session)
	}
}

func (c *circle) status(id string) checkout.ConfirmationStatus {
	return c.Session(id).Confirmation.Status
}

// events counts the events of a type of a session.
func (c *circle) events(id string, t checkout.EventType) (n int) {
	c.Change(func() {
		for _, e := range c.Events {
			if e.SessionID == id && e.Type == t {
				n++
			}
		}
	})
	return n
}

func (c *circle) state(id string) string { return c.State(c.t, erp.Kind, "tx-"+id, "agency/test") }

func (c *circle) eventually(what string, ok func() bool) {
	c.t.Helper()
	deliverytest.Eventually(c.t, what, ok)
}

// Whoever may write the topic of outcomes, as five sinks may, says that an ERP has confirmed a payment of
// which it knows nothing. The processor is told what the sink erp has proved.
func TestForgedAnswerIsNotTold(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	c.pay("owed")
	c.pay("paid")
	producer, err := c.Kafka.Producer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	answer := func(id string, sign func(*kgo.Record)) {
		t.Helper()
		value, err := c.Codec.Encode(&record.Attempt{Outcome: string(deliveries.OutcomeDelivered), At: c.Bench.Now(), Delivery: record.Delivery{
			Kind: string(erp.Kind), DeliveryID: "d-" + id, DestinationID: "agency/test", TenantID: "agency", SessionID: id, EventID: "tx-" + id,
			Attempt: 1, OccurredAt: c.Bench.Now(),
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: c.Kafka.Prefix + schemas.TopicAttempts, Key: []byte("agency/test"), Value: value}
		sign(r)
		if err := producer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	stranger, err := secret.GenerateKeys().MACs(secret.LabelOutcomes(string(erp.Kind)))
	if err != nil {
		t.Fatal(err)
	}
	own := origin.NewSigner(string(erp.Kind), deliverytest.Bodies())
	var copied []kgo.RecordHeader
	answer("paid", func(r *kgo.Record) { own.SignKeyed(r); copied = r.Headers; r.Headers = nil }) // unsigned
	answer("owed", func(*kgo.Record) {})
	answer("owed", origin.NewSigner(string(erp.Kind), stranger).SignKeyed)
	answer("owed", origin.NewSigner("webhook", deliverytest.Bodies()).SignKeyed)
	answer("owed", func(r *kgo.Record) { r.Headers = copied })
	answer("owed", own.Sign) // bound to another partition
	answer("paid", own.SignKeyed)
	c.reports(c)
	c.eventually("the true answer", func() bool { return c.status("paid") == checkout.ConfirmationAccepted })
	if got := c.status("owed"); got == checkout.ConfirmationAccepted || c.events("owed", checkout.EventConfirmationAccepted) > 0 {
		t.Errorf("a forged answer is believed: %s", got)
	}
}

// Nobody but the delivery's row knew what the ERP had answered. Now the state knows: an
// acceptance is remembered, a refusal is a case, and a retry tells the ERP once more with
// the same id.
func TestAnswersReturnToTheProcessor(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	var mu sync.Mutex
	refusing := true
	c.receiver.Answer(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if refusing && req.Header.Get("Idempotency-Key") == "tx-refused" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	c.delivers()
	c.reports(c)
	c.pay("paid")
	c.pay("refused")
	c.eventually("the acceptance", func() bool { return c.status("paid") == checkout.ConfirmationAccepted })
	c.eventually("the refusal", func() bool { return c.status("refused") == checkout.ConfirmationRefused })
	cases := c.Session("refused").Cases
	if len(cases) != 1 || cases[0].Kind != checkout.CaseConfirmation || cases[0].Reason != "http_422" || !cases[0].Open() {
		t.Fatalf("cases %+v", cases)
	}
	c.eventually("parked", func() bool { return c.state("refused") == deliveries.StateNeedsOperator })

	mu.Lock()
	refusing = false
	mu.Unlock()
	c.Change(func() { c.Time = c.Bench.Now() })
	resolve := checkout.Resolve{CaseID: cases[0].ID, Resolution: checkout.ResolutionRetry, By: "one", ApprovedBy: "two"}
	for range 2 { // the answer to the first was lost
		if a := c.do("refused", resolve); a.Code != checkout.CodeOK {
			t.Fatalf("the retry is answered %s", a.Code)
		}
	}
	c.eventually("the acceptance of the retry", func() bool { return c.status("refused") == checkout.ConfirmationAccepted })
	c.eventually("delivered", func() bool { return c.state("refused") == deliveries.StateDelivered })
	var bodies []string
	for _, got := range c.receiver.Got() {
		if got.EventID == "tx-refused" {
			bodies = append(bodies, got.Body)
		}
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] {
		t.Errorf("the ERP was told %q", bodies)
	}
	for _, k := range c.Session("refused").Cases {
		if k.Open() {
			t.Errorf("the case %+v is open", k)
		}
	}
}

// An ERP that accepted a payment and still lists its due is told again: its row says that the
// payment is delivered, so the request is a delivery of its own, with the same id for the ERP.
func TestToldAgainAfterTheAcceptance(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	c.delivers()
	c.reports(c)
	c.pay("a")
	c.eventually("the acceptance", func() bool { return c.status("a") == checkout.ConfirmationAccepted })
	c.eventually("delivered", func() bool { return c.state("a") == deliveries.StateDelivered })
	again := func(n int) checkout.Case {
		c.Advance(73 * time.Hour)
		c.Change(func() { c.Time = c.Bench.Now() })
		cart := checkout.Session{
			ID: fmt.Sprint("cart", n), TenantID: "agency", ApplicationID: "portal", OrderID: fmt.Sprint("cart", n), Amount: 50, Currency: "XAF", Mode: checkout.ModeHosted,
			ERP: true, CitizenID: "citizen", ExpiresAt: c.Processor.Now().Add(time.Hour),
			Items: []checkout.Item{{ERPDueRef: "due-a", Amount: 50, Outstanding: 5000, TransactionID: fmt.Sprint("tx-cart", n)}},
		}
		if a := c.do(cart.ID, checkout.Create{Session: cart, IdempotencyKey: cart.ID, CreationsPerMinute: 1000}); a.Code != checkout.CodeDueInPayment {
			t.Fatalf("a cart of the due is answered %s", a.Code)
		}
		cases := c.Session("a").Cases
		return cases[len(cases)-1]
	}
	retry := func(k checkout.Case) {
		if a := c.do("a", checkout.Resolve{CaseID: k.ID, Resolution: checkout.ResolutionRetry, By: "one", ApprovedBy: "two"}); a.Code != checkout.CodeOK {
			t.Fatalf("the retry is answered %s", a.Code)
		}
	}
	calls := func(n int) func() bool { return func() bool { return c.receiver.Count()["tx-a"] == n } }
	retry(again(1))
	c.eventually("a second call", calls(2))
	c.eventually("its acceptance", func() bool { return c.status("a") == checkout.ConfirmationAccepted })

	// The ERP refuses the third call. A further retry is about the same delivery.
	c.receiver.Status(http.StatusUnprocessableEntity)
	retry(again(2))
	c.eventually("a refused call", calls(3))
	c.eventually("its refusal", func() bool { return c.status("a") == checkout.ConfirmationRefused })
	parked := func() (n int) {
		if err := c.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE event_id = 'tx-a' AND state = 'needs_operator'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.eventually("parked", func() bool { return parked() == 1 })
	cases := c.Session("a").Cases
	c.Change(func() { c.Time = c.Bench.Now() })
	retry(cases[len(cases)-1])
	c.eventually("a fourth call", calls(4))
	c.eventually("parked again", func() bool { return parked() == 1 })
	c.eventually("a second refusal", func() bool { return c.events("a", checkout.EventConfirmationRefused) == 2 })
	cases = c.Session("a").Cases
	if a := c.do("a", checkout.Resolve{CaseID: cases[len(cases)-1].ID, Resolution: checkout.ResolutionRecordedByHand, Reference: "GL 7", By: "one", ApprovedBy: "two"}); a.Code != checkout.CodeOK {
		t.Fatalf("recording is answered %s", a.Code)
	}
	c.eventually("no call is planned", func() bool { return parked() == 0 })
	for _, got := range c.receiver.Got() {
		if got.EventID != "tx-a" || got.Body != c.receiver.Got()[0].Body {
			t.Errorf("the ERP was told %s of %s", got.Body, got.EventID)
		}
	}
}

// What two people recorded by hand counts as acceptance: no call follows, and the payment is
// outstanding nowhere.
func TestRecordedByHandEndsTheCalls(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	c.receiver.Status(http.StatusServiceUnavailable)
	c.delivers()
	c.reports(c)
	c.pay("a")
	c.eventually("a failed call", func() bool { return c.state("a") == deliveries.StateWaiting })
	c.Change(func() { c.Time = c.Time.Add(25 * time.Hour) })
	c.do("a", checkout.Tick{})
	cases := c.Session("a").Cases
	if len(cases) != 1 {
		t.Fatalf("cases %+v", cases)
	}
	c.do("a", checkout.Resolve{CaseID: cases[0].ID, Resolution: checkout.ResolutionRecordedByHand, Reference: "GL 7", By: "one", ApprovedBy: "two"})
	c.eventually("recorded", func() bool { return c.state("a") == deliveries.StateDelivered })
	calls := c.receiver.Count()["tx-a"]
	c.Advance(100 * time.Hour)
	c.pay("b") // travels the same way
	c.receiver.Status(http.StatusOK)
	c.eventually("another payment is accepted", func() bool { c.Advance(time.Minute); return c.status("b") == checkout.ConfirmationAccepted })
	if n := c.receiver.Count()["tx-a"]; n != calls {
		t.Errorf("the ERP was called %d times after it was recorded", n-calls)
	}
	var acceptedAt *time.Time
	if err := c.Pool.QueryRow(t.Context(), `SELECT accepted_at FROM erp_confirmations WHERE transaction_id = 'tx-a'`).Scan(&acceptedAt); err != nil || acceptedAt == nil {
		t.Errorf("accepted at %v, %v", acceptedAt, err)
	}
	var attempts int
	if err := c.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries d JOIN delivery_attempts a USING (delivery_id) WHERE d.event_id = 'tx-a'`).Scan(&attempts); err != nil || attempts != calls {
		t.Errorf("%d attempts are listed for %d calls, %v", attempts, calls, err)
	}
}

// dying is a policy of a worker that dies after the ERP has answered: the answer is in no
// outcome.
type dying struct {
	delivery.Policy
	dead atomic.Bool
}

func (p *dying) Send(ctx context.Context, d *record.Delivery) call.Result {
	r := p.Policy.Send(ctx, d)
	if p.dead.CompareAndSwap(false, true) {
		return call.Result{Fault: call.FaultInterrupted}
	}
	return r
}

// The worker is killed between the ERP's answer and its recording, and the reporter between
// any two of its steps. No answer is lost, and each has one effect in the state.
func TestAnswersSurviveKills(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	policy := &dying{Policy: c.cfg.Policy}
	c.cfg.Policy = policy
	stop := c.delivers()
	c.pay("a")
	c.eventually("the ERP has answered", policy.dead.Load)
	stop()
	if n := len(c.Attempts(t)); n != 0 {
		t.Fatalf("%d outcomes are recorded", n)
	}
	c.delivers()
	c.eventually("the outcome", func() bool { return len(c.Attempts(t)) == 1 })

	killed := errors.New("killed")
	for name, ask := range map[string]teller{
		"before the command": func(context.Context, []checkout.Command) error { return killed },
		"between the command and its acknowledgement": func(ctx context.Context, cmds []checkout.Command) error {
			if err := c.TellAll(ctx, cmds); err != nil {
				return err
			}
			return killed
		},
	} {
		tried := make(chan struct{}, 100)
		stop := c.reports(teller(func(ctx context.Context, cmds []checkout.Command) error {
			err := ask(ctx, cmds)
			tried <- struct{}{}
			return err
		}))
		select {
		case <-tried:
		case <-time.After(deliverytest.Patience):
			t.Fatalf("killed %s: no try", name)
		}
		stop()
	}
	c.reports(c)
	c.eventually("the acceptance", func() bool { return c.status("a") == checkout.ConfirmationAccepted })
	c.pay("b")
	c.eventually("the next acceptance", func() bool { return c.status("b") == checkout.ConfirmationAccepted })
	if n := c.events("a", checkout.EventConfirmationAccepted); n != 1 {
		t.Errorf("%d events of one acceptance", n)
	}
	if n := c.receiver.Count()["tx-a"]; n != 2 {
		t.Errorf("the ERP was told %d times, want 2", n)
	}
}

// Postgres is lost, and the confirmations are replayed. The ERP, which has them, refuses the
// repetition. The state knows that they were accepted: no case opens again.
func TestReplayReopensNothing(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	var again atomic.Bool
	c.receiver.Answer(func(w http.ResponseWriter, req *http.Request) {
		if again.Load() {
			w.WriteHeader(http.StatusConflict)
		}
	})
	begun := time.Now().Add(-time.Second)
	c.delivers()
	c.reports(c)
	c.pay("a")
	c.eventually("the acceptance", func() bool { return c.status("a") == checkout.ConfirmationAccepted })
	c.eventually("delivered", func() bool { return c.state("a") == deliveries.StateDelivered })
	again.Store(true)
	for _, statement := range []string{`DELETE FROM deliveries`, `DELETE FROM erp_confirmations`} {
		if _, err := c.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	before := c.Session("a").Sequence
	store := deliveries.NewStore(c.Pool, deliveries.Kinds{erp.Registration(oneERP(c.receiver.URL))})
	replay := deliveries.Replay{Kafka: c.Kafka, Codec: c.Codec, Kind: erp.Kind, Since: begun, Until: time.Now().Add(time.Minute), Now: c.Bench.Now, Bodies: deliverytest.Bodies()}
	c.eventually("a replay", func() bool {
		got, err := store.Replay(t.Context(), deliverytest.Actor, replay)
		return err == nil && got.Made == 1
	})
	c.eventually("the refusal of the repetition", func() bool { return c.state("a") == deliveries.StateNeedsOperator })
	c.pay("b")
	c.eventually("its answer is told", func() bool { return c.status("b") == checkout.ConfirmationRefused })
	if s := c.Session("a"); s.Sequence != before || len(s.Cases) != 0 || s.Confirmation.Status != checkout.ConfirmationAccepted {
		t.Errorf("the replay changed the session: %+v, cases %+v", s.Confirmation, s.Cases)
	}

	// A request for one more call is no payment of its own.
	c.Change(func() { c.Time = c.Bench.Now() })
	c.do("b", checkout.Resolve{CaseID: c.Session("b").Cases[0].ID, Resolution: checkout.ResolutionRetry, By: "one", ApprovedBy: "two"})
	c.eventually("the second refusal", func() bool { return c.events("b", checkout.EventConfirmationRefused) == 2 })
	c.eventually("a replay", func() bool {
		replay.Until = time.Now().Add(time.Minute)
		got, err := store.Replay(t.Context(), deliverytest.Actor, replay)
		return err == nil && got == deliveries.Replayed{Events: 2, Parked: 2}
	})

	// The planner reads the request a second time: the call that it asks for was made.
	var request []*record.Notification
	c.Change(func() {
		for _, e := range c.Events {
			if e.Type == checkout.EventConfirmationRetried {
				request, _ = mapping.ToConfirmations(e)
			}
		}
	})
	calls := c.receiver.Count()["tx-b"]
	planned := len(c.Attempts(t))
	c.Notify(t, schemas.TopicConfirmations, true, request...)
	c.eventually("it is planned again", func() bool { return len(c.Attempts(t)) > planned })
	c.pay("c") // travels after it
	c.eventually("its answer is told", func() bool { return c.status("c") == checkout.ConfirmationRefused })
	c.eventually("its outcome is applied", func() bool { return c.state("c") == deliveries.StateNeedsOperator })
	if n := c.receiver.Count()["tx-b"]; n != calls || c.state("b") != deliveries.StateNeedsOperator {
		t.Errorf("the ERP was called %d times more, and the delivery is %s", n-calls, c.state("b"))
	}
}
