package checkout

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"quittance/checkout"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/servers"
)

// put is one call of Put.
type put struct {
	key      string
	value    []byte
	deadline time.Time
}

// entries is a transaction that commits at once.
type entries struct {
	state map[string][]byte
	puts  []put
	other int // records that are not state
}

func (e *entries) Partition() int32               { return 0 }
func (e *entries) Get(key []byte) ([]byte, error) { return e.state[string(key)], nil }
func (e *entries) Emit(*kgo.Record)               { e.other++ }
func (e *entries) Delete(key []byte)              { delete(e.state, string(key)) }

func (e *entries) Put(key, value []byte, deadline time.Time) {
	e.state[string(key)] = value
	e.puts = append(e.puts, put{string(key), value, deadline})
}

// topics is a Topology with one partition a topic.
type topics struct{}

func (topics) Name(topic string) string       { return topic }
func (topics) Partition(string, string) int32 { return 0 }

func newProcessor(t testing.TB) *Processor {
	t.Helper()
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	macs, err := secret.GenerateKeys().MACs(secret.LabelWebhookBodies)
	if err != nil {
		t.Fatal(err)
	}
	return &Processor{codec: codec, topology: topics{}, bodies: macs, judge: newJudge(func(_, _ []byte) bool { return false }, prometheus.NewRegistry())}
}

func creation(n int, order string, at time.Time) checkout.Command {
	id := fmt.Sprintf("chs_0123456789abcdefghij%06d", n)
	return checkout.Command{
		At: at, SessionID: id, ReplyTo: &checkout.ReplyTo{CorrelationID: id},
		Do: checkout.Create{
			Session: checkout.Session{
				ID: id, ApplicationID: "018f0000-0000-7000-8000-00000000000a", TenantID: "018f0000-0000-7000-8000-000000000001",
				OrderID: order, Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, ServiceCode: "svc", ServiceLabel: "Service",
				Customer:   &checkout.Customer{Name: "Adama", Email: "adama@example.org", Phone: "+242066000001"},
				SuccessURL: "https://shop.example.org/success", CancelURL: "https://shop.example.org/cancel",
				PaymentRef: "123456", NoticeID: "018f0000-0000-7000-8000-00000000000e", TransactionID: "018f0000-0000-7000-8000-00000000000f",
				NoticeRef: "AV2026", ClientSecretHash: []byte("secret"), ClientSecretSealed: make([]byte, 96), ExpiresAt: at.Add(time.Hour),
				Offers: []checkout.Offer{
					{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}, {ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50},
				},
			},
			IdempotencyKey: "key-" + id, BodyHash: make([]byte, 32), CreationsPerMinute: 1 << 30,
		},
	}
}

// The deadline that a decision passes to Put equals the deadline that a restore computes
// from the entry's bytes.
func TestDeadlinesOfPutAndRestoreAgree(t *testing.T) {
	t.Parallel()
	p := newProcessor(t)
	rapid.Check(t, func(t *rapid.T) {
		tx := &entries{state: map[string][]byte{}}
		now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
		var ids []string
		decide := func(t *rapid.T, cmd checkout.Command) {
			cmd.At = now
			if _, tick := cmd.Do.(checkout.Tick); !tick { // encode and decode it, as Kafka does
				r, err := mapping.FromCommand(cmd)
				if err != nil {
					t.Fatal(err)
				}
				b, err := p.codec.Encode(r)
				if err != nil {
					t.Fatal(err)
				}
				var back record.Command
				if err := p.codec.Decode(b, &back); err != nil {
					t.Fatal(err)
				}
				if cmd, err = mapping.ToCommand(&back); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.decide(tx, cmd); err != nil {
				t.Fatal(err)
			}
		}
		session := func(t *rapid.T) string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		// Durations have nanoseconds: the times in an entry must not be less precise than
		// those of the decision.
		duration := func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(1, int64(2*time.Hour)).Draw(t, "duration"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				cmd := creation(len(ids), rapid.SampledFrom([]string{"o1", "o2", "o3"}).Draw(t, "order"), now)
				do, _ := cmd.Do.(checkout.Create)
				do.Session.ExpiresAt = now.Add(duration(t))
				do.Session.ERP = true
				do.Session.Metadata = map[string]string{checkout.MetadataERPDueRef: rapid.SampledFrom([]string{"d1", "d2"}).Draw(t, "due")}
				if rapid.Bool().Draw(t, "faulty") {
					do.Faults = []checkout.Fault{{Code: checkout.CodeValidationFailed, Field: "amount"}}
				}
				cmd.Do = do
				decide(t, cmd)
				ids = append(ids, cmd.SessionID)
			},
			"init": func(t *rapid.T) { // of the deprecated cash-in surface
				cmd := creation(len(ids), rapid.SampledFrom([]string{"o1", "o2", "o3"}).Draw(t, "order"), now)
				do, _ := cmd.Do.(checkout.Create)
				do.Session.ExpiresAt = now.Add(duration(t))
				do.Session.Cashin = &checkout.Cashin{Kind: checkout.CashinInit, PaymentID: int64(len(ids)), Items: []byte("[]")}
				cmd.Do = checkout.InitCheckout{Session: do.Session}
				decide(t, cmd)
				ids = append(ids, cmd.SessionID)
			},
			"cancel": func(t *rapid.T) {
				decide(t, checkout.Command{SessionID: session(t), Do: checkout.Cancel{By: checkout.ByIntegrator}})
			},
			"collect": func(t *rapid.T) {
				id := session(t)
				decide(t, checkout.Command{SessionID: id, Do: checkout.Collect{
					CollectionID: "c-" + id, OfferID: checkout.OfferMomo, Payer: "242066000001", Total: 5075, ApprovalWindow: duration(t), SendWithin: duration(t),
				}})
			},
			"outcome": func(t *rapid.T) {
				id := session(t)
				decide(t, checkout.Command{SessionID: id, Do: checkout.Outcome{
					CollectionID: "c-" + id, Source: checkout.SourceEnquiry, Amount: 5075, Currency: "XAF",
					Status: rapid.SampledFrom([]checkout.OutcomeStatus{
						checkout.OutcomeApproved, checkout.OutcomeRefused, checkout.OutcomePending, checkout.OutcomeAmbiguous, checkout.OutcomeUnknown,
					}).Draw(t, "status"),
				}})
			},
			"erp": func(t *rapid.T) {
				id := session(t)
				decide(t, checkout.Command{SessionID: id, Do: checkout.Confirmed{
					TransactionID: "018f0000-0000-7000-8000-00000000000f", Answer: checkout.AnswerAccepted, AnsweredAt: now,
				}})
			},
			"enquire": func(t *rapid.T) {
				id := session(t)
				decide(t, checkout.Command{SessionID: id, Do: checkout.Enquire{CollectionID: "c-" + id}})
			},
			"reserve": func(t *rapid.T) {
				id := session(t)
				decide(t, checkout.Command{SessionID: id, Do: checkout.Reserve{CollectionID: "r-" + id, By: "clerk", Window: duration(t)}})
			},
			"take": func(t *rapid.T) {
				id := session(t)
				decide(t, checkout.Command{SessionID: id, Do: checkout.Take{CollectionID: "r-" + id, By: "clerk", Total: 5050, Limits: checkout.Limits{Day: 20_000}}})
			},
			"token": func(t *rapid.T) {
				decide(t, checkout.Command{SessionID: session(t), Do: checkout.IssueToken{
					Hash: []byte(fmt.Sprint("hash", rapid.IntRange(0, 2*checkout.MaxTokens).Draw(t, "hash"))), ClientSecretHash: []byte("secret"), Lifetime: duration(t),
				}})
			},
			"tick": func(t *rapid.T) {
				now = now.Add(duration(t)).Truncate(time.Millisecond)
				decide(t, checkout.Command{SessionID: session(t), Do: checkout.Tick{}})
			},
			"": func(t *rapid.T) {
				for _, put := range tx.puts {
					if at := p.Deadline([]byte(put.key), put.value); !at.Equal(put.deadline) {
						t.Fatalf("%q was put with the deadline %v, a restore finds %v", put.key, put.deadline, at)
					}
				}
				tx.puts = tx.puts[:0]
			},
		})
	})
}

// BenchmarkCreate measures the CPU time of the decision of a creation. BenchmarkDeadline
// measures the additional time of each merge if Put did not receive the deadline.
func BenchmarkCreate(b *testing.B) {
	p := newProcessor(b)
	tx := &entries{state: map[string][]byte{}}
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for n := range b.N {
		tx.puts = tx.puts[:0]
		if err := p.decide(tx, creation(n, fmt.Sprint(n), at)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDeadline(b *testing.B) {
	p := newProcessor(b)
	tx := &entries{state: map[string][]byte{}}
	if err := p.decide(tx, creation(0, "o", time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC))); err != nil {
		b.Fatal(err)
	}
	for _, e := range tx.puts {
		b.Logf("%q: %d bytes", e.key, len(e.value))
	}
	for b.Loop() {
		for _, e := range tx.puts {
			p.Deadline([]byte(e.key), e.value)
		}
	}
}
