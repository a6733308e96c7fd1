// Package payouts runs the processor of disbursement batches over topics of its own, for tests.
package payouts

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	processor "quittance/processors/disbursement"
	"quittance/processors/runtime"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// Installation has topics of its own, on which it runs the processor of batches. Its clock is the machine's, moved forward.
type Installation struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	Producer *kgo.Client
	Keys     *secret.Keys
	// BrokerTimes has processors believe the broker's times alone, as in production. Then the clock is not moved.
	BrokerTimes bool
	// More are accounts that its batches pay from beside those of payroll.Opening.
	More []disbursement.Payout

	t       *testing.T
	offset  atomic.Int64
	clients map[string]*commands.Disbursement
}

// Install makes an installation with keys of its own.
func Install(t *testing.T) *Installation {
	t.Helper()
	return InstallWith(t, secret.GenerateKeys())
}

// InstallWith makes an installation with the master keys.
func InstallWith(t *testing.T, keys *secret.Keys) *Installation {
	t.Helper()
	ctx := t.Context()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Partitions: 2}
	producer, err := cfg.Producer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	if _, err := kafka.Migrate(ctx, cfg, producer); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(ctx, cfg, producer)
	if err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(ctx, client, true)
	if err != nil {
		t.Fatal(err)
	}
	i := &Installation{t: t, Kafka: cfg, Topology: topology, Codec: codec, Producer: producer, Keys: keys, clients: map[string]*commands.Disbursement{}}
	for _, from := range processor.Senders() {
		i.clients[from] = i.client(from)
	}
	return i
}

// Now is the time of the clock, in UTC and whole milliseconds.
func (i *Installation) Now() time.Time {
	return time.Now().Add(time.Duration(i.offset.Load())).UTC().Truncate(time.Millisecond)
}

// Advance moves the clock forward.
func (i *Installation) Advance(d time.Duration) { i.offset.Add(int64(d)) }

// client returns what sends commands as a sender.
func (i *Installation) client(from string) *commands.Disbursement {
	i.t.Helper()
	signer, err := commands.NewSigner(i.Keys, from)
	if err != nil {
		i.t.Fatal(err)
	}
	c, err := commands.New(i.t.Context(), commands.Config[disbursement.Command, disbursement.Answer]{
		Kafka: i.Kafka, Topology: i.Topology, Signer: signer, Family: schemas.Disbursement, Protocol: commands.DisbursementProtocol(i.Codec, i.Topology),
		Timeout: 30 * time.Second, Log: servers.Logger(i.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	i.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			i.t.Errorf("replies: %v", err)
		}
	})
	return c
}

// Process runs a processor until the returned function is called.
func (i *Installation) Process() (stop func()) {
	i.t.Helper()
	senders, err := commands.NewVerifier(i.Keys, processor.Senders())
	if err != nil {
		i.t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	requests, err := commands.NewPayoutSigner(i.Keys)
	if err != nil {
		i.t.Fatal(err)
	}
	p, err := processor.New(processor.Config{
		Codec: i.Codec, Topology: i.Topology, Senders: senders, Requests: requests, AcceptTimes: !i.BrokerTimes, Metrics: metrics,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	f := schemas.Disbursement
	r, err := runtime.New(runtime.Config{
		Name: f.Processor, Brokers: i.Kafka.Brokers, Group: i.Kafka.Prefix + "processor-disbursement", TransactionalID: i.Kafka.Prefix + "disbursement-0",
		InputTopic: i.Topology.Name(f.Commands), StateTopic: i.Topology.Name(f.State), PoisonTopic: i.Topology.Name(f.Poison),
		Processor: p, Now: i.Now, Log: servers.Logger(i.t), Metrics: metrics, MaxPollRecords: processor.MaxPollRecords, MaxTicks: processor.MaxTicks,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			i.t.Errorf("processor: %v", err)
		}
	})
	i.t.Cleanup(stop)
	return stop
}

// Client returns what sends commands as a sender.
func (i *Installation) Client(from string) *commands.Disbursement { return i.clients[from] }

// Ask sends a command and returns the answer.
func (i *Installation) Ask(from, batch string, do disbursement.Action) disbursement.Answer {
	i.t.Helper()
	a, err := i.clients[from].Ask(i.t.Context(), disbursement.Command{At: i.Now(), TenantID: payroll.Tenant, Batch: batch, Do: do})
	if err != nil {
		i.t.Fatalf("%T: %v", do, err)
	}
	return a
}

// OK fails unless the command is carried out, and returns the batch.
func (i *Installation) OK(from, batch string, do disbursement.Action) disbursement.Batch {
	i.t.Helper()
	a := i.Ask(from, batch, do)
	if a.Refusal != nil {
		i.t.Fatalf("%T is refused: %+v", do, *a.Refusal)
	}
	if a.Batch == nil {
		return disbursement.Batch{}
	}
	return *a.Batch
}

// Reader reads the committed records of a topic from its beginning.
type Reader[R any, P interface {
	*R
	record.Record
}] struct {
	i  *Installation
	cl *kgo.Client
}

// NewReader returns the reader of a topic, by its name without prefix.
func NewReader[R any, P interface {
	*R
	record.Record
}](i *Installation, topic string) *Reader[R, P] {
	i.t.Helper()
	cl, err := i.Kafka.Client(kgo.ConsumeTopics(i.Topology.Name(topic)), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(cl.Close)
	return &Reader[R, P]{i, cl}
}

// Next returns the next records, at least n.
func (r *Reader[R, P]) Next(n int) (out []R) {
	r.i.t.Helper()
	ctx, cancel := context.WithTimeout(r.i.t.Context(), time.Minute)
	defer cancel()
	for len(out) < n {
		records := r.cl.PollFetches(ctx).Records()
		if ctx.Err() != nil {
			r.i.t.Fatalf("%d records, want %d", len(out), n)
		}
		for _, rec := range records {
			var v R
			if err := r.i.Codec.Decode(rec.Value, P(&v)); err != nil {
				r.i.t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// Agency enrols people and sets a policy that is in force.
func (i *Installation) Agency() {
	i.t.Helper()
	i.OK(processor.SenderOperator, "", disbursement.Enrol{
		People: []disbursement.Enrolled{payroll.Enrolled("ama", "maker"), payroll.Enrolled("ben", "chief")}, RPID: payroll.RPID, Origin: payroll.Origin,
	})
	i.Advance(25 * time.Hour)
	more := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("cleo", "chief")}}
	more.Confirmed = payroll.Confirm(2, more.Content(), "ama", "ben")
	i.OK(processor.SenderOffice, "", more)
	set := disbursement.SetPolicy{Policy: payroll.Policy()}
	set.Confirmed = payroll.Confirm(3, set.Content(false), "ama", "ben")
	i.OK(processor.SenderOffice, "", set)
	i.Advance(25 * time.Hour)
}

// Sealed makes a sealed batch of n lines.
func (i *Installation) Sealed(id string, n int) disbursement.Batch {
	i.t.Helper()
	lines := make([]disbursement.NewLine, n)
	for k := range lines {
		lines[k] = payroll.Line(fmt.Sprintf("%s-%06d", id, k), "mtn", "", int64(1000+k))
	}
	return i.SealedOf(id, lines...)
}

// SealedOf makes a sealed batch of lines, which are in the order of their line_ref.
func (i *Installation) SealedOf(id string, lines ...disbursement.NewLine) disbursement.Batch {
	i.t.Helper()
	opening := payroll.Opening("ref-"+id, i.Now().Format(time.DateOnly))
	opening.Accounts = append(opening.Accounts, i.More...)
	i.OK(processor.SenderOperator, id, opening)
	var b disbursement.Batch
	for from := 0; from < len(lines); from += disbursement.MaxLinesAdded {
		b = i.OK(processor.SenderOperator, id, disbursement.AddLines{ImportID: "i", Position: from, Lines: lines[from:min(len(lines), from+disbursement.MaxLinesAdded)]})
	}
	return i.OK(processor.SenderOperator, id, disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()})
}

// Released makes a batch that pays.
func (i *Installation) Released(id string, lines ...disbursement.NewLine) disbursement.Batch {
	i.t.Helper()
	b := i.SealedOf(id, lines...)
	i.OK(processor.SenderOffice, id, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)})
	return i.OK(processor.SenderOffice, id, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", b.Holds, digest.Release)})
}
