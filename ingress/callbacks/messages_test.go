package callbacks_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/ingress/callbacks"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/provider/all"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// called is the number in the bodies of reports. Nothing may tell it.
const called = "242066000001"

// reception receives reports over HTTP and keeps them in a Postgres of the test's own.
type reception struct {
	t       *testing.T
	url     string
	keys    *secret.Keys
	pool    *pgxpool.Pool
	reports *notify.Reports
	log     *bytes.Buffer
	metrics *prometheus.Registry
}

func newReception(t *testing.T) *reception {
	t.Helper()
	_, pool := servers.Database(t)
	m := &reception{t: t, keys: secret.GenerateKeys(), pool: pool, reports: notify.NewReports(pool), log: &bytes.Buffer{}, metrics: prometheus.NewRegistry()}
	part, err := callbacks.NewMessages(callbacks.MessagesConfig{
		Providers: all.Providers(), Reports: m.reports, Verifier: m.keys, Now: func() time.Time { return at }, Log: slog.New(slog.NewTextHandler(m.log, nil)), Metrics: m.metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	part.Routes(r)
	// The operators' routes have the same shape; theirs must not take those of messages.
	r.Post("/callbacks/{operator}/{session_id}/{collection_id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r.Post("/callbacks/{operator}/{session_id}/{collection_id}/{mac}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// sent records a call about a message and returns its id.
func (m *reception) sent(providerName, about string) string {
	m.t.Helper()
	id := notify.MessageID(notify.Reversed, provider.ChannelSMS, about)
	if err := m.reports.Begin(m.t.Context(), id, "sms_00000000000000000000000000000001", providerName, at); err != nil {
		m.t.Fatal(err)
	}
	return id
}

func (m *reception) address(providerName, messageID string) string {
	return notify.ReportURL(m.keys, m.url, providerName, messageID)
}

// post posts a body and returns the answer, without what differs between all answers.
func (m *reception) post(address, body string) (status int, text string, header http.Header) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	resp.Header.Del("Date")
	if strings.Contains(string(got), called) {
		m.t.Errorf("the answer tells the number: %s", got)
	}
	return resp.StatusCode, string(got), resp.Header
}

func (m *reception) state(id string) notify.ReportState {
	m.t.Helper()
	got, err := m.reports.Of(m.t.Context(), []string{id})
	if err != nil {
		m.t.Fatal(err)
	}
	return got[id].State
}

// counted returns what is counted of a provider, without zeros.
func (m *reception) counted(providerName string) map[string]float64 {
	m.t.Helper()
	families, err := m.metrics.Gather()
	if err != nil {
		m.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range one.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "quittance_message_reports_total" && labels["provider"] == providerName && one.GetCounter().GetValue() > 0 {
				out[labels["outcome"]] += one.GetCounter().GetValue()
			}
		}
	}
	return out
}

func (m *reception) counts(providerName string, want map[string]float64) {
	m.t.Helper()
	got := m.counted(providerName)
	if len(got) != len(want) {
		m.t.Errorf("counted of %s: %v, want %v", providerName, got, want)
		return
	}
	for o, n := range want {
		if got[o] != n {
			m.t.Errorf("counted of %s: %v, want %v", providerName, got, want)
			return
		}
	}
}

// onInfobip is a report of Infobip on messages.
func onInfobip(group string, ids ...string) string {
	var results []string
	for _, id := range ids {
		results = append(results, `{"messageId":"`+id+`","to":"`+called+`","status":{"groupId":`+group+`,"name":"X"},"error":{"groupId":1,"name":"EC_ABSENT_SUBSCRIBER","permanent":false}}`)
	}
	return `{"results":[` + strings.Join(results, ",") + `]}`
}

func onMTN(id, status string) string {
	return `{"clientCorrelatorId":"` + id + `","deliveryStatus":"` + status + `","receiverAddress":"` + called + `"}`
}

// Reports reach their message, at its own address or at the provider's. They are answered with
// 200 also when they say nothing new, so that the provider stops.
func TestMessageReports(t *testing.T) {
	t.Parallel()
	m := newReception(t)
	first, second := m.sent("infobip", "1"), m.sent("infobip", "2")
	for _, row := range []struct {
		address, body string
		id            string
		want          notify.ReportState
	}{
		{m.address("infobip", first), onInfobip("1", first), first, notify.ReportSent},
		{m.address("infobip", first), onInfobip("2", first), first, notify.ReportUndelivered},
		{m.address("infobip", first), onInfobip("3", first), first, notify.ReportDelivered},
		{m.address("infobip", first), onInfobip("3", first), first, notify.ReportDelivered},
		{m.address("infobip", first), onInfobip("2", first), first, notify.ReportDelivered},
		{m.address("infobip", ""), onInfobip("3", "msg_of_somebody_else", second), second, notify.ReportDelivered},
	} {
		if status, text, _ := m.post(row.address, row.body); status != http.StatusOK || m.state(row.id) != row.want {
			t.Errorf("%s: %d %s, the message is %s, want %s", row.body, status, text, m.state(row.id), row.want)
		}
	}
	m.counts("infobip", map[string]float64{"pending": 1, "undelivered": 1, "delivered": 2, "repeated": 2, "unknown_message": 1})
	third := m.sent("mtnsms", "3")
	if status, _, _ := m.post(m.address("mtnsms", ""), onMTN(third, "EXPIRED")); status != http.StatusOK || m.state(third) != notify.ReportUndelivered {
		t.Errorf("MTN: %d, the message is %s", status, m.state(third))
	}
	m.counts("mtnsms", map[string]float64{"undelivered": 1})
}

// A wrong MAC, a message that is not ours and a provider that does not exist are answered alike,
// and change nothing.
func TestForgedMessageReports(t *testing.T) {
	t.Parallel()
	m := newReception(t)
	ours, other := m.sent("infobip", "ours"), m.sent("infobip", "other")
	never := notify.MessageID(notify.Reversed, provider.ChannelSMS, "never")
	good := m.address("infobip", ours)
	forged := m.url + "/callbacks/messages/infobip/" + ours + "/" + strings.Repeat("A", 43)
	want, wantText, wantHeader := m.post(forged, onInfobip("3", ours))
	if want != http.StatusNotFound || wantText != "" {
		t.Fatalf("a wrong MAC: %d %s", want, wantText)
	}
	for name, call := range map[string][2]string{
		"a message that we never sent":          {m.address("infobip", never), onInfobip("3", never)},
		"a body about another message":          {good, onInfobip("3", other)},
		"another provider's message":            {m.address("mtnsms", ours), onMTN(ours, "DELIVERED")},
		"an id that Postgres does not take":     {m.address("mtnsms", ""), onMTN(`msg_\u0000`, "DELIVERED")},
		"the address of another message":        {strings.Replace(good, ours, other, 1), onInfobip("3", other)},
		"an address of a message as one of all": {m.url + "/callbacks/messages/infobip/" + good[strings.LastIndex(good, "/")+1:], onInfobip("3", ours)},
		"no such provider":                      {notify.ReportURL(m.keys, m.url, "pigeon", ours), onInfobip("3", ours)},
		"a provider that does not report":       {notify.ReportURL(m.keys, m.url, "smtp", ours), onInfobip("3", ours)},
		"a forged address, and a bad body":      {forged, "<html>"},
	} {
		status, text, header := m.post(call[0], call[1])
		if status != want || text != wantText || len(header) != len(wantHeader) || header.Get("Content-Length") != wantHeader.Get("Content-Length") {
			t.Errorf("%s: %d %q %v, want %d %q %v", name, status, text, header, want, wantText, wantHeader)
		}
	}
	for _, id := range []string{ours, other, never} {
		if s := m.state(id); s != notify.ReportSent && s != "" {
			t.Errorf("a message became %s", s)
		}
	}
	m.counts("infobip", map[string]float64{"forged": 4, "unknown_message": 2})
}

// A body that is no report is refused with the reason, one that is too large before it is read.
// What cannot be recorded now is asked for again.
func TestBadMessageReports(t *testing.T) {
	t.Parallel()
	m := newReception(t)
	id := m.sent("infobip", "1")
	address := m.address("infobip", id)
	for body, want := range map[string]string{
		"":                                      "not JSON",
		"to=" + called:                          "not JSON",
		"[]":                                    "not JSON",
		"{}":                                    "results is missing or empty",
		`{"results":[{"to":"` + called + `"}]}`: "results[0].messageId is missing",
		`{"results":[{"messageId":"` + called + `"}]}`: "results[0].status is missing",
	} {
		if status, text, _ := m.post(address, body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%q: %d %s, want 400 with %q", body, status, text, want)
		}
	}
	large := onInfobip("3", id) + strings.Repeat(" ", 64<<10)
	if status, _, _ := m.post(address, large); status != http.StatusRequestEntityTooLarge || m.state(id) != notify.ReportSent {
		t.Errorf("a large body: %d, the message is %s", status, m.state(id))
	}
	m.pool.Close()
	status, _, header := m.post(address, onInfobip("3", id))
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("without Postgres: %d %v", status, header)
	}
	m.counts("infobip", map[string]float64{"unreadable": 6, "too_large": 1, "unavailable": 1})
	for _, hidden := range []string{called, address[strings.LastIndex(address, "/")+1:]} {
		if strings.Contains(m.log.String(), hidden) {
			t.Errorf("the log tells %q", hidden)
		}
	}
	if m.log.Len() == 0 {
		t.Error("nothing is logged")
	}
}
