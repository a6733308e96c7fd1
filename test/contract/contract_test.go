package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/test/harness"

	"github.com/goccy/go-yaml"
	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The agencies, applications and keys of the contract test's registry. Only the
// application "Default quota" has the usual quotas.
const (
	taxAgency     = "018f0000-0000-7000-8000-000000000001"
	customsAgency = "018f0000-0000-7000-8000-000000000002"
	otherAgency   = "018f0000-0000-7000-8000-000000000003"
	taxApp        = "018f0000-0000-7000-8000-00000000000a"

	taxKey       = "sk_test_ContractTaxKey00000000000"
	taxSecondKey = "sk_test_ContractTaxSecond00000000"
	taxLiveKey   = "sk_live_ContractTaxKey00000000000"
	customsKey   = "sk_test_ContractCustomsKey0000000"
	customsLive  = "sk_live_ContractCustomsKey0000000"
	quotaKey     = "sk_test_ContractQuotaKey000000000"
	portalKey    = "sk_test_ContractPortalKey00000000"

	contractRegistry = `
platform:
  keys:
    - {secret: ` + portalKey + `, agencies: [` + taxAgency + `, ` + customsAgency + `], reads_per_minute: 100000}
  embed_origins: ["https://portal.example"]
  webhook_endpoints: [{url: "http://127.0.0.1:8081/inbox/portal", secret: whsec_ContractPortalSecret00000000000, events: [checkout.completed]}]
agencies:
  - id: ` + taxAgency + `
    slug: impots
    name: Impôts
    services:
      - {id: 018f0000-0000-7000-8000-000000000101, code: patente, label: "Contribution de la patente"}
      - {id: 018f0000-0000-7000-8000-000000000103, code: vignette_2019, label: "Vignette 2019", active: false}
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 0, minimum: 0, maximum: 5000}]
    erp: {test: {base_url: "http://127.0.0.1:8081/erp/impots", auth: {type: bearer, token: DemoErpTokenImpots000000}, conflict_is_done: true, networks: [127.0.0.0/8]}}
    applications:
      - id: ` + taxApp + `
        name: Tax
        integrator: true
        offers: [momo, momo_b, card, cash_agency]
        embed_origins: ["https://guichet.example"]
        creations_per_minute: 100000
        reads_per_minute: 100000
        keys: [{secret: ` + taxKey + `}, {secret: ` + taxSecondKey + `}, {secret: ` + taxLiveKey + `}]
        webhook_endpoints:
          - {url: "http://127.0.0.1:8081/inbox/tax", secret: whsec_ContractTaxSecret00000000000000, events: [checkout.completed, checkout.failed, checkout.cancelled, checkout.expired, checkout.late_payment]}
          - {url: "http://127.0.0.1:8081/inbox/tax-completed", secret: whsec_ContractTaxOnly0000000000000000, events: [checkout.completed]}
      - id: 018f0000-0000-7000-8000-00000000000c
        name: Default quota
        offers: [momo]
        keys: [{secret: ` + quotaKey + `}]
    clerks: [{code: c01, name: Guichet 1, counter: Hall, keys: [{secret: ck_live_ContractTaxClerk0000000000}]}] # so that live sessions can be paid
  - id: ` + customsAgency + `
    slug: douanes
    name: Douanes
    services: [{id: 018f0000-0000-7000-8000-000000000201, code: dedouanement, label: "Droits de dédouanement"}]
    applications:
      - id: 018f0000-0000-7000-8000-00000000000b
        name: Customs
        integrator: true
        offers: [momo, momo_b]
        creations_per_minute: 100000
        reads_per_minute: 100000
        session_lifetime: 1h
        keys: [{secret: ` + customsKey + `}, {secret: ` + customsLive + `}]
  - {id: ` + otherAgency + `, slug: autre, name: Autre}
`
)

// contract calls the service as an integrator does. It validates every answer against
// openapi.yaml.
type contract struct {
	*harness.Up
	spec    map[string]any
	schemas map[string]*jsonschema.Schema
	serial  int
}

func newContract(t *testing.T) *contract {
	t.Helper()
	c := &contract{Up: harness.NewUp(t), schemas: map[string]*jsonschema.Schema{}}
	c.Registry = filepath.Join(c.Dir, "registry.yaml")
	if err := os.WriteFile(c.Registry, []byte(contractRegistry+partnerRegistry()), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(harness.Root, "ingress/ministry/openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &c.spec); err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(c.spec)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("file:///openapi.yaml", doc); err != nil {
		t.Fatal(err)
	}
	for name := range at(c.spec, "components", "schemas").(map[string]any) {
		if c.schemas[name], err = compiler.Compile("file:///openapi.yaml#/components/schemas/" + name); err != nil {
			t.Fatal(err)
		}
	}
	c.Start(t)
	return c
}

// at returns the value at a path of a document; nil if there is none.
func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// conforms validates a body against a schema of openapi.yaml.
func (c *contract) conforms(t *testing.T, schema string, body []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := c.schemas[schema].Validate(v); err != nil {
		t.Errorf("%s does not conform to %s: %v", body, schema, err)
	}
}

// holds validates an answer against the schema of success, or that of errors for any
// other status.
func (c *contract) holds(t *testing.T, a harness.Answer, success int, schema string) {
	t.Helper()
	if a.Status != success {
		schema = "Problem"
	}
	c.conforms(t, schema, a.Body)
}

// order returns a new order_id.
func (c *contract) order() string {
	c.serial++
	return fmt.Sprintf("contract-%d", c.serial)
}

// with returns the body of a creation with further fields.
func (c *contract) with(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"order_id":%q,"amount":5000%s}`, c.order(), fields)
}

func (c *contract) keyed(t *testing.T, key, idempotencyKey, body string) harness.Answer {
	t.Helper()
	a := c.Call(t, http.MethodPost, c.Sessions(""), body, "Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", idempotencyKey)
	c.holds(t, a, http.StatusCreated, "Session")
	return a
}

func (c *contract) create(t *testing.T, key, body string) harness.Answer {
	t.Helper()
	return c.keyed(t, key, uuid.NewString(), body)
}

// created creates a session; it fails without a 201.
func (c *contract) created(t *testing.T, key, body string) (s map[string]any) {
	t.Helper()
	a := c.create(t, key, body)
	if a.Status != http.StatusCreated {
		t.Fatalf("creation from %s: %d %s", body, a.Status, a.Body)
	}
	a.Into(t, &s)
	return s
}

// get reads a path below /api/v1/checkout/sessions.
func (c *contract) get(t *testing.T, key, path string) harness.Answer {
	t.Helper()
	a := c.Call(t, http.MethodGet, c.Sessions(path), "", "Authorization", "Bearer "+key)
	schema := "SessionPage"
	if strings.HasPrefix(path, "/") {
		schema = "Session"
	}
	c.holds(t, a, http.StatusOK, schema)
	return a
}

func (c *contract) cancel(t *testing.T, key string, id any, query string) harness.Answer {
	t.Helper()
	a := c.Call(t, http.MethodPost, c.Sessions(fmt.Sprintf("/%s/cancel%s", id, query)), "", "Authorization", "Bearer "+key)
	c.holds(t, a, http.StatusOK, "Session")
	return a
}

func (c *contract) verify(t *testing.T, key, body string) harness.Answer {
	t.Helper()
	a := c.Call(t, http.MethodPost, c.Sessions("/verify-completion"), body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	c.holds(t, a, http.StatusOK, "Completion")
	return a
}

// settle pays a session with a magic number and waits for its end.
func (c *contract) settle(t *testing.T, key string, s map[string]any, phone, status string) {
	t.Helper()
	id := s["id"].(string)
	c.Citizen(id).Pay(t, phone)
	c.ends(t, key, id, status)
}

func (c *contract) ends(t *testing.T, key, id, status string) {
	t.Helper()
	harness.Eventually(t, "the session is "+status, func() error {
		var s map[string]any
		if c.get(t, key, "/"+id).Into(t, &s); s["status"] != status {
			return fmt.Errorf("the session is %v", s["status"])
		}
		return nil
	})
}

// token asks for a completion token as the embedded page does.
func (c *contract) token(t *testing.T, s map[string]any) string {
	t.Helper()
	a := c.askToken(t, s["id"], s["client_secret"])
	if a.Status != http.StatusOK {
		t.Fatalf("completion token: %d %s", a.Status, a.Body)
	}
	c.conforms(t, "CompletionToken", a.Body)
	var out struct {
		Token string `json:"completion_token"`
	}
	a.Into(t, &out)
	return out.Token
}

func (c *contract) askToken(t *testing.T, id, secret any) harness.Answer {
	t.Helper()
	return c.Call(t, http.MethodPost, c.URL(harness.AtService, fmt.Sprintf("/embed/%s/completion-token", id)), "", "Authorization", fmt.Sprintf("Bearer %s", secret))
}

// webhook waits for a session's webhook in an inbox and returns its body.
func (c *contract) webhook(t *testing.T, inbox string, id any, event string) (m harness.Message, body map[string]any) {
	t.Helper()
	harness.Eventually(t, event+" arrives in "+inbox, func() error {
		var all []harness.Message
		c.Call(t, http.MethodGet, c.URL(harness.AtSimulators, "/inbox/"+inbox), "").Into(t, &all)
		for _, m = range all {
			body = nil
			if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
				return err
			}
			if body["session_id"] == id && body["event"] == event {
				return nil
			}
		}
		return fmt.Errorf("%d other messages have arrived", len(all))
	})
	return m, body
}

func (c *contract) list(t *testing.T, key, query string) (ids []string, page map[string]any) {
	t.Helper()
	a := c.get(t, key, query)
	if a.Status != http.StatusOK {
		t.Fatalf("list %s: %d %s", query, a.Status, a.Body)
	}
	a.Into(t, &page)
	for _, item := range page["items"].([]any) {
		ids = append(ids, item.(map[string]any)["id"].(string))
	}
	return ids, page
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if !bytes.Equal(g, w) {
		t.Errorf("%s is %s, want %s", what, g, w)
	}
}

func matches(t *testing.T, what string, got any, pattern string) {
	t.Helper()
	if s, ok := got.(string); !ok || !regexp.MustCompile(pattern).MatchString(s) {
		t.Errorf("%s is %v, want %s", what, got, pattern)
	}
}

// only checks that an answer is a 422 with one fault, that of a field.
func only(t *testing.T, a harness.Answer, field string) {
	t.Helper()
	if faults := refused(t, a, http.StatusUnprocessableEntity, "generic.validation_failed"); len(faults) != 1 || faults[0].Field != field {
		t.Errorf("the faults are %+v, want one of %s", faults, field)
	}
}

const uuidPattern = `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`

// statement is a sentence of the contract or of its decisions, with the check that it
// holds.
type statement struct {
	section, says string
	holds         func(t *testing.T, c *contract)
}

// statements returns all statements, in the order in which they are checked.
func statements() []statement {
	return slices.Concat(
		creationStatements, readStatements, noticeStatements, receiptStatements, completionStatements,
		authenticationStatements, eventStatements, limitStatements, clockStatements, redeliveryStatements)
}

// TestContract checks each statement of the contract's ministry sections. The statements
// share a service and its clock, which the last statements move.
func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	c := newContract(t)
	var report strings.Builder
	failed := 0
	all := statements()
	for _, s := range all {
		verdict := "pass"
		if !t.Run(s.section+"/"+s.says, func(t *testing.T) { s.holds(t, c) }) {
			verdict = "FAIL"
			failed++
		}
		fmt.Fprintf(&report, "%s  %-34s %s\n", verdict, s.section, s.says)
	}
	fmt.Fprintf(&report, "statements=%d failed=%d\n", len(all), failed)
	t.Run("examples", func(t *testing.T) { examples(t, c) })
	t.Run("every event is one of Event", func(t *testing.T) {
		bodies, _ := webhookBodies(t)
		for _, body := range bodies {
			c.conforms(t, "Event", []byte(body))
		}
	})
	t.Run("quota", func(t *testing.T) { quota(t, c.Up) })
	publish(t, report.String())
}

// publish appends a report to the file of QUITTANCE_CONTRACT_REPORT.
func publish(t *testing.T, report string) {
	t.Helper()
	name := os.Getenv("QUITTANCE_CONTRACT_REPORT")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.WriteString(report)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// examples sends the example requests of openapi.yaml and compares the answers with the
// example answers.
func examples(t *testing.T, c *contract) {
	tried := 0
	for _, op := range []struct{ path, method string }{
		{"/api/v1/checkout/sessions", "post"}, {"/api/v1/checkout/sessions/verify-completion", "post"},
	} {
		o := at(c.spec, "paths", op.path, op.method)
		media := at(o, "requestBody", "content", "application/json")
		requests := maps.Clone(at(media, "examples").(map[string]any))
		maps.Copy(requests, at(media, "x-refused-examples").(map[string]any))
		order := slices.Sorted(maps.Keys(requests))
		// order_open repeats the order of the example hosted, so it comes last.
		slices.SortStableFunc(order, func(a, b string) int { return strings.Compare(first(a), first(b)) })
		for _, name := range order {
			body, err := json.Marshal(at(requests[name], "value"))
			if err != nil {
				t.Fatal(err)
			}
			status, want := answerOf(o, name)
			if status == "" {
				t.Errorf("%s: openapi.yaml has no answer to the request %s", op.path, name)
				continue
			}
			a := c.Call(t, http.MethodPost, c.URL(harness.AtService, op.path), string(body), "Authorization", "Bearer "+taxKey,
				"Content-Type", "application/json", "Idempotency-Key", uuid.NewString())
			var got any
			a.Into(t, &got)
			if fmt.Sprint(a.Status) != status || !bytes.Equal(normal(t, got), normal(t, want)) {
				t.Errorf("%s %s: answered %d %s\nwant %s %s", op.path, name, a.Status, normal(t, got), status, normal(t, want))
			}
			tried++
		}
	}
	if tried < 9 {
		t.Errorf("%d examples were tried, want 9 at least", tried)
	}
	paid := c.created(t, taxKey, `{"order_id":"DOSSIER-2026-0102","amount":12500,"mode":"embedded"}`)
	c.settle(t, taxKey, paid, "06 600 00 01", "completed")
	var got any
	c.verify(t, taxKey, `{"completion_token":"`+c.token(t, paid)+`"}`).Into(t, &got)
	_, want := answerOf(at(c.spec, "paths", "/api/v1/checkout/sessions/verify-completion", "post"), "paid")
	want.(map[string]any)["order_id"] = "DOSSIER-2026-0102"
	if !bytes.Equal(normal(t, got), normal(t, want)) {
		t.Errorf("verify-completion answered %s, want %s", normal(t, got), normal(t, want))
	}
	session := c.created(t, taxKey, `{"order_id":"DOSSIER-2026-0101","amount":5000}`)
	c.settle(t, taxKey, session, "06 600 00 01", "completed")
	_, listed := c.list(t, taxKey, "?order_id=DOSSIER-2026-0101")
	_, want = answerOf(at(c.spec, "paths", "/api/v1/checkout/sessions", "get"), "one")
	item := want.(map[string]any)["items"].([]any)[0].(map[string]any)
	item["order_id"] = "DOSSIER-2026-0101"
	if !bytes.Equal(normal(t, any(listed)), normal(t, want)) {
		t.Errorf("list answered %s, want %s", normal(t, any(listed)), normal(t, want))
	}
}

func first(example string) string {
	if example == "order_open" {
		return "z"
	}
	return "a"
}

// answerOf returns the example answer of a name and its status; status is empty if there
// is none.
func answerOf(operation any, name string) (status string, value any) {
	for status, response := range at(operation, "responses").(map[string]any) {
		for _, content := range asMap(at(response, "content")) {
			if example := at(content, "examples", name); example != nil {
				return status, at(example, "value")
			}
		}
	}
	return "", nil
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// generated are the values that differ at each run, with their replacements.
var generated = []struct{ pattern, stands string }{
	{`https?://[^/"]+/(c|embed|docs)/`, "https://pay.example/$1/"},
	{`chs_secret_[0-9A-Za-z]+`, "SECRET"},
	{`chs_[0-9a-z]+`, "SESSION"},
	{`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID4"},
	{`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID7"},
	{`"[0-9]{16}"`, `"REF"`},
	{`"operator_ref":"[0-9]+"`, `"operator_ref":"REF"`},
	{`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`, "TIME"},
}

// normal returns a document with the generated values replaced.
func normal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range generated {
		text = regexp.MustCompile(g.pattern).ReplaceAll(text, []byte(g.stands))
	}
	return text
}

// parseTime parses a time as the service writes it.
func parseTime(t *testing.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// quota checks that exactly thirty creations a minute are answered with 201 and the next
// with 429. A repeated creation gets its first answer also beyond the quota.
func quota(t *testing.T, u *harness.Up) {
	// The clock moves to the beginning of a minute without creations.
	u.Advance(t, time.Until(time.Now().Truncate(time.Minute).Add(time.Minute+time.Second)))
	time.Sleep(2 * time.Second)
	post := func(n int) harness.Answer {
		return u.Call(t, http.MethodPost, u.Sessions(""), fmt.Sprintf(`{"order_id":"quota-%d","amount":100}`, n),
			"Authorization", "Bearer "+quotaKey, "Content-Type", "application/json", "Idempotency-Key", fmt.Sprintf("quota-key-%d", n))
	}
	var first harness.Answer
	for n := range 30 {
		a := post(n)
		if a.Status != http.StatusCreated {
			t.Fatalf("creation %d: %d %s", n+1, a.Status, a.Body)
		}
		if a.Header.Get("RateLimit-Policy") != `"creations";q=30;w=60` || !strings.HasPrefix(a.Header.Get("RateLimit"), fmt.Sprintf(`"creations";r=%d;t=`, 29-n)) {
			t.Errorf("creation %d has %q %q", n+1, a.Header.Get("RateLimit-Policy"), a.Header.Get("RateLimit"))
		}
		if n == 0 {
			first = a
		}
	}
	for range 2 { // a refusal leaves the key unused
		a := post(30)
		refused(t, a, http.StatusTooManyRequests, "generic.rate_limited")
		if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
			t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
		}
		if a.Header.Get("RateLimit-Policy") != `"creations";q=30;w=60` || !strings.HasPrefix(a.Header.Get("RateLimit"), `"creations";r=0;t=`) {
			t.Errorf("429 has %q %q", a.Header.Get("RateLimit-Policy"), a.Header.Get("RateLimit"))
		}
	}
	if again := post(0); again.Status != http.StatusCreated || string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a replay beyond the quota: %d %s", again.Status, again.Body)
	}
	// Another application has a quota of its own, and each minute has a new quota.
	if a := u.Post(t, taxKey, `{"order_id":"quota-of-others","amount":100}`); a.Status != http.StatusCreated {
		t.Errorf("a creation of another application: %d %s", a.Status, a.Body)
	}
	u.Advance(t, time.Minute)
	time.Sleep(time.Second)
	if a := post(30); a.Status != http.StatusCreated {
		t.Errorf("a creation in the next minute: %d %s", a.Status, a.Body)
	}
}
