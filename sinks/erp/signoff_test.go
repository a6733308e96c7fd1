package erp_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// signoffChild is the configuration of a worker in a process of its own.
type signoffChild struct {
	Kafka                    kafka.Config
	DSN, SchemaRegistry, URL string
}

const signoffEnv = "QUITTANCE_ERP_SIGNOFF_CHILD"

func oneERP(url string) *erps {
	auth := registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("t")}
	return &erps{by: map[string]registry.ERPSettings{"agency/test": {BaseURL: url, Auth: auth, Networks: loopback}}}
}

// TestSignoffChild is not a test. It is the process that the test below stops and kills:
// a worker as in service.
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
	e := oneERP(c.URL)
	_ = deliverytest.Worker(t, delivery.WorkerConfig{
		Kafka: c.Kafka, Codec: deliverytest.Codec(t, c.SchemaRegistry), Kind: erp.Registration(e), Bodies: deliverytest.Bodies(), Outcomes: origin.NewSigner(string(erp.Kind), deliverytest.Bodies()), Policy: erp.NewPolicy(e, caller()),
		History: deliveries.NewHistory(c.Kafka, client, deliveries.NewStore(pool, nil)),
		Now:     time.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	}).Run(t.Context())
}

// The ERP has accepted a confirmation and the worker dies before it has read the answer:
// the worker is stopped before the answer is written and killed after it. Its successor
// sends the same bytes under the same Idempotency-Key, so the ERP recognises the
// repetition.
func TestKilledBetweenAnswerAndOutcome(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, "Idempotency-Key")
	cfg := sender(b, oneERP(r.URL))
	text, err := json.Marshal(signoffChild{b.Kafka, b.DSN, servers.SchemaRegistry(t), r.URL})
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestSignoffChild$", "-test.count=1")
	child.Env = append(os.Environ(), signoffEnv+"="+string(text))
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = child.Process.Kill(); _ = child.Wait() })
	t.Cleanup(kill)
	now, killed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.Answer(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Idempotency-Key") != "tx-1" {
			return
		}
		once.Do(func() {
			select {
			case <-now:
			case <-req.Context().Done():
				return // the test has failed
			}
			defer close(killed)
			var status syscall.WaitStatus
			if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Errorf("stopping the worker: %v", err)
			}
			if _, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
				t.Errorf("stopping the worker: %v, status %x", err, status)
			}
			w.WriteHeader(http.StatusCreated)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("answering: %v", err)
			}
			kill()
		})
	})
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	confirm := func(id string) {
		n := b.Notification(id, "app")
		n.TenantID = "agency"
		b.Notify(t, schemas.TopicConfirmations, true, n)
	}
	delivered := func(id string) {
		t.Helper()
		deliverytest.Eventually(t, id+" is delivered", func() bool { return b.State(t, erp.Kind, id, "agency/test") == "delivered" })
	}
	// The agency is the only key on the topic: the first record has offset 0, tx-1 1, tx-2 2.
	committed := func() int64 {
		at, err := kadm.NewClient(b.Client).FetchOffsets(t.Context(), b.Kafka.Prefix+"erp-worker")
		if err != nil {
			t.Fatal(err)
		}
		var highest int64
		at.Each(func(o kadm.OffsetResponse) { highest = max(highest, o.At) })
		return highest
	}
	confirm("tx-0")
	delivered("tx-0")
	confirm("tx-1")
	deliverytest.Eventually(t, "tx-1 is under way", func() bool { return r.Count()["tx-1"] == 1 })
	confirm("tx-2")
	delivered("tx-2")
	deliverytest.Eventually(t, "everything before tx-1 is committed", func() bool { return committed() >= 1 })
	time.Sleep(600 * time.Millisecond) // for three commits, were one to come too early
	close(now)
	<-killed
	if at := committed(); at != 1 {
		t.Errorf("the group stands at %d, the confirmation without an outcome at 1", at)
	}
	for _, a := range b.Attempts(t) {
		if a.Delivery.EventID == "tx-1" {
			t.Fatal("an outcome of tx-1: the worker was killed too late")
		}
	}

	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	delivered("tx-1")
	if got := r.Count(); got["tx-0"] != 1 || got["tx-1"] != 2 || got["tx-2"] != 1 {
		t.Errorf("confirmations came %v times, want 1, 2 and 1", got)
	}
	for _, g := range r.Got() {
		if want := string(b.Notification(g.EventID, "app").Body); g.Body != want {
			t.Errorf("under key %s: %s", g.EventID, g.Body)
		}
	}
}
