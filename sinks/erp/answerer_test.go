package erp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/call"
	"quittance/internal/commands"
	erpclient "quittance/internal/erp"
	"quittance/internal/erpquery"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	deliverytest "quittance/test/deliveries"
	erptest "quittance/test/erps"
)

// house starts an ERP at which an agency has its dues in test mode.
func (e *erps) house(t *testing.T, agency string, answer http.HandlerFunc) registry.ERPSettings {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections() // of calls that hang
		server.Close()
	})
	s := registry.ERPSettings{
		AgencyID: agency, BaseURL: server.URL, Networks: loopback, Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("s3cret")},
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.by[erpclient.ID(agency, false)] = s
	return s
}

// hangs answers nothing until the caller leaves. most is the largest number of calls at once.
func hangs(most *atomic.Int64) http.HandlerFunc {
	var under atomic.Int64
	return func(_ http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-r.Context().Done()
		under.Add(-1)
	}
}

// owes answers with one due, whose label names the subject.
func owes(rw http.ResponseWriter, r *http.Request) {
	subject := r.URL.Query().Get("subject_ref")
	_, _ = fmt.Fprintf(rw, `{"items": [{"erp_due_ref": "D-%s", "label": "Patente de %s", "amount_minor": 500, "outstanding_minor": 500, "original_minor": 500, "currency": "XAF", "allow_partial": false}]}`, subject, subject)
}

// asking is an ERP's side and an asker's side of a hop.
type asking struct {
	*erptest.Hop
	erps    *erps
	metrics *prometheus.Registry
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	a := &asking{Hop: erptest.NewHop(t), erps: &erps{by: map[string]registry.ERPSettings{}}, metrics: prometheus.NewRegistry()}
	a.Metrics = a.metrics
	return a
}

// questions returns the number of questions with an outcome.
func (a *asking) questions(t *testing.T, outcome string) float64 {
	t.Helper()
	families, err := a.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "quittance_erp_questions_total" && m.GetLabel()[0].GetValue() == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no outcome %s", outcome)
	return 0
}

// A thousand questions to an ERP that hangs are all answered before their askers leave: as a time-out, or as too many. It
// is called 64 times at once, and the questions to another ERP meanwhile take no longer than usual.
func TestSlowERPDelaysNoOther(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	var most atomic.Int64
	dead, quick := a.erps.house(t, "dead", hangs(&most)), a.erps.house(t, "quick", owes)
	a.Answer(t, a.erps)
	client := a.Client(t)

	reasons := make(chan string, 1000)
	for n := range cap(reasons) {
		go func() {
			_, _, r := client.Dues(t.Context(), dead, fmt.Sprint("S-", n))
			reasons <- r.Reason()
		}()
	}
	deliverytest.Eventually(t, "the dead ERP has all its calls", func() bool { return most.Load() >= 64 })
	var waits []time.Duration
	for n := range 20 {
		begun := time.Now()
		dues, _, r := client.Dues(t.Context(), quick, fmt.Sprint("Q-", n))
		if !r.OK() || len(dues) != 1 || dues[0].Ref != fmt.Sprint("D-Q-", n) {
			t.Errorf("the quick ERP: %+v, %+v", dues, r)
		}
		waits = append(waits, time.Since(begun))
	}
	if longest := slices.Max(waits); longest > 2*time.Second {
		t.Errorf("the quick ERP's answer took %v beside a dead one", longest)
	}
	got := map[string]int{}
	for range cap(reasons) {
		got[<-reasons]++
	}
	// A busy machine may bring some of the 64 time-outs, which end together, after their askers have left.
	if got[call.FaultTimeout] == 0 || got[call.FaultTimeout]+got[erpclient.FaultUnanswered] != 64 || got[erpclient.FaultBusy] != 1000-64 {
		t.Errorf("answers of the dead ERP: %v", got)
	}
	if most.Load() != 64 || a.questions(t, "busy") != 1000-64 {
		t.Errorf("%d calls at once, %v busy", most.Load(), a.questions(t, "busy"))
	}
	t.Logf("beside a dead ERP: %v", waits)
}

// Two ingresses that ask at once get their own answers.
func TestTwoAskersAtOnce(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	quick := a.erps.house(t, "quick", owes)
	a.Answer(t, a.erps)
	var asking sync.WaitGroup
	for who, client := range []*erpquery.Client{a.Client(t), a.Client(t)} {
		for n := range 100 {
			asking.Go(func() {
				subject := fmt.Sprintf("%d-%d", who, n)
				if dues, _, r := client.Dues(t.Context(), quick, subject); len(dues) != 1 || dues[0].Ref != "D-"+subject {
					t.Errorf("%s: %+v, %+v", subject, dues, r)
				}
			})
		}
	}
	asking.Wait()
}

// A sink that is stopped while it asks still answers, and the next one answers the questions that came meanwhile.
func TestStoppedWhileItAsks(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	erp := a.erps.house(t, "a", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("subject_ref") == "slow" {
			arrived <- struct{}{}
			<-release
		}
		owes(rw, r)
	})
	stop := a.Answer(t, a.erps)
	client := a.Client(t)
	ask := func(subject string) <-chan call.Result {
		said := make(chan call.Result, 1)
		go func() {
			_, _, r := client.Dues(t.Context(), erp, subject)
			said <- r
		}()
		return said
	}
	slow := ask("slow")
	<-arrived
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	time.Sleep(200 * time.Millisecond) // it is stopping
	close(release)
	<-stopped
	meanwhile := ask("meanwhile")
	a.Metrics = nil
	a.Answer(t, a.erps)
	for who, said := range map[string]<-chan call.Result{"slow": slow, "meanwhile": meanwhile} {
		if r := <-said; !r.OK() {
			t.Errorf("%s: %+v", who, r)
		}
	}
}

// Nobody answers: the asker knows within its patience that it was not the ERP. A sink that comes later drops the question,
// which nobody waits for any more.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	var calls atomic.Int64
	erp := a.erps.house(t, "a", func(rw http.ResponseWriter, r *http.Request) { calls.Add(1); owes(rw, r) })
	begun := time.Now()
	if _, _, r := a.Ask(t, 500*time.Millisecond).Dues(t.Context(), erp, "x"); r.Reason() != erpclient.FaultUnanswered || time.Since(begun) > 3*time.Second {
		t.Errorf("%+v after %v", r, time.Since(begun))
	}
	a.Answer(t, a.erps)
	deliverytest.Eventually(t, "the late question is dropped", func() bool { return a.questions(t, "late") == 1 })
	if calls.Load() != 0 {
		t.Errorf("%d calls for nobody", calls.Load())
	}
}

// The largest answer that is read from an ERP passes, and a larger one is a fault of the ERP. No record has the subject
// or a label in plain, and a question that is not sealed with our keys is counted and asks nobody.
func TestRecordsOfQuestions(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	size := erpclient.MaxAnswer
	erp := a.erps.house(t, "a", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("subject_ref") != "SECRET-TP" {
			owes(rw, r)
			return
		}
		head, tail := `{"x": "LABEL`, `", "items": []}`
		_, _ = io.WriteString(rw, head+strings.Repeat("é", (size-len(head)-len(tail))/2)+tail)
	})
	a.Answer(t, a.erps)
	client := a.Client(t)
	if _, _, r := client.Dues(t.Context(), erp, "SECRET-TP"); !r.OK() {
		t.Errorf("the largest answer: %+v", r)
	}
	if size += 2; true {
		if _, _, r := client.Dues(t.Context(), erp, "SECRET-TP"); r.Reason() != call.FaultTooLarge {
			t.Errorf("a larger answer: %+v", r)
		}
	}
	for _, topic := range []string{schemas.TopicERPQueries, schemas.TopicERPAnswers} {
		err := a.Kafka.ReadBetween(t.Context(), a.Protocol.Topology.Name(topic), time.Unix(0, 0), time.Now().Add(time.Hour), nil, func(rec *kgo.Record) error {
			if text := string(rec.Key) + string(rec.Value); strings.Contains(text, "SECRET-TP") || strings.Contains(text, "LABEL") || len(rec.Headers) > 0 {
				t.Errorf("a record of %s has personal data in plain", topic)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	other := a.Protocol
	other.Keys = secret.GenerateKeys()
	rec, err := other.Encode(erpquery.Question{AgencyID: "a", SubjectRef: "x", NotAfter: time.Now().Add(time.Minute)}, &commands.ReplyTo{CorrelationID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	rec.Topic = a.Protocol.Topology.Name(schemas.TopicERPQueries)
	producer, err := a.Kafka.Producer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.ProduceSync(t.Context(), rec, &kgo.Record{Topic: rec.Topic, Value: []byte("no record")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	deliverytest.Eventually(t, "two questions cannot be read", func() bool { return a.questions(t, "unreadable") == 2 })
	if _, _, r := client.Dues(t.Context(), erp, "x"); !r.OK() {
		t.Errorf("after them: %+v", r)
	}
}
