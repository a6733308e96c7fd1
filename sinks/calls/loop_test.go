package calls_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/exemplar"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/calls"
	"quittance/test/servers"
)

const pay calls.Kind = "pay"

// payout is a request of a sink whose processor alone decides whether the operator is asked
// again: any answer to an enquiry settles it. Its answers are texts.
type payout struct {
	about        calls.About
	ask, enquire func() (string, error)
	asks         atomic.Int64
	enquiries    atomic.Int64
	prepared     error
	reported     []string
}

func (p *payout) About() calls.About { return p.about }
func (p *payout) Old() bool          { return false }

func (p *payout) Prepare(h *calls.Hand, kind calls.Kind) error {
	if p.prepared != nil && kind == pay {
		h.NoAccount()
		return p.prepared
	}
	return nil
}

func (p *payout) Ask(context.Context) (string, error) {
	p.asks.Add(1)
	return p.ask()
}

func (p *payout) Enquire(context.Context) (string, error) {
	p.enquiries.Add(1)
	return p.enquire()
}

func (p *payout) Unsendable(error) bool  { return false }
func (p *payout) Settles(string) bool    { return true }
func (p *payout) Confirms(a string) bool { return a == "refused" }

func (p *payout) Confirm(a string, enquired *string) string {
	if enquired == nil {
		return a + ", not confirmed"
	}
	return a + ", " + *enquired
}

func (p *payout) Answered(h *calls.Hand, a string, to calls.Kind) string {
	return p.report(h, string(to)+": "+a, a)
}

func (p *payout) Enquired(h *calls.Hand, a string) string { return p.report(h, "late: "+a, a) }

func (p *payout) NeverSent(h *calls.Hand, cause error) string {
	return p.report(h, fmt.Sprintf("never sent: %v", cause), "never_sent")
}

func (p *payout) report(h *calls.Hand, what, outcome string) string {
	p.reported = append(p.reported, what)
	return h.Reported(outcome, h.Command(schemas.TopicCommands, p.about.TenantID, &record.Reply{CorrelationID: p.about.ID, Code: what}))
}

func (p *payout) Status(a string) string { return a }

func (p *payout) Call(kind calls.Kind, at time.Time, _ time.Duration, outcome, _ string, _ error) record.Record {
	return &record.Call{Kind: string(kind), CollectionID: p.about.ID, At: at, Outcome: outcome}
}

// written is what stands in for the broker.
type written struct {
	again   bool // the record was read before
	fails   atomic.Int64
	signed  int
	records []*kgo.Record
}

func (w *written) Produce(_ context.Context, records ...*kgo.Record) error {
	if w.fails.Add(-1) >= 0 {
		return context.DeadlineExceeded
	}
	for _, r := range records {
		if slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "mac" }) {
			w.signed++
		}
	}
	w.records = append(w.records, records...)
	return nil
}

func (w *written) First(*kgo.Record) bool { return !w.again }

func (*written) SetAside(context.Context, *kgo.Record, error) bool { return true }

// numbered is a schema registry in memory.
type numbered struct{ n int }

func (*numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) ID(context.Context, string, string, bool) (int, error) { n.n++; return n.n, nil }

func (*numbered) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

// bubble makes a loop in a bubble of synctest.
func bubble(t *testing.T, test func(t *testing.T, do func(*payout) bool, w *written, metrics *prometheus.Registry)) {
	t.Helper()
	codec, err := schemas.NewCodec(t.Context(), &numbered{}, true)
	if err != nil {
		t.Fatal(err)
	}
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
	signer, err := commands.NewSigner(secret.GenerateKeys(), "collect")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w, metrics := &written{}, prometheus.NewRegistry()
		loop, err := calls.New(calls.Config{
			Name: "disburse", Kafka: config, Topology: topology, Codec: codec, Group: "sinks.disburse",
			Requests: schemas.TopicCollections, Poison: schemas.TopicPoisonCollections, Calls: schemas.TopicCalls,
			Moves: pay, Operators: []string{"test"}, Exemplar: exemplar.CollectionID, Commands: signer,
			Now: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.DiscardHandler), Metrics: metrics,
		}, func(*kgo.Record) (calls.Request[string], error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		loop.Broker = w
		test(t, func(p *payout) bool { return loop.Do(t.Context(), t.Context(), &kgo.Record{}, p) }, w, metrics)
	})
}

func request(within time.Duration) *payout {
	return &payout{about: calls.About{Kind: pay, Operator: "test", ID: "attempt", TenantID: "agency", NotAfter: time.Now().Add(within)}}
}

func says(a string) func() (string, error) { return func() (string, error) { return a, nil } }

func fails(sent bool) func() (string, error) {
	return func() (string, error) {
		return "", &connector.Error{Doing: "calling", Fault: connector.FaultTimeout, Sent: sent}
	}
}

// The loop serves any kind of request. One whose outcome is unknown is never sent again
// where the answer to an enquiry, whatever it is, settles it: the processor decides.
func TestAnotherKindOfRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask, enquire    func() (string, error)
		within          time.Duration
		again           bool
		prepared        error
		asks, enquiries int64
		want            string
	}{
		"answered":                        {ask: says("paid"), within: time.Minute, asks: 1, want: "pay: paid"},
		"time-out, then not found":        {ask: fails(true), enquire: says("unknown"), within: time.Minute, asks: 1, enquiries: 1, want: "enquire: unknown"},
		"surely not sent, until too late": {ask: fails(false), within: time.Second, asks: -1, want: "never sent: calling: timeout"},
		"a refusal, and the enquiry":      {ask: says("refused"), enquire: says("unknown"), within: time.Minute, asks: 1, enquiries: 1, want: "pay: refused, unknown"},
		"a refusal, and no enquiry":       {ask: says("refused"), enquire: fails(false), within: time.Second, asks: 1, enquiries: -1, want: "pay: refused, not confirmed"},
		"too late for the first reader":   {within: -time.Minute, want: "never sent: <nil>"},
		"too late for the second reader":  {enquire: says("unknown"), within: -time.Minute, again: true, enquiries: 1, want: "late: unknown"},
		"no account":                      {within: time.Second, prepared: &connector.Error{Doing: "finding", Fault: connector.FaultCredentials}, want: "never sent: finding: credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, do func(*payout) bool, w *written, metrics *prometheus.Registry) {
				w.again = c.again
				w.fails.Store(2) // the broker is away at first
				p := request(c.within)
				p.ask, p.enquire, p.prepared = c.ask, c.enquire, c.prepared
				if !do(p) || !slices.Contains(p.reported, c.want) || len(p.reported) != 1 {
					t.Errorf("reported %q, want %q", p.reported, c.want)
				}
				if n := p.asks.Load(); c.asks >= 0 && n != c.asks || c.asks < 0 && n < 2 {
					t.Errorf("%d calls", n)
				}
				if n := p.enquiries.Load(); c.enquiries >= 0 && n != c.enquiries || c.enquiries < 0 && n < 2 {
					t.Errorf("%d enquiries, want %d", n, c.enquiries)
				}
				if w.signed != 1 {
					t.Errorf("%d signed commands, want 1", w.signed)
				}
				families, err := metrics.Gather()
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range families {
					if !strings.HasPrefix(f.GetName(), "quittance_disburse_") {
						t.Errorf("metric %s", f.GetName())
					}
				}
			})
		})
	}
}

// An operator refuses all requests of an account that makes few enquiries a second. The enquiries that confirm the refusals wait
// without the places of calls that move money, so that another request is carried out at once.
func TestRefusalsLeaveTheirPlaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, do func(*payout) bool, _ *written, _ *prometheus.Registry) {
		answered := make(chan struct{})
		var wait sync.WaitGroup
		for range 200 {
			p := request(time.Minute)
			p.ask, p.enquire = says("refused"), func() (string, error) { <-answered; return "unknown", nil }
			wait.Go(func() { do(p) })
		}
		synctest.Wait()
		other := request(time.Minute)
		other.ask = says("paid")
		done := make(chan bool)
		go func() { done <- do(other) }()
		select {
		case <-done:
		case <-time.After(time.Second):
			t.Error("the request waits for enquiries about others")
		}
		close(answered)
		wait.Wait()
		if t.Failed() {
			<-done
		}
	})
}
