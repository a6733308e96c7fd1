package collect

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/kafka"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/sinks/calls"
	"quittance/test/servers"
)

// operator is a connector whose answers a test decides. Each call takes a while.
type operator struct {
	connector.Connector
	takes            time.Duration
	collects         atomic.Int64
	enquiries        atomic.Int64
	collect, enquire func() (connector.Outcome, error)
}

func (*operator) Operator() string { return "test" }

// Payer makes it an operator that reaches payers by their number.
func (*operator) Payer(input string) (string, error) { return input, nil }

func (o *operator) Collect(ctx context.Context, _ connector.Account, _ connector.Request) (connector.Outcome, error) {
	o.collects.Add(1)
	return o.answer(ctx, o.collect)
}

func (o *operator) Enquire(ctx context.Context, _ connector.Account, _ connector.Reference) (connector.Outcome, error) {
	o.enquiries.Add(1)
	return o.answer(ctx, o.enquire)
}

func (o *operator) answer(ctx context.Context, with func() (connector.Outcome, error)) (connector.Outcome, error) {
	select {
	case <-ctx.Done():
		return connector.Outcome{}, &connector.Error{Doing: "calling", Fault: connector.FaultTimeout, Sent: true, Err: ctx.Err()}
	case <-time.After(o.takes):
		return with()
	}
}

// fails is an answer with a fault.
func fails(fault connector.FaultKind) func() (connector.Outcome, error) {
	return func() (connector.Outcome, error) {
		return connector.Outcome{}, &connector.Error{Doing: "calling", Fault: fault, Sent: true}
	}
}

func says(status checkout.OutcomeStatus) func() (connector.Outcome, error) {
	return func() (connector.Outcome, error) { return connector.Outcome{Status: status}, nil }
}

type account struct{}

func (account) Fingerprint() string { return "f" }

// numbered is a schema registry in memory.
type numbered struct{ n int }

func (*numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) ID(context.Context, string, string, bool) (int, error) { n.n++; return n.n, nil }

func (*numbered) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

// broker stands in for the broker of a sink.
type broker struct {
	produce func(ctx context.Context, records ...*kgo.Record) error
	first   func(*kgo.Record) bool
}

func (b *broker) Produce(ctx context.Context, records ...*kgo.Record) error {
	return b.produce(ctx, records...)
}

func (b *broker) First(r *kgo.Record) bool { return b.first(r) }

func (*broker) SetAside(context.Context, *kgo.Record, error) bool { return false }

// desk is a sink without a broker: a test gives it jobs and keeps the reports. It
// lives in a bubble of synctest.
type desk struct {
	*Sink
	*broker
	t       *testing.T
	metrics *prometheus.Registry
	offset  atomic.Int64               // of the clock
	has     func() (replaced, ok bool) // the account; nil: it is the present one
	mu      sync.Mutex
	reports []checkout.Outcome
	told    []record.Call // calls as written for the journal
}

func (d *desk) account(string, bool, string, string) (connector.Account, bool, bool) {
	if d.has == nil {
		return account{}, false, true
	}
	replaced, ok := d.has()
	return account{}, replaced, ok
}

func (d *desk) now() time.Time { return time.Now().UTC().Add(time.Duration(d.offset.Load())) }

// reported returns the reports so far.
func (d *desk) reported() []checkout.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reports
}

// outcomes returns the number of requests with an outcome.
func (d *desk) outcomes(outcome string) (n float64) {
	families, err := d.metrics.Gather()
	if err != nil {
		d.t.Error(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "quittance_collect_requests_total" && l.GetName() == "outcome" && l.GetValue() == outcome {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// do processes a request and reports whether its record is done.
func (d *desk) do(q record.CollectionRequest) bool {
	return d.doUntil(d.t.Context(), q)
}

// doUntil is do for a member that has the partition until waiting ends.
func (d *desk) doUntil(waiting context.Context, q record.CollectionRequest) bool {
	j := &job{sink: d.Sink, request: q}
	if err := j.check(); err != nil {
		d.t.Error(err)
	}
	return d.loop.Do(waiting, d.t.Context(), &kgo.Record{}, j)
}

func (d *desk) request(kind calls.Kind, within time.Duration) record.CollectionRequest {
	now := d.now()
	return record.CollectionRequest{
		Kind: string(kind), CollectionID: "collection", SessionID: checkout.NewSessionID(now, 0, [16]byte{1}), ApplicationID: "app", TenantID: "agency",
		OfferID: checkout.OfferMomo, Amount: 5075, Currency: "XAF", Payer: "242066000001", RequestedAt: now, NotAfter: now.Add(within),
	}
}

// bubble runs a test with a desk in a bubble of synctest.
func bubble(t *testing.T, o *operator, test func(t *testing.T, d *desk)) {
	t.Helper()
	codec, err := schemas.NewCodec(t.Context(), &numbered{}, true)
	if err != nil {
		t.Fatal(err)
	}
	// Only the number of partitions comes from a broker.
	topics := slices.DeleteFunc(schemas.Topics(), func(t schemas.Topic) bool { return t.Name != schemas.TopicCommands && t.Name != schemas.TopicCalls })
	config := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 2, Topics: topics}
	client, err := config.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kafka.Migrate(t.Context(), config, client); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(t.Context(), config, client)
	if err != nil {
		t.Fatal(err)
	}
	keys := secret.GenerateKeys()
	signer, err := commands.NewSigner(keys, "collect")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, metrics: prometheus.NewRegistry(), broker: &broker{first: func(*kgo.Record) bool { return false }}}
		var err error
		if d.Sink, err = New(Config{
			Kafka: config, Topology: topology, Codec: codec, Connectors: map[string]connector.Connector{checkout.OfferMomo: o},
			Account: d.account,
			Payer:   func(context.Context, string, []byte) (string, error) { return "", personal.ErrErased },
			Signer:  keys, Commands: signer, Sealer: keys, PublicURL: "https://pay.example", CheckoutURL: "https://pay.example",
			Now: d.now, Log: slog.New(slog.DiscardHandler), Metrics: d.metrics,
		}); err != nil {
			t.Fatal(err)
		}
		d.loop.Broker = d.broker
		d.produce = func(_ context.Context, records ...*kgo.Record) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, r := range records {
				if r.Topic == topology.Name(schemas.TopicCalls) {
					var c record.Call
					if err := codec.Decode(r.Value, &c); err != nil {
						t.Error(err)
					}
					d.told = append(d.told, c)
					continue
				}
				var c record.Command
				if err := codec.Decode(r.Value, &c); err != nil {
					t.Error(err)
				}
				command, err := mapping.ToCommand(&c)
				if err != nil {
					t.Error(err)
				}
				d.reports = append(d.reports, command.Do.(checkout.Outcome))
			}
			return nil
		}
		test(t, d)
	})
}

// An operator that answers neither requests nor enquiries leads to no report. The
// request is not sent after not_after, and the operator is asked three more times.
func TestSilentOperator(t *testing.T) {
	t.Parallel()
	o := &operator{takes: 10 * time.Second, collect: fails(connector.FaultTimeout), enquire: fails(connector.FaultTimeout)}
	bubble(t, o, func(t *testing.T, d *desk) {
		begun := time.Now()
		if !d.do(d.request(kindCollect, time.Second)) || d.outcomes(calls.OutcomeSilent) != 1 {
			t.Error("the record is not done")
		}
		if got := d.reported(); len(got) != 0 {
			t.Errorf("outcomes %+v, want none", got)
		}
		if n, asked := o.collects.Load(), o.enquiries.Load(); n != 1 || asked != 1+calls.LateTries {
			t.Errorf("%d requests and %d enquiries, want 1 and %d", n, asked, 1+calls.LateTries)
		}
		if took := time.Since(begun); took > 5*o.takes+2*calls.BackoffMax {
			t.Errorf("it took %v", took)
		}
		d.hasTold(t, "collect 0 timeout 10s", "enquire 0 timeout 10s")
	})
}

// hasTold compares the calls that were written for the journal: kind, enquiry, outcome and
// duration.
func (d *desk) hasTold(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var got []string
	for _, c := range d.told {
		got = append(got, fmt.Sprintf("%s %d %s %v", c.Kind, c.Enquiry, c.Outcome, time.Duration(c.DurationMs)*time.Millisecond))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the journal is told of %q, want %q", got, want)
	}
}

// Each call is told to the journal with its answer, and without the payer's number. A
// broker that does not take it delays nothing: the report was sent, the record is done.
func TestCallsAreTold(t *testing.T) {
	t.Parallel()
	o := &operator{takes: 120 * time.Millisecond, collect: says(checkout.OutcomePending), enquire: func() (connector.Outcome, error) {
		return connector.Outcome{Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "op-7", Reason: "SUCCESSFUL"}, nil
	}}
	bubble(t, o, func(t *testing.T, d *desk) {
		begun := d.now()
		q := d.request(kindCollect, 30*time.Second)
		q.Account = "f"
		d.do(q)
		q.Kind, q.Enquiry = string(kindEnquire), 1
		d.do(q)
		d.hasTold(t, "collect 0 pending 120ms", "enquire 1 approved 120ms")
		want := record.Call{
			Kind: string(kindEnquire), CollectionID: q.CollectionID, SessionID: q.SessionID, ApplicationID: "app", TenantID: "agency", OfferID: checkout.OfferMomo, Operator: "test",
			Account: "f", Amount: 5075, Currency: "XAF", Enquiry: 1, At: begun.Add(o.takes).Truncate(time.Millisecond), DurationMs: 120, Outcome: "approved", Reason: "SUCCESSFUL", OperatorRef: "op-7",
		}
		if got := d.told[1]; got != want {
			t.Errorf("the call is\n%+v, want\n%+v", got, want)
		}

		whole := d.produce
		d.produce = func(ctx context.Context, records ...*kgo.Record) error {
			if records[0].Topic == d.cfg.Topology.Name(schemas.TopicCalls) {
				<-ctx.Done()
				return ctx.Err()
			}
			return whole(ctx, records...)
		}
		begun = d.now()
		q.Enquiry = 2
		if done := d.do(q); !done || len(d.reported()) != 2 || d.now().Sub(begun) > o.takes+calls.TellWithin {
			t.Errorf("done: %v, %d reports, after %v", done, len(d.reported()), d.now().Sub(begun))
		}
		if n := counter(t, d.metrics, "quittance_collect_untold_calls_total"); n != 1 {
			t.Errorf("%v calls are counted as untold, want 1", n)
		}
	})
}

// A request that was surely never sent is refused as soon as it is too late: its operator
// is not asked about it, and it does not stay undecided.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	unreachable := func() (connector.Outcome, error) {
		return connector.Outcome{}, &connector.Error{Doing: "calling", Fault: connector.FaultNetwork}
	}
	for name, c := range map[string]struct {
		has     func() (replaced, ok bool)
		collect func() (connector.Outcome, error)
		again   bool // another member may have received the record
		erased  bool // the payer's number
		atOnce  bool // decided before it is too late
		want    []checkout.Outcome
		unknown bool // the account
		asked   bool
	}{
		"no account":                     {has: func() (bool, bool) { return false, false }, want: refusal(checkout.FailurePayeeUnavailable), unknown: true},
		"a replaced account":             {has: func() (bool, bool) { return true, true }, want: refusal(checkout.FailurePayeeUnavailable)},
		"unreachable operator":           {collect: unreachable, want: refusal(checkout.FailureOperatorUnavailable)},
		"erased number":                  {erased: true, atOnce: true, want: refusal(checkout.FailureOperatorUnavailable)},
		"erased after it was sent":       {erased: true, again: true, asked: true, want: []checkout.Outcome{{Status: checkout.OutcomeUnknown}}},
		"perhaps sent":                   {collect: fails(connector.FaultTimeout), asked: true, want: []checkout.Outcome{{Status: checkout.OutcomeUnknown}}},
		"perhaps sent by another member": {collect: unreachable, again: true, asked: true, want: []checkout.Outcome{{Status: checkout.OutcomeUnknown}}},
		"replaced after it was sent":     {has: func() (bool, bool) { return true, true }, again: true, asked: true, want: []checkout.Outcome{{Status: checkout.OutcomeUnknown}}},
		"no account after it was sent":   {has: func() (bool, bool) { return false, false }, again: true, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &operator{takes: time.Millisecond, collect: c.collect, enquire: says(checkout.OutcomeUnknown)}
			bubble(t, o, func(t *testing.T, d *desk) {
				d.has = c.has
				d.first = func(*kgo.Record) bool { return !c.again }
				begun := time.Now()
				q := d.request(kindCollect, 30*time.Second)
				if c.erased {
					q.Payer, q.PayerSealed = "", []byte("sealed")
				}
				if !d.do(q) {
					t.Error("the record is left")
				}
				if took := time.Since(begun); c.atOnce && took > time.Second || !c.atOnce && (took < 30*time.Second || took > time.Minute) {
					t.Errorf("decided after %v; at once: %t, otherwise after 30 s", took, c.atOnce)
				}
				got := d.reported()
				for i := range got {
					got[i] = checkout.Outcome{Status: got[i].Status, FailureCode: got[i].FailureCode}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("reported %+v, want %+v", got, c.want)
				}
				if n := counter(t, d.metrics, "quittance_collect_unknown_accounts_total"); n != map[bool]float64{true: 1}[c.unknown] {
					t.Errorf("%v unknown accounts are counted", n)
				}
				if asked := o.enquiries.Load() > 0; asked != c.asked {
					t.Errorf("the operator was asked: %v", asked)
				}
				if len(d.told) == 0 || d.told[0].Kind != string(kindCollect) || d.told[0].Fault == "" {
					t.Errorf("the journal is told of %+v, want the request that was not answered first", d.told)
				}
			})
		})
	}
}

// The first reader of a request is killed just after it said that the request was never
// sent. The next reader's clock is five seconds behind. It does not send the request.
func TestNeverSentWithAClockBehind(t *testing.T) {
	t.Parallel()
	o := &operator{takes: time.Millisecond, enquire: says(checkout.OutcomeUnknown)}
	bubble(t, o, func(t *testing.T, d *desk) {
		closed := func() (connector.Outcome, error) {
			return connector.Outcome{}, &connector.Error{Doing: "calling", Fault: connector.FaultNetwork}
		}
		o.collect = closed
		d.first = func(*kgo.Record) bool { return true }
		q := d.request(kindCollect, 15*time.Second)
		begun := time.Now()
		if !d.do(q) || len(d.reported()) != 1 || d.reported()[0].Status != checkout.OutcomeRefused {
			t.Fatalf("reported %+v", d.reported())
		}
		if took := time.Since(begun); took > 24*time.Second {
			t.Errorf("refused after %v: a partner waits for 25 s", took)
		}
		tried := o.collects.Load()
		d.offset.Store(int64(-calls.ClockTolerance))
		d.first = func(*kgo.Record) bool { return false }
		o.collect = says(checkout.OutcomeApproved) // its port is open again
		if !d.do(q) {
			t.Error("the record is left")
		}
		if n := o.collects.Load(); n != tried {
			t.Errorf("a refused request was sent %d times afterwards", n-tried)
		}
	})
}

// A member that loses the partition while it waits says nothing: the next member may still
// send the request.
func TestNeverSentByTheNextMember(t *testing.T) {
	t.Parallel()
	o := &operator{takes: time.Millisecond}
	bubble(t, o, func(t *testing.T, d *desk) {
		d.first = func(*kgo.Record) bool { return true }
		q := d.request(kindCollect, -time.Second) // already late
		waiting, lost := context.WithTimeout(t.Context(), calls.ClockTolerance/2)
		defer lost()
		if d.doUntil(waiting, q) || len(d.reported()) > 0 {
			t.Errorf("the record is not left; reported %+v", d.reported())
		}
	})
}

func refusal(code checkout.FailureCode) []checkout.Outcome {
	return []checkout.Outcome{{Status: checkout.OutcomeRefused, FailureCode: code}}
}

// counter returns the sum of a counter.
func counter(t *testing.T, metrics prometheus.Gatherer, name string) (n float64) {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// During an outage the clock jumps beyond not_after. The request is given up at once, not
// at the end of a pause, and nothing is collected afterwards.
func TestClockJumpsDuringAnOutage(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	o := &operator{takes: time.Millisecond, enquire: says(checkout.OutcomeUnknown)}
	o.collect = func() (connector.Outcome, error) {
		if down.Load() {
			return connector.Outcome{}, &connector.Error{Doing: "calling", Fault: connector.FaultServer, Sent: true, RetryAfter: time.Minute}
		}
		return connector.Outcome{Status: checkout.OutcomePending}, nil
	}
	bubble(t, o, func(t *testing.T, d *desk) {
		done := make(chan bool)
		go func() { done <- d.do(d.request(kindCollect, time.Hour)) }()
		time.Sleep(time.Second)
		before := o.collects.Load()
		jumped := time.Now()
		d.offset.Store(int64(time.Hour + 5*time.Minute))
		down.Store(false)
		if !<-done {
			t.Error("the record is left")
		}
		if took := time.Since(jumped); took > calls.Glance+time.Second {
			t.Errorf("given up %v after the jump", took)
		}
		if got := d.reported(); len(got) != 1 || got[0].Status != checkout.OutcomeUnknown {
			t.Errorf("outcomes %+v", got)
		}
		if before == 0 || o.collects.Load() != before {
			t.Errorf("%d requests before the jump, %d in all: a late request was sent", before, o.collects.Load())
		}
	})
}

// Two enquiries of one collection are in hand while the operator is unavailable. Only
// the later one is made.
func TestLaterEnquiryOvertakes(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	o := &operator{takes: time.Millisecond}
	o.enquire = func() (connector.Outcome, error) {
		if up.Load() {
			return connector.Outcome{Status: checkout.OutcomeUnknown}, nil
		}
		return fails(connector.FaultServer)()
	}
	bubble(t, o, func(t *testing.T, d *desk) {
		q := d.request(kindEnquire, time.Minute)
		var both sync.WaitGroup
		for q.Enquiry = range int32(2) {
			enquiry := q
			both.Go(func() {
				if !d.do(enquiry) {
					t.Error("the record is left")
				}
			})
			synctest.Wait()
		}
		time.Sleep(2 * calls.BackoffMax)
		if n := d.outcomes(calls.OutcomeOvertaken); n != 1 {
			t.Errorf("%v enquiries dropped, want the first", n)
		}
		up.Store(true)
		both.Wait()
		if got := d.reported(); len(got) != 1 || d.outcomes(string(checkout.OutcomeUnknown)) != 1 {
			t.Errorf("outcomes %+v, want 1", got)
		}
	})
}

// An enquiry is tried again for a minute while the operator does not answer. Then it is
// settled without a report.
func TestEnquiryPatience(t *testing.T) {
	t.Parallel()
	o := &operator{takes: 10 * time.Second, enquire: fails(connector.FaultTimeout)}
	bubble(t, o, func(t *testing.T, d *desk) {
		begun := time.Now()
		if !d.do(d.request(kindEnquire, time.Minute)) || d.outcomes(calls.OutcomeSilent) != 1 || len(d.reported()) != 0 {
			t.Errorf("not settled without a report: %+v", d.reported())
		}
		if took := time.Since(begun); took < calls.EnquiryPatience || took > calls.EnquiryPatience+o.takes+2*calls.BackoffMax {
			t.Errorf("tried for %v", took)
		}
	})
}

// An operator that asks for a delay is not called before its end.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	var last time.Time
	var waits []time.Duration
	o := &operator{takes: time.Millisecond}
	o.enquire = func() (connector.Outcome, error) {
		if !last.IsZero() {
			waits = append(waits, time.Since(last))
		}
		if last = time.Now(); len(waits) == 3 {
			return says(checkout.OutcomeApproved)()
		}
		return connector.Outcome{}, &connector.Error{Doing: "calling", Fault: connector.FaultBusy, RetryAfter: 12 * time.Second}
	}
	bubble(t, o, func(t *testing.T, d *desk) {
		if !d.do(d.request(kindEnquire, time.Minute)) || len(d.reported()) != 1 {
			t.Errorf("reported %+v", d.reported())
		}
		for _, wait := range waits {
			if wait < 12*time.Second || wait > 13*time.Second {
				t.Errorf("called again after %v", wait)
			}
		}
	})
}
