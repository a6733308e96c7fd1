package erp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
	deliverytest "quittance/test/deliveries"
	"quittance/test/erps"
)

// house is a registry with the ERP of the agency "a" in test mode, at an address that may be
// changed.
type house struct {
	url     atomic.Value // string
	service atomic.Value // registry.Service of every due
}

func (h *house) ERP(agencyID string, live bool) (registry.ERPSettings, bool) {
	url, _ := h.url.Load().(string)
	return registry.ERPSettings{
		AgencyID: agencyID, Live: live, BaseURL: url, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("s3cret")},
	}, agencyID == "a" && !live
}

func (h *house) Agency(id string) (registry.Agency, bool) {
	return registry.Agency{ID: id, Slug: "impots"}, true
}

func (h *house) ResolveService(string, string) (registry.Service, bool) {
	s, ok := h.service.Load().(registry.Service)
	return s, ok
}

// world is a reader of dues and the ERP that it asks.
type world struct {
	*erp.Dues
	house   *house
	metrics *prometheus.Registry
	calls   atomic.Int64
	now     atomic.Int64 // seconds of the service's clock
	answer  atomic.Value // func(http.ResponseWriter, *http.Request)
}

// A way asks the ERPs of a house.
type way func(t *testing.T, h *house) erp.Asker

// itself calls the ERP from the process that shows the dues, as operators' commands do.
func itself(*testing.T, *house) erp.Asker { return erp.New(erp.Config{Loopback: true}) }

// bySink has `sink erp` ask, over a real Kafka.
func bySink(t *testing.T, h *house) erp.Asker {
	t.Helper()
	hop := erps.NewHop(t)
	hop.Answer(t, h)
	return hop.Client(t)
}

// bothWays runs a test for each way.
func bothWays(t *testing.T, test func(*testing.T, way)) {
	t.Helper()
	for name, w := range map[string]way{"itself": itself, "by sink erp": bySink} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func newWorld(t *testing.T, shared time.Duration, asks way) *world {
	t.Helper()
	w := &world{house: &house{}, metrics: prometheus.NewRegistry()}
	w.says(`{"items":[]}`)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.calls.Add(1)
		w.answer.Load().(func(http.ResponseWriter, *http.Request))(rw, r)
	}))
	t.Cleanup(server.Close)
	w.house.url.Store(server.URL)
	var err error
	w.Dues, err = erp.NewDues(erp.DuesConfig{
		Client: asks(t, w.house), Registry: w.house, Shared: shared, Metrics: w.metrics,
		Now: func() time.Time { return time.Unix(w.now.Load(), 0).UTC() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) does(do func(http.ResponseWriter, *http.Request)) { w.answer.Store(do) }

func (w *world) says(body string) {
	w.does(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, body) })
}

func (w *world) list(t *testing.T) erp.Answer {
	t.Helper()
	a, err := w.List(t.Context(), "a", false, "NIU 1/é")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *world) fresh(t *testing.T) erp.Answer {
	t.Helper()
	a, err := w.Fresh(t.Context(), "a", false, "NIU 1/é")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// gauge returns the value of a gauge.
func (w *world) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}

// A good answer is shared, but a checkout gets a new one. A mapping counts at once, also for
// a shared answer. An ERP that is away is never an empty list.
func TestSharedAnswers(t *testing.T) {
	t.Parallel()
	bothWays(t, testSharedAnswers)
}

func testSharedAnswers(t *testing.T, asks way) {
	w := newWorld(t, 0, asks)
	w.now.Store(1000)
	first := string(body(t, due("D-1", nil), due("D-2", map[string]any{"currency": "?"})))
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/dues" || r.URL.Query().Get("subject_ref") != "NIU 1/é" || len(r.URL.Query()) != 1 || r.Header.Get("Authorization") != "Bearer s3cret" || r.Method != http.MethodGet {
			rw.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(rw, first)
	})
	a := w.list(t)
	d, ok := a.Find("D-1")
	if a.Status != erp.SourceOK || !a.AsOf.Equal(time.Unix(1000, 0)) || len(a.Dues) != 1 || len(a.Refused) != 1 || !ok || d.Service.ID != "" || a.Reason != "" {
		t.Fatalf("%+v", a)
	}
	w.says(`{"items":[]}`)
	w.now.Store(1001)
	w.house.service.Store(registry.Service{ID: "s", Code: "patente"})
	if a := w.list(t); w.calls.Load() != 1 || len(a.Dues) != 1 || a.Dues[0].Service.Code != "patente" || !a.AsOf.Equal(time.Unix(1000, 0)) {
		t.Errorf("%d calls, %+v", w.calls.Load(), a)
	}
	if a := w.fresh(t); w.calls.Load() != 2 || a.Status != erp.SourceOK || len(a.Dues) != 0 || !a.AsOf.Equal(time.Unix(1001, 0)) {
		t.Errorf("%d calls, %+v", w.calls.Load(), a)
	}
	w.does(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	w.now.Store(1002)
	if a := w.fresh(t); a.Status != erp.SourceUnavailable || a.Reason != "http_503" || !a.AsOf.Equal(time.Unix(1001, 0)) {
		t.Errorf("%+v", a)
	}
	if a := w.list(t); w.calls.Load() != 3 || a.Status != erp.SourceOK {
		t.Errorf("a good answer that is still shared: %d calls, %+v", w.calls.Load(), a)
	}
	if _, err := w.List(t.Context(), "a", true, "x"); !errors.Is(err, erp.ErrNoERP) {
		t.Errorf("the live mode: %v", err)
	}
	for _, ref := range []string{"", " ", "a\nb", strings.Repeat("x", 201), "\xff"} {
		if _, err := w.Fresh(t.Context(), "a", false, ref); !errors.Is(err, erp.ErrReference) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	families, err := w.metrics.Gather()
	if text := fmt.Sprint(families); err != nil || !strings.Contains(text, `"http_503"`) || strings.Contains(text, "NIU") {
		t.Errorf("metrics: %s, %v", text, err)
	}
}

// What an ERP does wrong makes it unavailable, with a reason. No text has the subject.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	bothWays(t, testUnavailable)
}

func testUnavailable(t *testing.T, asks way) {
	huge := strings.Repeat(" ", 5<<20) + `{"items":[]}`
	for reason, do := range map[string]func(http.ResponseWriter, *http.Request){
		"answer_invalid:html":     func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "<html>NIU 1/é") },
		"answer_invalid:no_items": func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `{"dues":[]}`) },
		"answer_too_large":        func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, huge) },
		"answer_invalid:not_json": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) },
		"http_404":                func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) },
		"redirect": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "/other", http.StatusFound)
		},
		"connection_broken": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"timeout": func(rw http.ResponseWriter, r *http.Request) { // the body drips
			for r.Context().Err() == nil {
				_, _ = io.WriteString(rw, " ")
				rw.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 0, asks)
			w.does(do)
			begun := time.Now()
			if a := w.list(t); a.Status != erp.SourceUnavailable || a.Reason != reason || !a.AsOf.IsZero() || len(a.Dues)+len(a.Refused) > 0 {
				t.Errorf("%+v", a)
			}
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("took %v", took)
			}
			if w.says(`{"items":[]}`); w.list(t).Status != erp.SourceOK {
				t.Error("a failure is kept")
			}
		})
	}
}

// agencies adds the list of agencies to a house.
type agencies struct{ *house }

func (agencies) Agencies() []registry.Agency { return []registry.Agency{{ID: "a", Slug: "impots"}} }

// The probe of the dues asks for a subject that does not exist, and checks the answer.
func TestProbeDues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, itself)
	client := erp.New(erp.Config{Loopback: true})
	for body, reason := range map[string]string{`{"items":[]}`: "", "<p>": "answer_invalid:html"} {
		w.says(body)
		if got := erp.ProbeDues(t.Context(), client, agencies{w.house}); len(got) != 1 || got[0].Name() != "impots/test" || got[0].Result.Reason() != reason {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// There is one call at a time for a subject. Calls of List share it. A checkout waits for a
// call that begins after it, and several checkouts share that one. A caller who leaves ends
// no call of others.
func TestOneCallAtATime(t *testing.T) {
	t.Parallel()
	bothWays(t, testOneCallAtATime)
}

func testOneCallAtATime(t *testing.T, asks way) {
	w := newWorld(t, time.Nanosecond, asks)
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	var under, most atomic.Int64
	w.does(func(rw http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), under.Add(1)))
		arrived <- struct{}{}
		<-release
		under.Add(-1)
		_, _ = io.WriteString(rw, `{"items":[]}`)
	})
	type result struct {
		answer erp.Answer
		err    error
	}
	answers := make(chan result, 10)
	ask := func(ctx context.Context, do func(context.Context, string, bool, string) (erp.Answer, error)) {
		go func() {
			a, err := do(ctx, "a", false, "NIU-1")
			answers <- result{a, err}
		}()
	}
	leaving, leave := context.WithCancel(t.Context())
	ask(leaving, w.List)
	<-arrived
	ask(t.Context(), w.List)
	for range 3 {
		ask(t.Context(), w.Fresh)
	}
	leave()
	if r := <-answers; !errors.Is(r.err, context.Canceled) {
		t.Errorf("whoever left: %+v", r)
	}
	deliverytest.Eventually(t, "four wait", func() bool { return w.gauge(t, "quittance_erp_dues_waiting") == 4 })
	release <- struct{}{}
	<-arrived // the call for the checkouts
	release <- struct{}{}
	for range 4 {
		if r := <-answers; r.err != nil || r.answer.Status != erp.SourceOK {
			t.Errorf("%+v", r)
		}
	}
	if w.calls.Load() != 2 || most.Load() != 1 {
		t.Errorf("%d calls, %d at once, want 2, one at a time", w.calls.Load(), most.Load())
	}
}
