package crash_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	processor "quittance/processors/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/servers"
)

// abacus is a second processor. It counts the commands of each agency, and has topics,
// state and replies of its own.
type abacus struct {
	topology *kafka.Topology
	family   schemas.Family
}

var abacusFamily = schemas.FamilyOf("abacus")

// abacusCommand is encoded as its fields, separated by spaces.
type abacusCommand struct{ agency, id string }

func (p abacus) Process(tx *runtime.Tx, rec *kgo.Record) error {
	fields := strings.Fields(string(rec.Value)) // id, correlation id, partition of the reply
	if len(fields) != 3 {
		return runtime.Poison(fmt.Errorf("command %q", rec.Value))
	}
	to, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil {
		return runtime.Poison(err)
	}
	state, err := tx.Get(rec.Key)
	if err != nil {
		return err
	}
	count := uint64(1)
	if state != nil {
		count += binary.BigEndian.Uint64(state)
	}
	tx.Put(rec.Key, binary.BigEndian.AppendUint64(nil, count), time.Time{})
	tx.Emit(&kgo.Record{Topic: p.topology.Name(p.family.Events), Partition: tx.Partition(), Key: rec.Key, Value: fmt.Appendf(nil, "%s %d", fields[0], count)})
	tx.Emit(&kgo.Record{Topic: p.topology.Name(p.family.Replies), Partition: int32(to), Key: []byte(fields[1]), Value: strconv.AppendUint(nil, count, 10)})
	return nil
}

func (abacus) Deadline(_, _ []byte) time.Time             { return time.Time{} }
func (abacus) Tick(*runtime.Tx, []byte, time.Time) error  { return nil }
func (abacus) Decode(_ string, value []byte) (int, error) { return strconv.Atoi(string(value)) }
func (abacus) Code(int) string                            { return "ok" }
func (p abacus) Encode(c abacusCommand, to *commands.ReplyTo) (*kgo.Record, error) {
	return &kgo.Record{
		Key: []byte(c.agency), Partition: p.topology.Partition(p.family.Commands, c.agency), Value: fmt.Appendf(nil, "%s %s %d", c.id, to.CorrelationID, to.Partition),
	}, nil
}

// pair is an installation of two processors.
type pair struct {
	kafka    kafka.Config
	topology *kafka.Topology
	codec    *schemas.Codec
	keys     *secret.Keys
}

func openPair(t *testing.T, broker, prefix, registry string, keys *secret.Keys, migrate bool) *pair {
	t.Helper()
	ctx := t.Context()
	p := &pair{keys: keys, kafka: kafka.Config{
		Brokers: []string{broker}, Prefix: prefix, Partitions: 4, Topics: append(schemas.Topics(), abacusFamily.Topics(schemas.FamilyRecords{})...),
	}}
	cl, err := p.kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if migrate {
		if _, err := kafka.Migrate(ctx, p.kafka, cl); err != nil {
			t.Fatal(err)
		}
	}
	if p.topology, err = kafka.Load(ctx, p.kafka, cl); err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.codec, err = schemas.NewCodec(ctx, client, migrate); err != nil {
		t.Fatal(err)
	}
	return p
}

// process runs both processors in this process until ctx ends.
func (p *pair) process(ctx context.Context, dir string, log *slog.Logger) error {
	metrics := prometheus.NewRegistry()
	senders, err := commands.NewVerifier(p.keys, processor.Senders())
	if err != nil {
		return err
	}
	bodies, err := p.keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		return err
	}
	decides, err := processor.New(processor.Config{Codec: p.codec, Topology: p.topology, Senders: senders, Bodies: bodies, Verify: func(_, _ []byte) bool { return false }, Metrics: metrics})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	// The second processor has limits of its own, as one with heavy records has.
	for family, with := range map[schemas.Family]struct {
		processor      runtime.Processor
		records, ticks int
	}{
		schemas.Checkout: {processor: decides}, abacusFamily: {abacus{p.topology, abacusFamily}, 16, 8},
	} {
		r, err := runtime.New(runtime.Config{
			Name: family.Processor, Brokers: p.kafka.Brokers, Group: p.kafka.Prefix + family.Processor, TransactionalID: p.kafka.Prefix + family.Processor + "-0",
			InputTopic: p.topology.Name(family.Commands), StateTopic: p.topology.Name(family.State), PoisonTopic: p.topology.Name(family.Poison),
			StoreDir: filepath.Join(dir, "store-"+family.Processor+"-0"), FlushInterval: 500 * time.Millisecond, Processor: with.processor, Log: log, Metrics: metrics,
			MaxPollRecords: with.records, MaxTicks: with.ticks,
		})
		if err != nil {
			return err
		}
		group.Go(func() error { return r.Run(ctx) })
	}
	return group.Wait()
}

// Environment of the process that runs both processors.
const (
	envPair = "QUITTANCE_TEST_PAIR" // broker, prefix of the topics, schema registry, folder, master keys
	// The process is killed pairKills times, each time after pairAnswers answers of each
	// processor.
	pairKills, pairAnswers = 3, 40
)

// TestPairProcess is the process that TestSeveralProcessors starts and kills.
func TestPairProcess(t *testing.T) {
	with := strings.Fields(os.Getenv(envPair))
	if len(with) != 5 {
		t.Skip("TestSeveralProcessors starts it")
	}
	keys, err := secret.ParseKeys(with[4])
	if err != nil {
		t.Fatal(err)
	}
	p := openPair(t, with[0], with[1], with[2], keys, false)
	if err := p.process(t.Context(), with[3], servers.Logger(t)); err != nil {
		t.Fatal(err)
	}
}

// Two processors run in one process that is killed several times. Every command of each
// is carried out once, and each has replies of its own.
func TestSeveralProcessors(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processors for a while")
	}
	t.Parallel()
	prefix, dir := servers.Prefix(t), t.TempDir()
	broker, registry := servers.Kafka(t), servers.SchemaRegistry(t)
	p := openPair(t, broker, prefix, registry, secret.GenerateKeys(), true)
	counts := askPair(t, p, abacusFamily, commands.Protocol[abacusCommand, int](abacus{p.topology, abacusFamily}))
	sessions := askPair(t, p, schemas.Checkout, commands.CheckoutProtocol(p.codec, p.topology))

	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestPairProcess$", "-test.timeout", "10m")
		cmd.Env = append(os.Environ(), envPair+"="+strings.Join([]string{broker, prefix, registry, dir, p.keys.Reveal()}, " "))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	agencies := make([]string, 12)
	for i := range agencies {
		agencies[i] = uuid.NewString()
	}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	var sent [2]atomic.Int64
	var answered [2]atomic.Int64
	for n, agency := range agencies {
		senders.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				id := fmt.Sprintf("%d/%d", n, i)
				sent[0].Add(1)
				if _, err := counts.Ask(t.Context(), abacusCommand{agency, id}); err == nil {
					answered[0].Add(1)
				} else if !errors.Is(err, commands.ErrUnavailable) {
					t.Error(err)
				}
				sent[1].Add(1)
				if a, err := sessions.Ask(t.Context(), pairCreation(p, agency, id)); err == nil && a.Code == checkout.CodeOK {
					answered[1].Add(1)
				} else if !errors.Is(err, commands.ErrUnavailable) {
					t.Errorf("creating: %s, %v", a.Code, err)
				}
			}
		})
	}
	kills, giveUp := 0, time.Now().Add(4*time.Minute)
	running := start()
	for before := [2]int64{}; kills < pairKills && time.Now().Before(giveUp); time.Sleep(10 * time.Millisecond) {
		now := [2]int64{answered[0].Load(), answered[1].Load()}
		if now[0] >= before[0]+pairAnswers && now[1] >= before[1]+pairAnswers {
			kill(running)
			kills++
			running, before = start(), now
		}
	}
	close(stop)
	senders.Wait()
	defer kill(running)

	p.verify(t, abacusFamily, int(sent[0].Load()), func(r *kgo.Record) (command string, sequence int) {
		id, count, _ := strings.Cut(string(r.Value), " ")
		n, _ := strconv.Atoi(count)
		return id, n
	})
	created := map[string]int{}
	p.verify(t, schemas.Checkout, int(sent[1].Load()), func(r *kgo.Record) (command string, sequence int) {
		var e record.Event
		if err := p.codec.Decode(r.Value, &e); err != nil || e.Type != string(checkout.EventCreated) || string(r.Key) != e.Session.TenantID {
			t.Errorf("event %+v with the key %q: %v", e, r.Key, err)
			return "", 0
		}
		created[string(r.Key)]++
		return e.Session.OrderID, created[string(r.Key)]
	})
	t.Logf("%d kills; abacus: %d commands, %d answered; checkout: %d commands, %d answered", kills, sent[0].Load(), answered[0].Load(), sent[1].Load(), answered[1].Load())
	if kills < pairKills {
		t.Errorf("%d kills within the time limit, want %d", kills, pairKills)
	}
}

// askPair runs a client of one of the processors until the test ends.
func askPair[C, A any](t *testing.T, p *pair, family schemas.Family, protocol commands.Protocol[C, A]) *commands.Client[C, A] {
	t.Helper()
	signer, err := commands.NewSigner(p.keys, processor.SenderIngress)
	if err != nil {
		t.Fatal(err)
	}
	c, err := commands.New(t.Context(), commands.Config[C, A]{
		Kafka: p.kafka, Topology: p.topology, Family: family, Signer: signer, Protocol: protocol, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

func pairCreation(p *pair, agency, order string) checkout.Command {
	now := time.Now().UTC().Truncate(time.Millisecond)
	id := checkout.NewSessionID(now, p.topology.Partition(schemas.Checkout.Commands, agency), [16]byte(uuid.New()))
	return checkout.Command{At: now, TenantID: agency, SessionID: id, ApplicationID: agency, Do: checkout.Create{
		Session: checkout.Session{
			ID: id, ApplicationID: agency, TenantID: agency, OrderID: order, Amount: 100, Currency: "XAF", Mode: checkout.ModeHosted,
			PaymentRef: "0000000000000001", NoticeID: "n", TransactionID: "t", ExpiresAt: now.Add(time.Hour),
		},
		IdempotencyKey: order, BodyHash: []byte(order), CreationsPerMinute: 1_000_000,
	}}
}

// verify waits until every command has its event. It fails if a command has two events or
// if an agency's sequence has a gap.
func (p *pair) verify(t *testing.T, family schemas.Family, sent int, read func(*kgo.Record) (command string, sequence int)) {
	t.Helper()
	cl, err := p.kafka.Client(kgo.ConsumeTopics(p.topology.Name(family.Events)), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seen, last := map[string]bool{}, map[string]int{}
	take := func(r *kgo.Record) {
		command, sequence := read(r)
		key := string(r.Key)
		if seen[command] {
			t.Errorf("%s: %s is doubled", family.Processor, command)
		}
		if sequence != last[key]+1 {
			t.Errorf("%s: %s is number %d after %d", family.Processor, command, sequence, last[key])
		}
		seen[command], last[key] = true, sequence
	}
	for len(seen) < sent && !t.Failed() {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%s: %d of %d commands are lost", family.Processor, sent-len(seen), sent)
		}
		fetches.EachRecord(take)
	}
	// A further event would be a doubled one.
	quiet, done := context.WithTimeout(ctx, time.Second)
	defer done()
	for quiet.Err() == nil && !t.Failed() {
		cl.PollFetches(quiet).EachRecord(take)
	}
}
