package webhook_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// The tests of this file check when a delivery is done: when its outcome is in Kafka, not
// when the receiver has answered.

// signoffChild is the configuration of a worker in a process of its own.
type signoffChild struct {
	Kafka                    kafka.Config
	DSN, SchemaRegistry, URL string
}

const signoffEnv = "QUITTANCE_WEBHOOK_SIGNOFF_CHILD"

// TestSignoffChild is not a test. It is the process that the tests below stop and kill: a
// worker as in service.
func TestSignoffChild(t *testing.T) {
	text := os.Getenv(signoffEnv)
	if text == "" {
		t.Skip("only as the child of another test")
	}
	var c signoffChild
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Open(t.Context(), c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: c.URL})
	p, err := webhook.NewPolicy(webhook.Config{Endpoints: e, Now: time.Now, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = deliverytest.Worker(t, delivery.WorkerConfig{
		Kafka: c.Kafka, Codec: deliverytest.Codec(t, c.SchemaRegistry), Kind: webhook.Registration(e), Bodies: deliverytest.Bodies(), Outcomes: origin.NewSigner(string(webhook.Kind), deliverytest.Bodies()), Policy: p,
		History: deliveries.NewHistory(c.Kafka, client, deliveries.NewStore(pool, nil)),
		Now:     time.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	}).Run(t.Context())
}

// process is a child process.
type process struct {
	*exec.Cmd
	dead sync.Once
}

func startChild(t *testing.T, b *deliverytest.Bench, url string) *process {
	t.Helper()
	text, err := json.Marshal(signoffChild{b.Kafka, b.DSN, servers.SchemaRegistry(t), url})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(os.Args[0], "-test.run=^TestSignoffChild$", "-test.count=1")}
	p.Env = append(os.Environ(), signoffEnv+"="+string(text))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// stop returns when no thread of the process runs any more.
func (p *process) stop(t *testing.T) {
	var status syscall.WaitStatus
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Errorf("stopping the worker: %v", err)
	}
	if _, err := syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Errorf("stopping the worker: %v, status %x", err, status)
	}
}

// kill returns when the process is gone.
func (p *process) kill() {
	p.dead.Do(func() { _ = p.Process.Kill(); _ = p.Wait() })
}

// standing is the place of an event's delivery on webhooks.deliveries.
func standing(t *testing.T, b *deliverytest.Bench, event string) (partition int32, offset int64) {
	t.Helper()
	for _, r := range b.Records(t, schemas.TopicWebhooksDeliveries) {
		var d record.Delivery
		if err := b.Codec.Decode(r.Value, &d); err != nil {
			t.Fatal(err)
		}
		if d.EventID == event {
			return r.Partition, r.Offset
		}
	}
	t.Fatalf("%s is not planned", event)
	return 0, 0
}

// committed returns the group's offsets by partition. A missing offset is 0.
func committed(t *testing.T, b *deliverytest.Bench) map[int32]int64 {
	t.Helper()
	at, err := kadm.NewClient(b.Client).FetchOffsets(t.Context(), b.Kafka.Prefix+"webhook-worker")
	if err != nil {
		t.Fatal(err)
	}
	out := map[int32]int64{}
	at.Each(func(o kadm.OffsetResponse) {
		if o.Topic == b.Kafka.Prefix+schemas.TopicWebhooksDeliveries {
			out[o.Partition] = max(o.At, 0)
		}
	})
	return out
}

// The receiver has answered 200 and the worker dies before it has read the answer: the
// worker is stopped before the answer is written and killed after it. Its successor sends
// the event again under the same id, with the same bytes and a new timestamp and
// signature. The next event was delivered and settled before the crash. It is neither lost
// nor repeated.
func TestKilledBetweenAnswerAndOutcome(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	child := startChild(t, b, own.URL)

	delivered := func(event string) func() bool {
		return func() bool { return b.State(t, webhook.Kind, event, "own") == "delivered" }
	}
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_0", "app"))
	deliverytest.Eventually(t, "evt_0 is delivered", delivered("evt_0"))

	now, killed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	own.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-id") != "evt_1" {
			return
		}
		once.Do(func() {
			select {
			case <-now:
			case <-r.Context().Done():
				return // the test has failed
			}
			child.stop(t)
			w.WriteHeader(http.StatusOK)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("answering: %v", err)
			}
			child.kill()
			close(killed)
		})
	})
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	deliverytest.Eventually(t, "evt_1 is under way", func() bool { return own.Count()["evt_1"] == 1 })
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_2", "app"))
	deliverytest.Eventually(t, "evt_2 is delivered", delivered("evt_2"))
	partition, offset := standing(t, b, "evt_1")
	deliverytest.Eventually(t, "everything before evt_1 is committed", func() bool { return committed(t, b)[partition] >= offset })
	time.Sleep(600 * time.Millisecond) // for three commits, were one to come too early
	close(now)
	<-killed
	if at := committed(t, b)[partition]; at != offset {
		t.Errorf("the group stands at %d, the delivery without an outcome at %d", at, offset)
	}
	for _, a := range b.Attempts(t) {
		if a.Delivery.EventID == "evt_1" {
			t.Fatalf("an outcome of evt_1: the worker was killed too late")
		}
	}

	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	deliverytest.Eventually(t, "evt_1 is delivered", delivered("evt_1"))
	settled(t, b)
	if got := own.Count(); got["evt_0"] != 1 || got["evt_1"] != 2 || got["evt_2"] != 1 {
		t.Errorf("events came %v times, want 1, 2 and 1", got)
	}
	var sent []deliverytest.Request
	for _, r := range own.Got() {
		if r.EventID == "evt_1" {
			sent = append(sent, r)
		}
	}
	for _, name := range []string{"webhook-id", eventID, "Content-Type"} {
		if a, b := sent[0].Header.Get(name), sent[1].Header.Get(name); a != b || a == "" {
			t.Errorf("%s was %q, then %q", name, a, b)
		}
	}
	if sent[0].Body != sent[1].Body {
		t.Errorf("body was %q, then %q", sent[0].Body, sent[1].Body)
	}
	if a, b := timestamp(t, sent[0]), timestamp(t, sent[1]); b <= a {
		t.Errorf("timestamp was %d, then %d", a, b)
	}
	wh, err := standardwebhooks.NewWebhook(secret1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sent {
		if err := wh.Verify([]byte(r.Body), r.Header); err != nil {
			t.Error(err)
		}
	}
}

func timestamp(t *testing.T, r deliverytest.Request) int64 {
	t.Helper()
	n, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gate kills the worker at its first connection, before a byte of it is read.
type gate struct {
	net.Listener
	first sync.Once
	kill  func()
}

func (g *gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	g.first.Do(func() {
		time.Sleep(600 * time.Millisecond) // for three commits, were one to come too early
		g.kill()
		if err == nil {
			_ = c.Close() // with whatever it had written, unread
			c, err = g.Listener.Accept()
		}
	})
	return c, err
}

// The worker connects and dies before the receiver has read a byte of the request. Its
// successor sends the event.
func TestKilledBeforeTheRequest(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	child := startChild(t, b, url)
	killed := make(chan struct{})
	gated := &httptest.Server{
		Listener: &gate{Listener: l, kill: func() { child.kill(); close(killed) }},
		Config:   &http.Server{Handler: own.Config.Handler},
	}
	gated.Start()
	t.Cleanup(func() { gated.CloseClientConnections(); gated.Close() })
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: url})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	select {
	case <-killed:
	case <-time.After(deliverytest.Patience):
		t.Fatal("the worker has not connected")
	}
	partition, offset := standing(t, b, "evt_1")
	if at := committed(t, b)[partition]; at > offset {
		t.Errorf("the group stands at %d, the delivery that was not sent at %d", at, offset)
	}
	if n := len(own.Got()) + len(b.Attempts(t)); n != 0 {
		t.Fatalf("%d requests and outcomes: the worker was killed too late", n)
	}
	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	deliverytest.Eventually(t, "delivered", func() bool { return b.State(t, webhook.Kind, "evt_1", "own") == "delivered" })
	settled(t, b)
	if n := own.Count()["evt_1"]; n != 1 {
		t.Errorf("it came %d times", n)
	}
}

// Quick, slow and hanging endpoints share a partition. At all times each record below the
// group's committed offset has an outcome on deliveries.attempts. While calls hang, the
// committed offset is that of the first of them, although later records are delivered.
// Afterwards it goes to the end.
func TestCommittedOffsetStaysBelowTheUnsettled(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	release := make(chan struct{})
	own.Answer(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path[1] {
		case 's':
			time.Sleep(100 * time.Millisecond)
		case 'h':
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	e := newEndpoints()
	const partition = 0
	for _, kind := range []string{"quick", "slow", "hang"} {
		id := inPartition(kind, partition)
		e.add(kind, registry.WebhookEndpoint{ID: id, URL: own.URL + "/" + kind})
	}
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))

	type moment struct{ committed, first int64 }
	var low, samples int64
	// check reads the group's offset first: the records below it were settled before.
	check := func() (m moment, delivered int) {
		m.committed = committed(t, b)[partition]
		outcomes := map[string]int32{} // the latest round with an outcome, from 1
		for _, a := range b.Attempts(t) {
			outcomes[a.Delivery.DeliveryID] = max(outcomes[a.Delivery.DeliveryID], a.Delivery.Round+1)
			if a.Outcome == string(deliveries.OutcomeDelivered) {
				delivered++
			}
		}
		m.first = -1
		for _, r := range b.Records(t, schemas.TopicWebhooksDeliveries) {
			var d record.Delivery
			if err := b.Codec.Decode(r.Value, &d); err != nil {
				t.Fatal(err)
			}
			if r.Partition != partition {
				t.Fatalf("%s stands in partition %d", d.DestinationID, r.Partition)
			}
			if outcomes[d.DeliveryID] > d.Round {
				continue
			}
			if r.Offset < m.committed {
				t.Errorf("the group stands at %d, and %s at %d has no outcome", m.committed, d.EventID, r.Offset)
			}
			if m.first < 0 {
				m.first = r.Offset
			}
		}
		if m.committed < low {
			t.Errorf("the group went back from %d to %d", low, m.committed)
		}
		if m.committed > low {
			low = m.committed
			samples++
		}
		return m, delivered
	}
	notify := func(prefix string, quick, slow, hang int) {
		for kind, n := range map[string]int{"quick": quick, "slow": slow, "hang": hang} {
			if n > 0 {
				b.Notify(t, schemas.TopicWebhooks, true, notifications(b, kind, ids(prefix+kind, n))...)
			}
		}
	}
	notify("a", 60, 20, 0)
	notify("b", 0, 0, 4)
	deliverytest.Eventually(t, "calls hang", func() bool { check(); return len(hanging(own)) == 4 })
	notify("c", 100, 20, 0)
	deliverytest.Eventually(t, "all others are delivered, and the group stands at the first that hangs", func() bool {
		m, delivered := check()
		return delivered == 200 && m.first >= 0 && m.committed == m.first
	})
	at, _ := check()
	close(release)
	deliverytest.Eventually(t, "everything is delivered", func() bool { _, delivered := check(); return delivered == 204 })
	settled(t, b)
	if end, _ := check(); end.committed <= at.committed || end.first >= 0 {
		t.Errorf("the group stood at %d while calls hung and at %d after them", at.committed, end.committed)
	}
	t.Logf("the group was seen at %d places, %d while calls hung", samples, at.committed)
}

func hanging(r *deliverytest.Receiver) []deliverytest.Request {
	var out []deliverytest.Request
	for _, g := range r.Got() {
		if g.Path == "/hang" {
			out = append(out, g)
		}
	}
	return out
}

// inPartition returns a name that begins with prefix and, as a key, goes to the given one
// of four partitions.
func inPartition(prefix string, partition int) string {
	p := kgo.StickyKeyPartitioner(nil).ForTopic("")
	for i := 0; ; i++ {
		name := prefix + strconv.Itoa(i)
		if p.Partition(&kgo.Record{Key: []byte(name)}, 4) == partition {
			return name
		}
	}
}
