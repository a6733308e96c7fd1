package operations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/bench/client"
	"quittance/dev/stack/program"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/harness"
	"quittance/test/httpclient"
	"quittance/test/servers"
)

// Whoever takes over an ingress opens no ERP's credentials. Ingresses and `sink notify` without the key of these show dues,
// because `sink erp` asks. While it is dead they answer in time, and say that it was not the ERP; so does doctor.
func TestEdgeHoldsNoSecretOfAnERP(t *testing.T) {
	t.Parallel()
	shape := harness.Shape{
		Registry: (*harness.Stack).ApplicationsAndPortals, Ingresses: 2, Processors: 1, Sinks: 1, Only: []string{"erp", "notify", "readmodel"},
	}
	s := harness.NewStack(t, servers.Dir(t), shape)
	for role, holds := range map[string]bool{"ingress": false, "notify": false, "erp": true} {
		if _, err := keysOf(t, s, role).Seal(registry.LabelERP, nil, nil); (err == nil) != holds {
			t.Fatalf("%s holds the key of the ERPs' credentials: %v", role, !holds)
		}
	}
	e := edge{t: t, Stack: s}
	e.signIn("NIU-EDGE-1")

	var asking sync.WaitGroup
	for n := range 8 { // both ingresses at once
		asking.Go(func() {
			if status, refs := e.dues(n); status != "ok" || refs != "[D-1]" {
				t.Errorf("ingress %d: %s %s", n%2, status, refs)
			}
		})
	}
	asking.Wait()
	for _, role := range []string{"ingress", "notify"} {
		if line := e.doctor(role); !strings.HasPrefix(line, "ok") || !strings.Contains(line, "agency0/test in ") {
			t.Errorf("doctor %s: %s", role, line)
		}
	}

	e.shared()
	e.control(`{"status": 503}`)
	if status, _ := e.dues(0); status != "unavailable" {
		t.Errorf("an ERP that answers 503: %s", status)
	}
	e.control(`{"status": 200, "delay": "3s"}`)
	e.killed()
	e.control(`{"delay": "0s"}`)
	if err := e.Process(t, "erp-0").Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "dues are shown again", func() error {
		if status, refs := e.dues(1); status != "ok" || refs != "[D-1]" {
			return fmt.Errorf("%s %s", status, refs)
		}
		return nil
	})
	e.logs()
}

// keysOf returns the keys with which the processes of a role run.
func keysOf(t *testing.T, s *harness.Stack, role string) *secret.Keys {
	t.Helper()
	as, err := s.Program.Of(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	env := as.Environment()
	for i := len(env) - 1; i >= 0; i-- { // the last one counts
		if text, ok := strings.CutPrefix(env[i], "QUITTANCE_MASTER_KEYS="); ok {
			keys, err := secret.ParseKeys(text)
			if err != nil || keys.Role() != role {
				t.Fatalf("keys of %q: %v", keys.Role(), err)
			}
			return keys
		}
	}
	t.Fatal("the program has no keys")
	return nil
}

// edge is an installation whose edge holds no secret of an ERP, and somebody who has signed in.
type edge struct {
	*harness.Stack
	t      *testing.T
	cookie string
}

// signIn makes an account, as by the code of a message, and links it to a subject of the first agency, which owes D-1.
func (e *edge) signIn(subject string) {
	e.t.Helper()
	e.control(fmt.Sprintf(`{"dues": {%q: [{"erp_due_ref": "D-1", "label": "Patente", "amount_minor": 5000, "outstanding_minor": 5000, "original_minor": 5000, "currency": "XAF", "allow_partial": false}]}}`, subject))
	accounts, err := citizens.New(citizens.Config{Pool: e.Pool, Keys: e.Keys, Reference: e.Reference, Now: time.Now})
	if err != nil {
		e.t.Fatal(err)
	}
	address, err := contact.ParseEmail("citizen@example.org")
	if err != nil {
		e.t.Fatal(err)
	}
	browser := secret.NewText(uuid.NewString())
	code, verdict, err := accounts.Begin(e.t.Context(), citizens.Request{Address: address, Browser: browser, Client: "198.51.100.1"})
	if err != nil || verdict != citizens.Sent {
		e.t.Fatalf("%s, %v", verdict, err)
	}
	token, _, err := accounts.Enter(e.t.Context(), address, browser, code.Reveal(), money.English)
	if err != nil {
		e.t.Fatal(err)
	}
	e.cookie = "quittance_citizen=" + token.Reveal()
	link, err := accounts.LinkCode(e.t.Context(), citizens.Subject{AgencyID: e.Portals[0].Tenant, Ref: subject})
	if err != nil {
		e.t.Fatal(err)
	}
	if status, body := e.call(http.MethodPost, 0, "/links", fmt.Sprintf(`{"tenant_id": %q, "subject_ref": %q, "link_code": %q}`, e.Portals[0].Tenant, subject, link)); status != http.StatusCreated {
		e.t.Fatalf("linking: %d %s", status, body)
	}
}

// call calls the citizen API of an ingress from a page of the portal.
func (e *edge) call(method string, at int, path, body string) (status int, answer string) {
	c := &client.Client{Service: e.Ingress[at%2], HTTP: &http.Client{Timeout: 15 * time.Second}}
	a, err := c.Send(e.t.Context(), method, e.Ingress[at%2]+"/api/v1/citizen"+path, body, "Cookie", e.cookie, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json")
	if err != nil {
		e.t.Error(err)
		return 0, ""
	}
	return a.Status, string(a.Body)
}

// dues returns the source_status of the dues that an ingress shows, and their references.
func (e *edge) dues(at int) (status, refs string) {
	code, body := e.call(http.MethodGet, at, "/dues", "")
	var list struct {
		SourceStatus string `json:"source_status"`
		Items        []struct {
			Ref string `json:"erp_due_ref"`
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
		e.t.Errorf("GET /citizen/dues: %d %s", code, body)
	}
	got := []string{}
	for _, item := range list.Items {
		got = append(got, item.Ref)
	}
	return list.SourceStatus, fmt.Sprint(got)
}

// control sets how the ERP of the first agency behaves.
func (e *edge) control(body string) {
	e.t.Helper()
	c := &client.Client{HTTP: httpclient.Default}
	if a, err := c.Send(e.t.Context(), http.MethodPost, e.Simulator+"/control/erp/agency0", body, "Content-Type", "application/json"); err != nil || a.Status/100 != 2 {
		e.t.Fatalf("controlling the ERP: %d %s %v", a.Status, a.Body, err)
	}
}

// shared waits until no answer of before is shared.
func (e *edge) shared() { time.Sleep(11 * time.Second) }

// killed kills the sink while it asks, and asks again while there is none: each time the page has its answer within the
// patience of a question.
func (e *edge) killed() {
	e.t.Helper()
	begun := time.Now()
	killed := make(chan bool, 1)
	go func() {
		time.Sleep(time.Second) // it has asked, and the ERP answers after three
		killed <- e.Process(e.t, "erp-0").Kill()
	}()
	for _, when := range []string{"killed while it asks", "dead"} {
		if status, _ := e.dues(0); status != "unavailable" || time.Since(begun) > 8*time.Second {
			e.t.Errorf("%s: %s after %v", when, status, time.Since(begun))
		}
		begun = time.Now()
	}
	if !<-killed {
		e.t.Error("the sink did not run")
	}
	if line := e.doctor("ingress"); !strings.HasPrefix(line, "FAIL") || !strings.Contains(line, "`quittance sink erp`, which asks the agencies' ERPs for dues, does not answer for: agency0/test") {
		e.t.Errorf("doctor without the sink: %s", line)
	}
}

// doctor runs doctor with the keys of a role, and returns the line of its check of the sink.
func (e *edge) doctor(role string) (line string) {
	e.t.Helper()
	as, err := e.Program.Of(e.t.Context(), role)
	if err != nil {
		e.t.Fatal(err)
	}
	return checkOfSink(e.t, as, role)
}

// checkOfSink runs doctor for a role, and returns the line of its check of `sink erp`.
func checkOfSink(t *testing.T, as *program.Program, role string, flags ...string) (line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, servers.QuittanceDev(t), append([]string{"doctor", role}, flags...)...)
	cmd.Env = as.Environment()
	out, _ := cmd.CombinedOutput() // other checks are not this test's
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "  sink erp  ") {
			return strings.TrimSpace(line)
		}
	}
	t.Errorf("doctor %s has no check of the sink: %s", role, out)
	return ""
}

// logs reads what the processes logged: the reasons tell an ERP from the sink, and no role of the edge complains of keys.
func (e *edge) logs() {
	e.t.Helper()
	all := ""
	for _, p := range e.Fleet {
		text, err := os.ReadFile(p.LogFile())
		if err != nil {
			e.t.Fatal(err)
		}
		if p.Unexpected.Load() > 0 {
			e.t.Errorf("%s has ended by itself: %s", p.Name, program.Tail(p.LogFile(), 2<<10))
		}
		for _, bad := range []string{"belongs to other roles", "do not open", "NIU-EDGE-1"} {
			if strings.Contains(string(text), bad) {
				e.t.Errorf("%s logs %q: %s", p.Name, bad, program.Tail(p.LogFile(), 2<<10))
			}
		}
		if strings.HasPrefix(p.Name, "ingress") {
			all += string(text)
		}
	}
	for _, reason := range []string{"http_503", "sink_erp_unanswered"} {
		if !strings.Contains(all, reason) {
			e.t.Errorf("no ingress logs the reason %s", reason)
		}
	}
}
