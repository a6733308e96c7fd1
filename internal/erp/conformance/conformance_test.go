package conformance_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/dev/simulator"
	"quittance/internal/erp"
	"quittance/internal/erp/conformance"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// system is a simulated ERP.
type system struct {
	t   *testing.T
	url string
}

func newSystem(t *testing.T) system {
	t.Helper()
	s, err := simulator.New(simulator.Config{
		Now: func() time.Time { return time.Now().UTC() }, Log: servers.Logger(t),
		ERPAuth: func(string) []simulator.Auth {
			return []simulator.Auth{{Type: simulator.AuthAPIKey, Header: "X-API-Key", Value: "s3cret-of-the-erp"}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return system{t, server.URL}
}

func (s system) control(body string) {
	s.t.Helper()
	resp, err := httpclient.Default.Post(s.url+"/control/erp/impots", "application/json", strings.NewReader(body))
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusNoContent {
		s.t.Fatal(resp.Status, err)
	}
}

// check runs the checks and returns the outcomes that are not ok, and the findings.
func (s system) check(change func(*conformance.Config)) (notOK []string, findings []conformance.Finding) {
	s.t.Helper()
	cfg := conformance.Config{
		Client: erp.New(erp.Config{Loopback: true}), Settle: 300 * time.Millisecond,
		Settings: registry.ERPSettings{
			BaseURL: s.url + "/erp/impots", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Auth: registry.ERPAuth{Type: registry.AuthAPIKey, Name: "X-API-Key", Secret: secret.NewText("s3cret-of-the-erp")},
		},
	}
	if change != nil {
		change(&cfg)
	}
	findings, err := conformance.Run(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range findings {
		if f.Outcome != conformance.OutcomeOK {
			notOK = append(notOK, f.Check+" "+string(f.Outcome))
		}
		if text := fmt.Sprint(f); f.Said == "" || f.Outcome == conformance.OutcomeFailed && f.Mend == "" || strings.Contains(text, "s3cret") {
			s.t.Errorf("finding %s", text)
		}
	}
	return notOK, findings
}

// An ERP that keeps the contract passes every check.
func TestWellBehaved(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.control(`{"disbursements": {"B-1": [{"line_ref": "L-1", "beneficiary": {"name": "B", "msisdn": "+242066000001"}, "payment_mode": "MOBILE_MONEY", "amount_minor": 5, "currency": "XAF"}]}}`)
	notOK, findings := s.check(func(c *conformance.Config) { c.Batch = "B-1" })
	var names []string
	for _, f := range findings {
		names = append(names, f.Check)
	}
	if want := []string{
		"health", "dues", "dues.items", "dues.unknown_subject", "dues.encoding", "health.authentication", "dues.authentication", "confirmation.authentication",
		"confirmation", "confirmation.balance", "confirmation.repeated", "confirmation.repeated.balance", "confirmation.out_of_order", "disbursements",
		"disbursements.unknown_batch", "disbursements.authentication", "disbursements.repeated",
	}; len(notOK) > 0 || !slices.Equal(names, want) {
		t.Errorf("%v, not ok: %v, %+v", names, notOK, findings)
	}
	// Another run pays further amounts. Only reading pays nothing.
	if notOK, findings := s.check(nil); len(notOK) > 0 {
		t.Errorf("again: %v, %+v", notOK, findings)
	}
	if notOK, findings := s.check(func(c *conformance.Config) { c.ReadOnly = true }); !slices.Equal(notOK, []string{"confirmation skipped"}) {
		t.Errorf("read only: %v, %+v", notOK, findings)
	}
	// A due with penalties is above its original amount, and keeps the contract.
	s.control(`{"dues": {"PEN": [{"erp_due_ref": "PEN", "label": "x", "amount_minor": 8, "outstanding_minor": 8, "original_minor": 5, "currency": "XAF", "allow_partial": false, "due_date": "2026-01-01"}]}}`)
	if notOK, findings := s.check(func(c *conformance.Config) { c.Subject = "PEN" }); !slices.Equal(notOK, []string{"confirmation.out_of_order skipped"}) {
		t.Errorf("penalties: %v, %+v", notOK, findings)
	}
	// A subject with one whole due.
	s.control(`{"dues": {"ONE": [{"erp_due_ref": "ONE", "label": "x", "amount_minor": 5, "outstanding_minor": 5, "original_minor": 5, "currency": "XAF", "allow_partial": false, "due_date": "2026-01-01"}]}}`)
	if notOK, findings := s.check(func(c *conformance.Config) { c.Subject = "ONE" }); !slices.Equal(notOK, []string{"confirmation.out_of_order skipped"}) {
		t.Errorf("one due: %v, %+v", notOK, findings)
	}
	if notOK, _ := s.check(func(c *conformance.Config) { c.Subject = "ONE" }); !slices.Equal(notOK, []string{"confirmation skipped"}) {
		t.Errorf("nothing left: %v", notOK)
	}
}

// Each misbehaviour is found by its check, with words that name it.
func TestMisbehaviours(t *testing.T) {
	t.Parallel()
	pays := func(c *conformance.Config) { c.Batch = simulator.StandardBatch }
	misbehaves := func(how string) string { return `{"misbehave": ["` + how + `"]}` }
	for _, c := range []struct {
		control string
		change  func(*conformance.Config)
		want    []string
		says    string
	}{
		{misbehaves("html"), nil, []string{"dues failed", "dues.unknown_subject failed", "dues.encoding failed", "confirmation skipped", "disbursements failed"}, "a page (HTML)"},
		{misbehaves("oversized"), nil, []string{"dues failed", "dues.unknown_subject failed", "dues.encoding failed", "confirmation skipped", "disbursements failed"}, "more than 1 MiB"},
		{misbehaves("many_items"), nil, []string{"dues failed", "dues.unknown_subject failed", "dues.encoding failed", "confirmation skipped", "disbursements failed", "disbursements.unknown_batch failed"}, "more than"},
		{misbehaves("duplicate_refs"), nil, []string{"dues.items failed", "dues.items failed"}, "items[0] (TP-1001-A)"},
		{misbehaves("minimum_above_outstanding"), nil, []string{"dues.items failed", "dues.items failed", "dues.items failed", "confirmation skipped"}, "minimum_amount_minor must be from 1 to outstanding_minor"},
		{misbehaves("text_amounts"), nil, []string{"dues.items failed", "dues.items failed", "dues.items failed", "confirmation skipped"}, "amount_minor must be a whole number"},
		{misbehaves("unknown_subject_404"), nil, []string{"dues.unknown_subject failed", "dues.encoding failed", "disbursements skipped"}, `200 with {"items": []}`},
		{misbehaves("no_authentication"), nil, []string{"health.authentication warning", "dues.authentication failed", "confirmation.authentication failed", "disbursements.authentication failed"}, "GET /dues with a wrong secret was accepted"},
		{misbehaves("shuffled_lines"), pays, nil, "the same lines"},
		{misbehaves("drifting_lines"), pays, []string{"disbursements.repeated failed"}, "a batch with other lines is held"},
		{`{"cut": 2}`, pays, []string{"disbursements failed"}, "The connection broke"},
		{`{}`, func(c *conformance.Config) { c.Batch = "empty" }, []string{"disbursements failed"}, "The batch has no lines"},
		{misbehaves("counts_twice"), nil, []string{"confirmation.repeated.balance failed"}, "counted twice"},
		{misbehaves("repeat_refused"), nil, []string{"confirmation.repeated failed"}, "sent again whenever an answer was lost"},
		{misbehaves("in_order_only"), nil, []string{"confirmation.out_of_order failed"}, "in any order"},
		{misbehaves("balances_ignore"), nil, []string{"confirmation.balance failed"}, "outstanding_minor is 120000 and not 110000"},
		{`{"away": true}`, nil, []string{"health failed", "others skipped"}, "The connection broke"},
		{`{"refuse": {"status": 409, "code": "due_closed"}}`, nil, []string{"confirmation failed", "confirmation.repeated skipped"}, "409 is for a transaction_id that is stored already"},
		{`{"refuse": {"status": 422, "code": "due_closed"}}`, nil, []string{"confirmation failed", "confirmation.repeated skipped"}, "due_closed"},
		{`{"delay": "1100ms"}`, func(c *conformance.Config) { c.ReadOnly = true }, []string{"dues warning", "confirmation skipped"}, "less than a second"},
		{`{"status": 500}`, nil, []string{
			"health failed", "dues failed", "dues.unknown_subject failed", "dues.encoding failed", "confirmation skipped", "disbursements failed",
		}, "500 Internal Server Error"},
		{`{}`, func(c *conformance.Config) { c.Settings.Auth.Secret = secret.NewText("s3cret-other") }, []string{
			"health failed", "dues failed", "dues.unknown_subject failed", "dues.encoding failed", "confirmation skipped", "disbursements failed",
		}, "does not accept the credentials"},
		{`{}`, func(c *conformance.Config) { c.Settings.BaseURL += "/v2" }, []string{
			"health failed", "dues failed", "dues.unknown_subject failed", "dues.encoding failed", "health.authentication warning", "dues.authentication failed", "confirmation.authentication failed", "confirmation skipped", "disbursements skipped",
		}, "check the base address"},
		{`{}`, func(c *conformance.Config) { c.Subject = "TP-1004" }, []string{"dues.items failed", "dues.due_date warning"}, "items[1] (TP-1004-B)"},
	} {
		t.Run(c.control, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			s.control(c.control)
			notOK, findings := s.check(c.change)
			if !slices.Equal(notOK, c.want) || !strings.Contains(fmt.Sprint(findings), c.says) || conformance.Failed(findings) != strings.Count(fmt.Sprint(c.want), " failed") {
				t.Errorf("not ok: %q, want %q and the words %q: %+v", notOK, c.want, c.says, findings)
			}
		})
	}
}
