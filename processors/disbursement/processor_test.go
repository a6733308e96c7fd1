package disbursement_test

import (
	"context"
	"errors"
	"fmt"
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
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// installation has its own topics, on which it runs a processor.
type installation struct {
	t        *testing.T
	cfg      kafka.Config
	topology *kafka.Topology
	codec    *schemas.Codec
	producer *kgo.Client
	keys     *secret.Keys
	clock    atomic.Pointer[time.Time]
	clients  map[string]*commands.Disbursement
}

func install(t *testing.T) *installation {
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
	i := &installation{t: t, cfg: cfg, topology: topology, codec: codec, producer: producer, keys: secret.GenerateKeys(), clients: map[string]*commands.Disbursement{}}
	at := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	i.clock.Store(&at)
	for _, from := range processor.Senders() {
		i.clients[from] = i.client(from)
	}
	return i
}

func (i *installation) now() time.Time { return *i.clock.Load() }

func (i *installation) advance(d time.Duration) {
	at := i.now().Add(d)
	i.clock.Store(&at)
}

// client returns what sends commands as a sender.
func (i *installation) client(from string) *commands.Disbursement {
	i.t.Helper()
	signer, err := commands.NewSigner(i.keys, from)
	if err != nil {
		i.t.Fatal(err)
	}
	c, err := commands.New(i.t.Context(), commands.Config[disbursement.Command, disbursement.Answer]{
		Kafka: i.cfg, Topology: i.topology, Signer: signer, Family: schemas.Disbursement, Protocol: commands.DisbursementProtocol(i.codec, i.topology),
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
		<-done
	})
	return c
}

// process runs a processor until the returned function is called.
func (i *installation) process() (stop func()) {
	i.t.Helper()
	senders, err := commands.NewVerifier(i.keys, processor.Senders())
	if err != nil {
		i.t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	p, err := processor.New(processor.Config{Codec: i.codec, Topology: i.topology, Senders: senders, Metrics: metrics})
	if err != nil {
		i.t.Fatal(err)
	}
	f := schemas.Disbursement
	r, err := runtime.New(runtime.Config{
		Name: f.Processor, Brokers: i.cfg.Brokers, Group: i.cfg.Prefix + "processor-disbursement", TransactionalID: i.cfg.Prefix + "disbursement-0",
		InputTopic: i.topology.Name(f.Commands), StateTopic: i.topology.Name(f.State), PoisonTopic: i.topology.Name(f.Poison),
		Processor: p, Now: i.now, Log: servers.Logger(i.t), Metrics: metrics, MaxPollRecords: processor.MaxPollRecords, MaxTicks: processor.MaxTicks,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			i.t.Errorf("processor: %v", err)
		}
	}
}

// ask sends a command and returns the answer.
func (i *installation) ask(from, batch string, do disbursement.Action) disbursement.Answer {
	i.t.Helper()
	a, err := i.clients[from].Ask(i.t.Context(), disbursement.Command{At: i.now(), TenantID: payroll.Tenant, Batch: batch, Do: do})
	if err != nil {
		i.t.Fatalf("%T: %v", do, err)
	}
	return a
}

// ok fails unless the command is carried out, and returns the batch.
func (i *installation) ok(from, batch string, do disbursement.Action) disbursement.Batch {
	i.t.Helper()
	a := i.ask(from, batch, do)
	if a.Refusal != nil {
		i.t.Fatalf("%T is refused: %+v", do, *a.Refusal)
	}
	if a.Batch == nil {
		return disbursement.Batch{}
	}
	return *a.Batch
}

// reader reads the committed records of a topic from its beginning.
type reader[R any, P interface {
	*R
	record.Record
}] struct {
	i  *installation
	cl *kgo.Client
}

func newReader[R any, P interface {
	*R
	record.Record
}](i *installation, topic string) *reader[R, P] {
	i.t.Helper()
	cl, err := i.cfg.Client(kgo.ConsumeTopics(i.topology.Name(topic)), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(cl.Close)
	return &reader[R, P]{i, cl}
}

// next returns the next records, at least n.
func (r *reader[R, P]) next(n int) (out []R) {
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
			if err := r.i.codec.Decode(rec.Value, P(&v)); err != nil {
				r.i.t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// agency enrols people and sets a policy that is in force.
func (i *installation) agency() {
	i.t.Helper()
	i.ok(processor.SenderOperator, "", disbursement.Enrol{
		People: []disbursement.Enrolled{payroll.Enrolled("ama", "maker"), payroll.Enrolled("ben", "chief")}, RPID: payroll.RPID, Origin: payroll.Origin,
	})
	i.advance(25 * time.Hour)
	more := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("cleo", "chief")}}
	more.Confirmed = payroll.Confirm(2, more.Content(), "ama", "ben")
	i.ok(processor.SenderOffice, "", more)
	set := disbursement.SetPolicy{Policy: payroll.Policy()}
	set.Confirmed = payroll.Confirm(3, set.Content(false), "ama", "ben")
	i.ok(processor.SenderOffice, "", set)
	i.advance(25 * time.Hour)
}

// sealed makes a sealed batch of n lines.
func (i *installation) sealed(id string, n int) disbursement.Batch {
	i.t.Helper()
	i.ok(processor.SenderOperator, id, payroll.Opening("ref-"+id, i.now().Format(time.DateOnly)))
	var b disbursement.Batch
	for from := 0; from < n; from += disbursement.MaxLinesAdded {
		var lines []disbursement.NewLine
		for k := from; k < min(n, from+disbursement.MaxLinesAdded); k++ {
			lines = append(lines, payroll.Line(fmt.Sprintf("%s-%06d", id, k), "mtn", "", int64(1000+k)))
		}
		b = i.ok(processor.SenderOperator, id, disbursement.AddLines{ImportID: "i", Position: from, Lines: lines})
	}
	return i.ok(processor.SenderOperator, id, disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()})
}

// A batch is opened, approved, released, requested and paid through Kafka. A processor that restarts in the middle goes on
// from its state, and each attempt is requested once.
func TestBatchThroughKafka(t *testing.T) {
	t.Parallel()
	i := install(t)
	stop := i.process()
	i.agency()
	const lines = 300 // more than an account has in flight
	b := i.sealed("dsb_1", lines)
	if a := i.ask(processor.SenderOffice, b.ID, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", 0, digest.Release)}); a.Code() != disbursement.CodeStatus {
		t.Fatalf("a sealed batch is released: %s", a.Code())
	}
	if a := i.ask(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ama", 1, digest.Approve)}); a.Code() != disbursement.CodeMaker {
		t.Fatalf("the maker approves: %s", a.Code())
	}
	i.ok(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)})
	i.ok(processor.SenderOffice, b.ID, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", 0, digest.Release)})

	requests := newReader[record.PayoutRequest](i, schemas.TopicPayouts)
	seen, answered := map[string]int{}, 0
	pay := func(upTo int) {
		for answered < upTo {
			for _, r := range requests.next(1) {
				q := batches.ToRequest(&r)
				if q.Kind != disbursement.RequestPay {
					continue
				}
				seen[q.Line.AttemptID().PayoutRef()]++
				word := disbursement.Word{
					Position: q.Line.Position, Attempt: q.Line.Attempt, Try: q.Line.Try, Source: disbursement.FromRequest, Kind: disbursement.WordPaid,
					Amount: q.Line.Amount, Currency: q.Currency, OperatorRef: "op",
				}
				i.ok(processor.SenderDisburse, b.ID, word)
				answered++
			}
		}
	}
	pay(50)
	stop()
	stop = i.process()
	defer func() { stop() }()
	pay(lines)
	done := i.ok(processor.SenderDisburse, b.ID, disbursement.Word{Position: 0, Attempt: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordPending})
	if done.Status != disbursement.StatusDone || done.Lines.Paid.Count != lines || done.Lines.Paid.Sum != b.Sum {
		t.Errorf("%s, %+v", done.Status, done.Lines)
	}
	if len(seen) != lines || answered != lines {
		t.Errorf("%d requests of %d attempts, want %d", answered, len(seen), lines)
	}
	events := newReader[record.DisbursementEvent](i, schemas.Disbursement.Events).next(lines)
	sequence, completed := int64(0), 0
	for _, e := range events {
		if e.Batch == nil {
			continue
		}
		if sequence++; e.Batch.Sequence != sequence {
			t.Fatalf("the event %d of the batch has the number %d", sequence, e.Batch.Sequence)
		}
		if e.Type != string(disbursement.EventLinesAdded) {
			for _, l := range e.Lines {
				if len(l.Sealed) > 0 {
					t.Errorf("%s has the content of a line", e.Type)
				}
			}
		}
		if e.Type == string(disbursement.EventDone) {
			completed++
		}
	}
	if completed != 1 {
		t.Errorf("the batch is done %d times", completed)
	}
}

// Whoever may not send a command, or sends it where the agency's state is not, reaches nothing but the poison topic.
func TestCommandsOfOthersArePoison(t *testing.T) {
	t.Parallel()
	i := install(t)
	stop := i.process()
	defer stop()
	i.agency()
	b := i.sealed("dsb_1", 1)
	command := func(do disbursement.Action) *kgo.Record {
		rec, err := commands.DisbursementProtocol(i.codec, i.topology).Encode(disbursement.Command{At: i.now(), TenantID: payroll.Tenant, Batch: b.ID, Do: do}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rec.Topic = i.topology.Name(schemas.Disbursement.Commands)
		return rec
	}
	sign := func(rec *kgo.Record, from string) *kgo.Record {
		signer, err := commands.NewSigner(i.keys, from)
		if err != nil {
			t.Fatal(err)
		}
		signer.Sign(rec)
		return rec
	}
	approve := disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)}
	unsigned := command(approve)
	notAllowed := sign(command(approve), processor.SenderDisburse)
	forged := sign(command(approve), processor.SenderOffice)
	forged.Value = command(disbursement.Recall{By: "ama"}).Value
	elsewhere := command(approve)
	elsewhere.Partition = 1 - elsewhere.Partition
	sign(elsewhere, processor.SenderOffice)
	foreign := sign(command(approve), "ingress")
	garbage := sign(&kgo.Record{Topic: unsigned.Topic, Partition: unsigned.Partition, Key: unsigned.Key, Value: []byte("no record")}, processor.SenderOffice)
	wrong := []*kgo.Record{unsigned, notAllowed, forged, elsewhere, foreign, garbage}
	if err := i.producer.ProduceSync(t.Context(), wrong...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl, err := i.cfg.Client(kgo.ConsumeTopics(i.topology.Name(schemas.Disbursement.Poison)), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := 0; n < len(wrong); {
		n += len(cl.PollFetches(ctx).Records())
		if ctx.Err() != nil {
			t.Fatalf("%d poison records, want %d", n, len(wrong))
		}
	}
	now := i.ask(processor.SenderOperator, b.ID, disbursement.Stop{}).Batch // refused, with the batch as it is
	if now == nil || now.Status != disbursement.StatusSealed || now.Sequence != b.Sequence {
		t.Errorf("the batch is %+v", now)
	}
}

// A command without an agency has no partition.
func TestCommandsNameTheirAgency(t *testing.T) {
	t.Parallel()
	i := install(t)
	if err := i.clients[processor.SenderOffice].Tell(t.Context(), disbursement.Command{At: i.now(), Do: disbursement.Recall{}}); !errors.Is(err, commands.ErrNoAgency) {
		t.Errorf("%v", err)
	}
}
