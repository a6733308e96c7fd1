package ministry

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/form"
)

// seedBodies are the request bodies of openapi.yaml and some invalid ones.
func seedBodies(f *testing.F, path string) {
	f.Helper()
	var spec struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Examples map[string]struct{ Value any }
				}
			} `yaml:"requestBody"`
		}
	}
	text, err := os.ReadFile("openapi.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &spec)
	}
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range spec.Paths[path]["post"].RequestBody.Content["application/json"].Examples {
		body, err := json.Marshal(e.Value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, false)
	}
	for _, body := range []string{
		``, `null`, `[]`, `{} {}`, `{"amount":1,"amount":2}`, `{"a":{"b":[{"c":1,"c":2}]}}`, `{"order_id":"\ud800","amount":1e3}`, "{\"order_id\":\"\xff\"}",
		`{"order_id":"a:\\\"b","amount":5,"metadata":{"x":"{\":\"}"}}`, `{"order_id":"o","amount":9007199254740993,"tenant_id":"urn:uuid:018f0000-0000-7000-8000-000000000001"}`,
	} {
		f.Add([]byte(body), true)
	}
}

// told checks that every fault has a field, a rule and a message.
func told(t *testing.T, err error, faults []form.Fault) {
	t.Helper()
	var p *problem.Problem
	if err != nil && (!errors.As(err, &p) || p.Status != 400 || p.Detail == "" || len(faults) > 0) {
		t.Fatalf("%v beside %v", err, faults)
	}
	for _, f := range faults {
		if f.Field == "" || f.Rule == "" || !strings.HasPrefix(f.Message, f.Field) || !utf8.ValidString(f.Message) {
			t.Errorf("fault %+q", f)
		}
	}
}

// Any body is refused with a reason or obeys every rule. Another spelling of the same JSON
// is the same request.
func FuzzCreate(f *testing.F) {
	seedBodies(f, "/api/v1/checkout/sessions")
	f.Fuzz(func(t *testing.T, body []byte, live bool) {
		q, faults, err := parseCreate(readBody(body), live)
		told(t, err, faults)
		if err != nil || len(faults) > 0 {
			return
		}
		within := func(field, s string, least, most int) {
			if n := utf8.RuneCountInString(s); n < least || n > most || strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
				t.Errorf("%s is %q", field, s)
			}
		}
		within("order_id", q.OrderID, 1, 200)
		within("currency", q.Currency, 3, 3)
		within("service_code", q.ServiceCode, 0, 50)
		within("description", q.Description, 0, 200)
		within("note", q.Note, 0, 500)
		within("customer_id", q.CustomerID, 0, 200)
		for k, v := range q.Metadata {
			within("a key", k, 1, 64)
			within(k, v, 0, 500)
		}
		for _, text := range []string{q.SuccessURL, q.CancelURL} {
			u, err := url.Parse(text)
			if text != "" && (err != nil || u.User != nil || u.Host == "" || u.Scheme != "https" && (live || u.Scheme != "http")) {
				t.Errorf("URL %q", text)
			}
		}
		if q.Amount <= 0 || q.Amount > form.MaxAmount || len(q.Metadata) > 20 || !slices.Contains([]checkout.Mode{checkout.ModeHosted, checkout.ModeEmbedded}, q.Mode) ||
			q.TenantID != "" && len(q.TenantID) != 36 {
			t.Errorf("%+v", q)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, " ", "\t"); err != nil {
			t.Fatalf("accepted, but not JSON: %v", err)
		}
		again, faults, err := parseCreate(readBody(indented.Bytes()), live)
		if err != nil || len(faults) > 0 || !bytes.Equal(again.hash, q.hash) {
			t.Errorf("with white space it is another request: %v %v", err, faults)
		}
	})
}

// Any body of verify-completion is refused with a reason or has a token.
func FuzzVerify(f *testing.F) {
	seedBodies(f, "/api/v1/checkout/sessions/verify-completion")
	f.Fuzz(func(t *testing.T, body []byte, _ bool) {
		v, faults, err := parseVerify(readBody(body))
		told(t, err, faults)
		if err == nil && len(faults) == 0 && (v.token == "" || v.tenantID != "" && len(v.tenantID) != 36 || utf8.RuneCountInString(v.orderID) > longestOrderID) {
			t.Errorf("%+v", v)
		}
	})
}

// A query that passes has known parameters, each once and within its rule.
func FuzzQuery(f *testing.F) {
	ops, err := operations()
	if err != nil {
		f.Fatal(err)
	}
	for _, query := range []string{"", "page=2&page_size=7", "status=open&order_id=a%20b", "page=1&page=1", "order_id=%ff", "tenant_id=x;y", "a=b", "%zz"} {
		f.Add(query)
	}
	list := ops["GET /api/v1/checkout/sessions"]
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		err := list.checkQuery(r)
		var p *problem.Problem
		if err != nil && (!errors.As(err, &p) || p.Status != 400 || len(p.Faults) == 0) {
			t.Fatal(err)
		}
		values, malformed := url.ParseQuery(query)
		if err == nil && malformed != nil {
			t.Errorf("%q passes", query)
		}
		for name, v := range values {
			known := slices.ContainsFunc(list.Parameters, func(p parameter) bool { return p.In == "query" && p.Name == name })
			if err == nil && (!known || len(v) != 1 || !utf8.ValidString(v[0]) || v[0] == "") {
				t.Errorf("%q passes with %s=%q", query, name, v)
			}
		}
	})
}
