package providers

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/provider"
)

const (
	// reportWithin bounds the wait for a report, some of which come a second late.
	reportWithin = 20 * time.Second
	// noReportWithin is how long nothing must come.
	noReportWithin = 600 * time.Millisecond
)

// reports checks the delivery reports of a provider that has them, and that another provider
// does not promise any.
func (s Subject) reports(t *testing.T) {
	w := s.Start(t)
	reporter, ok := s.open(t, w.Address, w.Secret).(provider.Reporter)
	if s.Registration.Reports == nil {
		if ok && reporter.Reports() {
			t.Error("the provider promises reports that nobody reads")
		}
		return
	}
	if !ok || !reporter.Reports() {
		t.Fatal("the provider does not ask for reports")
	}
	bodies := make(chan []byte, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			bodies <- body
		}
	}))
	t.Cleanup(receiver.Close)
	if w.Subscribe != nil {
		w.Subscribe(receiver.URL + "/all")
	}
	send := func(n int, which string) provider.Message {
		t.Helper()
		w.Report(which)
		m := s.message(n)
		m.ReportURL = receiver.URL + "/one"
		if err := reporter.Send(t.Context(), m); err != nil {
			t.Fatalf("sending: %v", err)
		}
		return m
	}
	next := func(which string) provider.Report {
		t.Helper()
		select {
		case body := <-bodies:
			got, err := s.Registration.Reports(body)
			if err != nil || len(got) != 1 {
				t.Fatalf("%s: %d reports, %v", which, len(got), err)
			}
			if strings.Contains(got[0].Code, s.To) {
				t.Errorf("%s: the code has the number", which)
			}
			return got[0]
		case <-time.After(reportWithin):
			t.Fatalf("%s: no report comes", which)
		}
		return provider.Report{}
	}
	quiet := func(which string) {
		t.Helper()
		select {
		case <-bodies:
			t.Errorf("%s: a report comes", which)
		case <-time.After(noReportWithin):
		}
	}
	for n, row := range []struct {
		which   string
		want    []provider.ReportState
		unknown bool
	}{
		{"delivered", []provider.ReportState{provider.ReportDelivered}, false},
		{"undelivered", []provider.ReportState{provider.ReportUndelivered}, s.NamesUnknown},
		{"absent", []provider.ReportState{provider.ReportUndelivered}, false},
		{"twice", []provider.ReportState{provider.ReportDelivered, provider.ReportDelivered}, false},
		{"disordered", []provider.ReportState{provider.ReportDelivered, provider.ReportUndelivered}, s.NamesUnknown},
	} {
		m := send(n, row.which)
		var got []provider.ReportState
		var last provider.Report
		for range row.want {
			last = next(row.which)
			got = append(got, last.State)
			if last.MessageID != m.ID {
				t.Errorf("%s: a report on %q, want %q", row.which, last.MessageID, m.ID)
			}
		}
		if !slices.Equal(got, row.want) || last.Unknown != row.unknown || (last.Code != "") != (last.State == provider.ReportUndelivered) {
			t.Errorf("%s: %v, the last is %+v; want %v, unknown %v, and a code of a failure alone", row.which, got, last, row.want, row.unknown)
		}
	}
	if m := send(5, "stranger"); next("stranger").MessageID == m.ID {
		t.Error("the report on a message that was never sent is about ours")
	}
	w.Report("early")
	m := s.message(6)
	m.ReportURL = receiver.URL + "/one"
	if err := reporter.Send(t.Context(), m); err != nil || len(bodies) != 1 {
		t.Errorf("early: %v, %d reports before the answer", err, len(bodies))
	}
	next("early")
	send(7, "none")
	quiet("none")
	w.Report("delivered")
	if err := reporter.Send(t.Context(), s.message(8)); err != nil {
		t.Fatal(err)
	}
	quiet("without an address")
	s.unreadable(t)
}

// unreadable checks that a body that is no report is refused, without a word of it.
func (s Subject) unreadable(t *testing.T) {
	t.Helper()
	for _, body := range []string{"", "null", "[]", "{}", `"` + s.To + `"`, `{"results":[]}`, `{"to":"` + s.To + `"}`, `{"` + s.To, `{"results":[{"to":"` + s.To + `"}]}`, `{"results":"` + s.To + `","clientCorrelatorId":["` + s.To + `"]}`} {
		got, err := s.Registration.Reports([]byte(body))
		if !errors.Is(err, provider.ErrReport) || len(got) != 0 || strings.Contains(err.Error(), s.To) {
			t.Errorf("%s: %d reports, %v", body, len(got), err)
		}
	}
}
