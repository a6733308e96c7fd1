package ministry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"quittance/ingress/problem"
)

func faultsOf(t *testing.T, body string, live bool) []string {
	t.Helper()
	_, faults, err := parseCreate(readBody([]byte(body)), live)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var out []string
	for _, f := range faults {
		if f.Message == "" || !strings.HasPrefix(f.Message, f.Field) {
			t.Errorf("%s: message %q does not name the field", f.Field, f.Message)
		}
		out = append(out, f.Field+":"+f.Rule)
	}
	return out
}

func TestCreateFieldRules(t *testing.T) { // contract, "Session create request fields"; docs/design/decisions.md § 2
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n) }
	many := func(n int) string {
		var kv []string
		for i := range n {
			kv = append(kv, fmt.Sprintf(`"k%d":"v"`, i))
		}
		return "{" + strings.Join(kv, ",") + "}"
	}
	for _, c := range []struct{ fields, want string }{
		{``, ""},
		{`"order_id":""`, "order_id:length"},
		{`"order_id":"` + long(200) + `"`, ""},
		{`"order_id":"` + long(201) + `"`, "order_id:length"},
		{`"order_id":7`, "order_id:type"},
		{`"order_id":null`, "order_id:required"},
		{`"order_id":"a\u0000b"`, "order_id:format"},
		{`"amount":0`, "amount:range"},
		{`"amount":-1`, "amount:range"},
		{`"amount":1.5`, "amount:type"},
		{`"amount":1e3`, "amount:type"},
		{`"amount":"5000"`, "amount:type"},
		{`"amount":9007199254740991`, ""},
		{`"amount":9007199254740992`, "amount:range"},
		{`"amount":99999999999999999999999`, "amount:range"},
		{`"amount":true`, "amount:type"},
		{`"currency":"EU"`, "currency:length"},
		{`"mode":"popup"`, "mode:enum"},
		{`"mode":""`, "mode:length"},
		{`"mode":"embedded"`, ""},
		{`"tenant_id":"impots"`, "tenant_id:format"},
		{`"service_code":"` + long(51) + `"`, "service_code:length"},
		{`"description":"` + long(201) + `"`, "description:length"},
		{`"note":"` + long(501) + `"`, "note:length"},
		{`"customer_id":"` + long(201) + `"`, "customer_id:length"},
		{`"customer":[]`, "customer:type"},
		{`"customer":{"name":"Mme Ngoma","email":"n@example.org","phone":"+242066000001"}`, ""},
		{`"customer":{"email":"nobody"}`, "customer.email:format"},
		{`"customer":{"email":"n@localhost"}`, "customer.email:format"}, // no mail server takes it
		{`"customer":{"email":"n@example..org"}`, "customer.email:format"},
		{`"customer":{"phone":"+33 6 12 34 56 78"}`, ""},
		{`"customer":{"phone":"06 600"}`, "customer.phone:format"},
		{`"customer":{"phone":"aucun"}`, "customer.phone:format"},
		{`"metadata":{"a":"\ud800"}`, "metadata.a:format"},
		{`"metadata":{"\udc00":"a"}`, "metadata.\ufffd:format"},
		{`"success_url":"https://example.org:0/ok"`, "success_url:url"},
		{`"success_url":"https://example.org:65536/ok"`, "success_url:url"},
		{`"cancel_url":"https://example.org:8443/ok"`, ""},
		{`"customer":{"mail":"x@y.z"}`, "customer.mail:unknown"},
		{`"metadata":` + many(20), ""},
		{`"metadata":` + many(21), "metadata:size"},
		{`"metadata":{"` + long(65) + `":"v"}`, "metadata." + long(64) + "…:length"},
		{`"metadata":{"case":"` + long(501) + `"}`, "metadata.case:length"},
		{`"metadata":{"case":7}`, "metadata.case:type"},
		{`"metadata":{"case":"a\u0000"}`, "metadata.case:format"},
		{`"metadata":{"b":1,"a":2}`, "metadata.a:type metadata.b:type"},
		{`"success_url":"https://example.org/ok"`, ""},
		{`"success_url":"http://example.org/ok"`, ""}, // a test key
		{`"success_url":"/ok"`, "success_url:url"},
		{`"success_url":"javascript:alert(1)"`, "success_url:url"},
		{`"success_url":"https://u:p@example.org"`, "success_url:url"},
		{`"cancel_url":"https://example.org/` + strings.Repeat("a", 2048) + `"`, "cancel_url:length"},
		{`"ordre":"x"`, "ordre:unknown"},
		{`"amount":0,"currency":"E","zz":1`, "amount:range currency:length zz:unknown"},
	} {
		body := "{" + c.fields
		for name, value := range map[string]string{"order_id": `"o"`, "amount": "5000"} {
			if !strings.Contains(c.fields, `"`+name+`"`) {
				body += `,"` + name + `":` + value
			}
		}
		body = strings.Replace(body+"}", "{,", "{", 1)
		if got := strings.Join(faultsOf(t, body, false), " "); got != c.want {
			t.Errorf("%s: faults %q, want %q", body, got, c.want)
		}
	}
	// What a large body costs is bounded.
	strange := strings.Builder{}
	for n := range 5000 {
		fmt.Fprintf(&strange, `,"%d":1`, n)
	}
	if got := faultsOf(t, `{"order_id":"o","amount":1,"metadata":{`+strange.String()[1:]+`}}`, false); !slices.Equal(got, []string{"metadata:size"}) {
		t.Errorf("metadata of 5,000 keys: %d faults", len(got))
	}
	if got := faultsOf(t, `{"order_id":"o","amount":1`+strange.String()+`}`, false); len(got) != 100 {
		t.Errorf("5,000 unknown fields: %d faults", len(got))
	}
	if got := faultsOf(t, `{"order_id":"o","amount":1,"cancel_url":"http://example.org"}`, true); !slices.Equal(got, []string{"cancel_url:url"}) {
		t.Errorf("http with a live key: %v", got)
	}
}

func TestNotJSON(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"order_id":"a","amount":1,"amount":2}`, `{"metadata":{"a":"1","\u0061":"2"}}`, `{"customer":[{"x":1,"x":1}]}`,
		"", "{", "[]", `"x"`, "null", "{} {}", `{"a":1,}`, "{'a':1}", "\xff{}", "nul",
	} {
		_, _, err := parseCreate(readBody([]byte(body)), false)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Status != 400 || p.Detail == "" {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestSameBodyIsCanonicalJSON(t *testing.T) {
	t.Parallel()
	hash := func(body string) []byte {
		q, _, err := parseCreate(readBody([]byte(body)), false)
		if err != nil {
			t.Fatal(err)
		}
		return q.hash
	}
	a := hash(`{"order_id":"o","amount":5000,"metadata":{"a":"1","b":"2"}}`)
	if !bytes.Equal(a, hash("{ \"metadata\": {\"b\":\"2\", \"a\":\"\\u0031\"},\n\"amount\":5000, \"order_id\":\"o\"}")) {
		t.Error("the same body in another spelling is another body")
	}
	if bytes.Equal(a, hash(`{"order_id":"o","amount":5001,"metadata":{"a":"1","b":"2"}}`)) {
		t.Error("another amount is the same body")
	}
}

func TestQueryRefusesWhatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	ops, err := operations()
	if err != nil {
		t.Fatal(err)
	}
	list := ops["GET /api/v1/checkout/sessions"]
	for query, want := range map[string]string{
		"": "", "page=2": "", "page=0": "page:range", "page=x": "page:range", "page=01": "page:range",
		"page=1&page=2": "page:repeated", "ordre=x": "ordre:unknown", "status=paid": "status:enum", "status=open": "",
		"order_id=": "order_id:length", "page=%zz": "query:format", "order_id=%ff": "order_id:format", "order_id=%00": "order_id:format",
		"page_size=100": "", "page_size=101": "page_size:range", "page=9999999999999999999": "page:range", "page=": "page:range",
		"tenant_id=018f0000-0000-7000-8000-000000000001": "", "tenant_id=impots": "tenant_id:format",
		"tenant_id=urn:uuid:018f0000-0000-7000-8000-000000000001": "tenant_id:format", "payment_ref=12345678901234567": "payment_ref:length",
		"Page=2": "Page:unknown", "status=paid&page=0&x=": "status:enum page:range x:unknown",
	} {
		err := list.checkQuery(httptest.NewRequest("GET", "/?"+query, nil))
		var got []string
		var p *problem.Problem
		if errors.As(err, &p) {
			for _, f := range p.Faults {
				got = append(got, f.Field+":"+f.Rule)
			}
			if p.Status != 400 {
				t.Errorf("%s: status %d", query, p.Status)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: faults %q, want %q", query, s, want)
		}
	}
}
