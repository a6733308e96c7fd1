package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/simulator"
)

func TestControlNamesFieldAndMend(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	reference := m.request("242066123456")
	for _, row := range []struct {
		path, body string
		status     int
		field      string
	}{
		{"/clock", ``, 422, "advance"},
		{"/clock", `{"advance":"1d"}`, 422, "advance"},
		{"/clock", `{"advance":"-1h"}`, 422, "advance"},
		{"/clock", `{"advance":24}`, 422, "advance"},
		{"/clock", `{"advance":"1h","by":1}`, 422, "by"},
		{"/clock", `[]`, 400, ""},
		{"/clock", `{`, 400, ""},
		{"/mtn", `{"status":302}`, 422, "status"},
		{"/mtn", `{"delay":"1h"}`, 422, "delay"},
		{"/mtn", `{"times":0}`, 422, "times"},
		{"/airtel", `{"status":200,"delay":"1h"}`, 422, "delay"},
		{"/erp/impots", `{"status":99}`, 422, "status"},
		{"/erp/impots", `{"status":"500"}`, 422, "status"},
		{"/erp/impots", `{"refuse":{"code":"x"}}`, 422, "refuse.status"},
		{"/erp/impots", `{"refuse":{"status":500}}`, 422, "refuse.status"},
		{"/erp/impots", `{"refuse":{"status":422,"text":"x"}}`, 422, "refuse.text"},
		{"/erp/impots", `{"dues":{"NIU-1":[7]}}`, 422, "dues.NIU-1[0]"},
		{"/erp/impots", `{"dues":[]}`, 422, "dues"},
		{"/erp/impots", `{"hang":true}`, 422, "hang"},
		{"/inbox/a", `{"redirect":"/x"}`, 422, "redirect"},
		{"/inbox/a", `{"retry_after":-1}`, 422, "retry_after"},
		{"/inbox/a", `{"hang":"yes"}`, 422, "hang"},
		{"/collections/" + uuid.NewString() + "/approve", ``, 404, "id"},
		{"/collections/" + uuid.NewString() + "/reject", ``, 404, "id"},
		{"/collections/" + reference + "/reject", `{"reason":"BECAUSE"}`, 422, "reason"},
		{"/collections/" + reference + "/approve", `{"amount":"-1"}`, 422, "amount"},
		{"/collections/" + reference + "/approve", `{"reason":"x"}`, 422, "reason"},
	} {
		a := m.call(http.MethodPost, "/control"+row.path, row.body, nil)
		if a.status != row.status || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s", row.path, row.body, a.status, a.body)
			continue
		}
		var p struct {
			Status int
			Detail string
			Errors []struct{ Field, Message, Mend string }
		}
		a.decode(t, &p)
		if p.Status != row.status || p.Detail == "" || len(p.Errors) != 1 || p.Errors[0].Field != row.field || p.Errors[0].Message == "" || p.Errors[0].Mend == "" {
			t.Errorf("%s %s: %s", row.path, row.body, a.body)
		}
	}
	// No part of the refused changes was applied.
	m.settles(reference, "PENDING", "")
	if a := m.call(http.MethodPost, "/inbox/a", "{}", nil); a.status != http.StatusOK {
		t.Errorf("inbox after refused changes: %d", a.status)
	}
}

func TestClockWithoutAService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simulator.Config) { c.AdvanceClock = nil })
	if a := w.call(http.MethodPost, "/control/clock", `{"advance":"24h"}`, nil); a.status != http.StatusNotImplemented {
		t.Errorf("without a clock: %d %s", a.status, a.body)
	}
	w = newWorld(t, func(c *simulator.Config) {
		c.AdvanceClock = func(context.Context, time.Duration) (time.Time, error) {
			return time.Time{}, errors.New("postgres is away")
		}
	})
	if a := w.call(http.MethodPost, "/control/clock", `{"advance":"24h"}`, nil); a.status != http.StatusInternalServerError || !strings.Contains(a.body, "postgres is away") {
		t.Errorf("with a broken clock: %d %s", a.status, a.body)
	}
}

// The service's clock follows a moment after it was moved. The answer showed the time
// before the move.
func TestClockAnswersWithTheTimeAfter(t *testing.T) {
	t.Parallel()
	after := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	w := newWorld(t, func(c *simulator.Config) {
		c.AdvanceClock = func(context.Context, time.Duration) (time.Time, error) { return after, nil }
	})
	var got struct{ Now time.Time }
	w.call(http.MethodPost, "/control/clock", `{"advance":"24h"}`, nil).decode(t, &got)
	if !got.Now.Equal(after) {
		t.Errorf("now = %s, want %s", got.Now, after)
	}
}

type listed struct {
	Seq      int64  `json:"seq"`
	ID       string `json:"id"`
	Operator string `json:"operator"`
	Status   string `json:"status"`
	Amount   string `json:"amount"`
	Payer    string `json:"payer"`
}

func (w *world) collections(query string) []listed {
	w.t.Helper()
	var got []listed
	w.call(http.MethodGet, "/control/collections"+query, "", nil).decode(w.t, &got)
	return got
}

func TestCollectionsAreListed(t *testing.T) {
	t.Parallel()
	m := newWorld(t, func(c *simulator.Config) { c.MaxCollections = 4 }).login("user")
	for _, payer := range []string{"242066000003", "242066000001", "242066123456", "242066000002", "242066000004"} {
		m.request(payer)
	}
	for query, want := range map[string]string{
		"":                                     "01 56 02 04",
		"?after=3":                             "02 04",
		"?limit=1":                             "04",
		"?after=0&limit=1":                     "01",
		"?status=pending":                      "56 02",
		"?status=pending&limit=1":              "02",
		"?status=approved":                     "01",
		"?status=rejected":                     "04",
		"?operator=mtn&after=4":                "04",
		"?operator=airtel":                     "",
		"?external_id=order-1":                 "01 56 02 04",
		"?external_id=none":                    "",
		"?external_id=order-1&after=2&limit=1": "56",
	} {
		var got []string
		for _, c := range m.collections(query) {
			got = append(got, c.Payer[len(c.Payer)-2:])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("GET /control/collections%s: %v, want %s", query, got, want)
		}
	}
	m.clock.advance(5 * time.Second)
	if got := m.collections("?status=pending"); len(got) != 1 {
		t.Errorf("pending after five seconds: %+v", got)
	}
	if a := m.call(http.MethodGet, "/control/collections?status=paid", "", nil); a.status != http.StatusBadRequest {
		t.Errorf("unknown status: %d", a.status)
	}
}

// Many concurrent payments are each decided and called back exactly once.
func TestManyCollectionsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	m := w.login("user")
	const clients, each = 8, 100
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				reference := uuid.NewString()
				a, err := m.try(t.Context(), http.MethodPost, "/mtn/collection/v1_0/requesttopay", payment("242066000001"), m.header(reference))
				if err != nil || a.status != http.StatusAccepted {
					t.Errorf("request: %d %v", a.status, err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, c := range w.callbacks(clients * each) {
		seen[c.path]++
	}
	w.quiet(clients * each)
	if len(seen) != clients*each {
		t.Errorf("%d payments called back, want %d", len(seen), clients*each)
	}
	refs := map[string]bool{}
	for _, c := range w.collections("?status=approved") {
		var view struct {
			OperatorRef string `json:"operator_ref"`
		}
		if len(refs) < 20 { // a sample is enough
			w.call(http.MethodGet, "/control/collections/"+c.ID, "", nil).decode(t, &view)
			refs[view.OperatorRef] = true
		}
	}
	if len(refs) != 20 {
		t.Errorf("%d different operator references among 20", len(refs))
	}
}

// BenchmarkRequestToPay measures the cost of a payment when a hundred thousand are already
// kept.
func BenchmarkRequestToPay(b *testing.B) {
	s, err := simulator.New(simulator.Config{Now: time.Now, Log: discard()})
	if err != nil {
		b.Fatal(err)
	}
	h := s.Handler()
	token := issueToken(b, h)
	pay := func(i int) {
		if code := requestToPay(h, token, fmt.Sprintf("2420661%05d", i%100_000)); code != http.StatusAccepted {
			b.Fatalf("status %d", code)
		}
	}
	for i := range 100_000 {
		pay(i)
	}
	b.ResetTimer()
	for i := range b.N {
		pay(i)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func issueToken(b *testing.B, h http.Handler) string {
	b.Helper()
	req := httptest.NewRequest(http.MethodPost, "/mtn/collection/token/", nil)
	req.SetBasicAuth("user", "key")
	req.Header.Set("Ocp-Apim-Subscription-Key", "subscription")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	var grant struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &grant); err != nil {
		b.Fatal(err)
	}
	return grant.AccessToken
}

func requestToPay(h http.Handler, token, payer string) int {
	req := httptest.NewRequest(http.MethodPost, "/mtn/collection/v1_0/requesttopay", strings.NewReader(payment(payer)))
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Ocp-Apim-Subscription-Key": "subscription", "X-Target-Environment": "mtncongo",
		"X-Reference-Id": uuid.NewString(), "Content-Type": "application/json", "X-Callback-Url": "http://127.0.0.1:1/callback",
	} {
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Code
}
