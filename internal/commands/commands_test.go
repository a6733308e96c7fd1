package commands_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/stack"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/servers"
)

const agency = "018f0000-0000-7000-8000-000000000001"

type broker struct {
	t        *testing.T
	cfg      kafka.Config
	topology *kafka.Topology
	codec    *schemas.Codec
	keys     *secret.Keys

	mu   sync.Mutex
	from map[string]int // commands by sender
}

func open(t *testing.T) *broker {
	t.Helper()
	return openOn(t, servers.Kafka(t))
}

func openOn(t *testing.T, address string) *broker {
	t.Helper()
	ctx := t.Context()
	b := &broker{t: t, keys: secret.GenerateKeys(), from: map[string]int{}, cfg: kafka.Config{Brokers: []string{address}, Prefix: servers.Prefix(t)}}
	cl, err := b.cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(ctx, b.cfg, cl); err != nil {
		t.Fatal(err)
	}
	if b.topology, err = kafka.Load(ctx, b.cfg, cl); err != nil {
		t.Fatal(err)
	}
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.codec, err = schemas.NewCodec(ctx, registry, true); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *broker) client(timeout time.Duration) *commands.Checkout {
	b.t.Helper()
	signer, err := commands.NewSigner(b.keys, "ingress")
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := commands.New(b.t.Context(), commands.Config[checkout.Command, checkout.Answer]{
		Kafka: b.cfg, Topology: b.topology, Family: schemas.Checkout, Signer: signer, Protocol: commands.CheckoutProtocol(b.codec, b.topology), Timeout: timeout, Log: servers.Logger(b.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	return c
}

// answer simulates a processor that returns the session id. It replies twice to every
// command with a reply address, as after a repeated reply.
func (b *broker) answer() {
	b.t.Helper()
	cl, err := b.cfg.Producer(kgo.ConsumeTopics(b.topology.Name(schemas.TopicCommands)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	verifier, err := commands.NewVerifier(b.keys, []string{"ingress", "cases"})
	if err != nil {
		b.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
				from, err := verifier.Verify(rec)
				if err != nil {
					b.t.Errorf("a command is not signed: %v", err)
				}
				b.mu.Lock()
				b.from[from]++
				b.mu.Unlock()
				var c record.Command
				if err := b.codec.Decode(rec.Value, &c); err != nil {
					b.t.Error(err)
				}
				if c.CorrelationID == "" {
					return
				}
				to := checkout.ReplyTo{CorrelationID: c.CorrelationID, Partition: c.ReplyPartition}
				value, err := b.codec.Encode(mapping.Reply(to, checkout.Answer{Code: checkout.CodeOK, Session: &checkout.Session{ID: c.SessionID}}))
				if err != nil {
					b.t.Error(err)
				}
				for range 2 {
					cl.Produce(ctx, &kgo.Record{Topic: b.topology.Name(schemas.TopicReplies), Partition: to.Partition, Key: []byte(to.CorrelationID), Value: value}, nil)
				}
			})
		}
	})
	b.t.Cleanup(func() { cancel(); wg.Wait(); cl.Close() })
}

// Several instances share partitions of replies. Each request receives its own answer.
func TestEveryAnswerFindsItsQuestion(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.answer()
	clients := []*commands.Checkout{b.client(20 * time.Second), b.client(20 * time.Second), b.client(20 * time.Second)}
	var wg sync.WaitGroup
	for n := range 300 {
		wg.Go(func() {
			id := fmt.Sprintf("chs_%d", n)
			a, err := clients[n%3].Ask(t.Context(), checkout.Command{SessionID: id, TenantID: agency, Do: checkout.Cancel{}})
			if err != nil || a.Code != checkout.CodeOK || a.Session.ID != id {
				t.Errorf("%s was answered %+v, %v", id, a, err)
			}
		})
	}
	wg.Wait()
}

// Two roles of one process share a client. Each signs its own commands.
func TestSeveralSendersShareAClient(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.answer()
	ingress := b.client(20 * time.Second)
	signer, err := commands.NewSigner(b.keys, "cases")
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range []*commands.Checkout{ingress, ingress.As(signer), ingress.As(signer)} {
		id := fmt.Sprintf("chs_%d", n)
		if a, err := c.Ask(t.Context(), checkout.Command{SessionID: id, TenantID: agency, Do: checkout.Cancel{}}); err != nil || a.Session.ID != id {
			t.Errorf("got %+v, %v", a, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from["ingress"] != 1 || b.from["cases"] != 2 {
		t.Errorf("commands by sender: %v", b.from)
	}
}

func TestNoAnswerInTime(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.client(200 * time.Millisecond)
	cmd := checkout.Command{SessionID: "chs_x", TenantID: agency, Do: checkout.Cancel{}}
	if _, err := c.Ask(t.Context(), cmd); !errors.Is(err, commands.ErrUnavailable) {
		t.Errorf("without a processor: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Ask(ctx, cmd); !errors.Is(err, commands.ErrUnavailable) {
		t.Errorf("a caller that cancelled: %v", err)
	}
	if err := c.Tell(t.Context(), cmd); err != nil {
		t.Errorf("Tell without a processor: %v", err)
	}
}

func TestSessionIDsRouteThemselves(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.answer()
	c := b.client(20 * time.Second)
	id := checkout.NewSessionID(time.Now(), 3, [16]byte{1})
	if a, err := c.Ask(t.Context(), checkout.Command{SessionID: id, Do: checkout.Cancel{}}); err != nil || a.Session.ID != id {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, bad := range []string{"", "chs_x", checkout.NewSessionID(time.Now(), 9999, [16]byte{})} {
		if _, err := c.Ask(t.Context(), checkout.Command{SessionID: bad, Do: checkout.Cancel{}}); !errors.Is(err, checkout.ErrMalformedID) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// While the broker was away the buffer of records filled, and every further request waited
// until its records were given up, half a minute later.
func TestFullBufferAnswersInTime(t *testing.T) {
	t.Parallel()
	ports, err := stack.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	broker, err := stack.StartKafka(t.Context(), stack.KafkaConfig{Dir: servers.Dir(t), Port: ports[0], ControllerPort: ports[1], Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Stop(context.WithoutCancel(t.Context())) })
	const patience = 200 * time.Millisecond
	c := openOn(t, broker.Addr()).client(patience)
	cmd := checkout.Command{SessionID: "chs_1", TenantID: agency, Do: checkout.Cancel{}}
	for begun := time.Now(); ; { // the first records of a connection take longer
		err := c.Tell(t.Context(), cmd)
		if err == nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
	if err := broker.Kill(); err != nil {
		t.Fatal(err)
	}
	ask := func(n int) (longest time.Duration) {
		var wg sync.WaitGroup
		waits := make([]time.Duration, n)
		for i := range waits {
			wg.Go(func() {
				begun := time.Now()
				if _, err := c.Ask(t.Context(), cmd); !errors.Is(err, commands.ErrUnavailable) {
					t.Errorf("without a broker: %v", err)
				}
				waits[i] = time.Since(begun)
			})
		}
		wg.Wait()
		return slices.Max(waits)
	}
	ask(10_000) // the client's buffer
	if longest := ask(100); longest > 5*time.Second {
		t.Errorf("a request waited %s, want about %s", longest, patience)
	}
	begun := time.Now()
	if err := c.Tell(t.Context(), cmd); !errors.Is(err, commands.ErrUnavailable) || time.Since(begun) > 5*time.Second {
		t.Errorf("Tell without a broker: %v after %s", err, time.Since(begun))
	}
}

// Any producer may send a further answer to an address that a client has made. Two waits do
// not disturb each other, and silence ends with the context.
func TestExpect(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.client(20 * time.Second)
	said, silent := c.Expect(), c.Expect()
	defer said.Close()
	defer silent.Close()
	if said.Address() == silent.Address() {
		t.Fatal("two waits have one address")
	}
	cl, err := b.cfg.Producer(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	to := said.Address()
	value, err := b.codec.Encode(&record.Reply{CorrelationID: to.CorrelationID, Code: string(checkout.CodeCollectionNotSent)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a repeated answer changes nothing
		if err := cl.ProduceSync(t.Context(), &kgo.Record{
			Topic: b.topology.Name(schemas.TopicReplies), Partition: to.Partition, Key: []byte(to.CorrelationID), Value: value,
		}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if a, ok := said.Await(ctx); !ok || a.Code != checkout.CodeCollectionNotSent {
		t.Errorf("heard %+v, %v", a, ok)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if a, ok := silent.Await(ended); ok {
		t.Errorf("heard %+v from nobody", a)
	}
}
