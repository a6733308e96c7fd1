package cashin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"quittance/checkout"
	"quittance/ingress/web"
	"quittance/internal/address"
	"quittance/internal/cashin"
	"quittance/internal/contact"
	"quittance/internal/quota"
	"quittance/internal/registry"
)

// seedPayments are bodies of init-checkout and partners/payments, and some that are invalid.
func seedPayments(f *testing.F) {
	f.Helper()
	const item = `{"number":"1","name":"Cahier","price":10.50,"quantity":2}`
	for _, body := range []string{
		`{"externalNumber":"case-1","amount":5000,"items":[` + item + `]}`,
		`{"externalNumber":"é","amount":1,"description":"d","type":"service","items":[` + item + `,{"number":"2","name":"n","price":0,"quantity":1e400}],"more":{"a":[null]},
			"customer":{"full_name":"Mireille","address":"12 rue","phone":"1"},
			"merchant":{"redirectUrl":"https://partner.example/ok?x=1#y","backUrl":"HTTPS://Partner.Example:443/","webhookUrl":"https://hooks.example.org/h","coverUrl":"x","note":"n"}}`,
		`{"externalNumber":"c","amount":2147483647,"provider":"mobile_money_a","customer":{"phone":"06 600-00.01"},"items":[` + item + `]}`,
		`{"externalNumber":"c","amount":5,"provider":"mobile_money_b","customer":{"phone":"+242055000001","address":null},"items":[` + item + `]}`,
		`{"externalNumber":"c","amount":5,"provider":"card_network_b","items":[` + item + `]}`,
		`{"externalNumber":"c","amount":5,"provider":"bank","items":[` + item + `,` + item + `]}`,
		`{"externalNumber":"c","amount":5,"items":[` + item + `],"merchant":{"redirectUrl":"https://partner.example\\@evil.test/","webhookUrl":"http://[::ffff:10.0.0.7]/"}}`,
		``, `null`, `[]`, `{} {}`, `{"amount":1,"amount":2}`, `{"externalNumber":"\ud800","amount":5e3,"items":[7]}`, "{\"externalNumber\":\"\xff\"}",
		`{"externalNumber":null,"amount":-0,"items":[{"number":null,"price":-1e-400,"quantity":"1"}],"customer":[],"merchant":{"note":{}}}`,
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
}

// fuzzed is a surface without a processor.
func fuzzed() *API {
	return &API{
		cfg: Config{
			Credentials: nobody{}, Quotas: unlimited{}, Webhooks: address.Rule{}, Resolver: unresolved{}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
			Payers: map[string]Payer{checkout.OfferMomo: congo{"06"}, checkout.OfferMomoB: congo{"05", "04"}},
		},
		clients: web.NewClients(web.Multiples(1e9), time.Minute), guesses: web.NewClients(web.Multiples(1e9), time.Minute),
	}
}

// nobody knows no credentials.
type nobody struct{ Credentials }

func (nobody) Check(context.Context, string, string) (cashin.Principal, bool, error) {
	return cashin.Principal{}, false, nil
}

// unlimited admits every call.
type unlimited struct{}

func (unlimited) Admit(context.Context, string, int) (quota.Allowance, bool, error) {
	return quota.Allowance{}, true, nil
}

type unresolved struct{}

func (unresolved) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no such host")
}

type congo []string

func (c congo) Payer(input string) (string, error) { return contact.MobileOf(input, c...) }

func posted(body []byte) call {
	r := httptest.NewRequest(http.MethodPost, "/api/init-checkout", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return call{w: httptest.NewRecorder(), r: r, arrived: time.Now(), by: new(cashin.Principal)}
}

var rules = []string{ruleType, ruleRange, ruleEnum, ruleDistinct, ruleURL, ruleRequired}

// refused checks the answer to a body that is refused: a 400 of three fields, or a 422 whose
// faults name their fields and rules. It is JSON without characters that JSON cannot hold.
func refused(t *testing.T, a *API, err error) {
	t.Helper()
	w := httptest.NewRecorder()
	a.fail(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody), err)
	body := w.Body.Bytes()
	if !utf8.Valid(body) {
		t.Errorf("the answer is no UTF-8: %q", body)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	switch w.Code {
	case http.StatusBadRequest, http.StatusUnauthorized:
		if len(got) != 3 || got["message"] == nil || got["status"] == nil || got["code"] == nil {
			t.Errorf("%d %s", w.Code, body)
		}
	case http.StatusUnprocessableEntity:
		var list []map[string]string
		if err := json.Unmarshal(got["errors"], &list); err != nil || len(got) != 2 || got["message"] == nil || len(list) == 0 {
			t.Fatalf("%d %s: %v", w.Code, body, err)
		}
		seen := map[string]bool{}
		for _, f := range list {
			if len(f) != 3 || f["field"] == "" || !slices.Contains(rules, f["rule"]) || f["message"] == "" {
				t.Errorf("fault %q", f)
			}
			if key := f["field"] + " " + f["rule"]; seen[key] {
				t.Errorf("%s is told twice", key)
			} else {
				seen[key] = true
			}
		}
	default:
		t.Errorf("%d %s", w.Code, body)
	}
}

// within checks a text of the request.
func within(t *testing.T, field, s string, least, most int) {
	t.Helper()
	if n := utf8.RuneCountInString(s); n < least || n > most || strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		t.Errorf("%s is %q", field, s)
	}
}

// checkCommon checks the fields that both bodies have, in an accepted request.
func checkCommon(t *testing.T, body []byte, s checkout.Session) {
	t.Helper()
	within(t, "externalNumber", s.OrderID, 1, 200)
	within(t, "description", s.Description, 0, 2000)
	within(t, "note", s.Note, 0, 2000)
	if c := s.Customer; c != nil {
		within(t, "full_name", c.Name, 0, 200)
		within(t, "address", c.Address, 0, 500)
		within(t, "phone", c.Phone, 0, 200)
	}
	if s.Amount < 1 || s.Amount > maxAmount || s.Currency != "XAF" {
		t.Errorf("amount %d %s", s.Amount, s.Currency)
	}
	var sent struct {
		Items []map[string]any `json:"items"`
	}
	var kept []map[string]any
	for into, text := range map[any][]byte{&sent: body, &kept: s.Cashin.Items} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	numbers := map[any]bool{}
	for i, it := range kept {
		if numbers[it["number"]] || len(it) != 4 {
			t.Errorf("item %v", it)
		}
		numbers[it["number"]] = true
		for _, field := range []string{"number", "name", "price", "quantity"} {
			if !reflect.DeepEqual(it[field], sent.Items[i][field]) {
				t.Errorf("items.%d.%s is kept as %#v, and was sent as %#v", i, field, it[field], sent.Items[i][field])
			}
		}
	}
	if len(kept) != len(sent.Items) || len(kept) < 1 || len(kept) > maxItems {
		t.Errorf("%d of %d items are kept", len(kept), len(sent.Items))
	}
}

// indented is another spelling of a body.
func indented(t *testing.T, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, body, " ", "\t"); err != nil {
		t.Fatalf("accepted, but not JSON: %v", err)
	}
	return out.Bytes()
}

var hostname = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)

// Any body of init-checkout is refused with a reason or obeys every rule. Another spelling of
// the same JSON is the same request.
func FuzzInitCheckout(f *testing.F) {
	seedPayments(f)
	a, app := fuzzed(), registry.Application{Cashin: &registry.Cashin{RedirectOrigins: []string{"https://partner.example", "https://shop.example:8443"}}}
	read := func(t *testing.T, body []byte, live bool) (request, error) {
		o, err := readObject(posted(body))
		if err != nil {
			return request{}, err
		}
		return a.readInit(t.Context(), o, app, live)
	}
	f.Fuzz(func(t *testing.T, body []byte, live bool) {
		if len(body) > maxBody/2 {
			return
		}
		q, err := read(t, body, live)
		if err != nil {
			refused(t, a, err)
			return
		}
		s := q.session
		checkCommon(t, body, s)
		if !slices.Contains([]string{"", "ecommerce", "service"}, s.Cashin.Type) || s.Cashin.Kind != checkout.CashinInit {
			t.Errorf("%+v", s.Cashin)
		}
		for _, text := range []string{s.SuccessURL, s.CancelURL} {
			if text == "" {
				continue
			}
			u, err := url.Parse(text)
			if err != nil || u.User != nil || !slices.Contains([]string{"https://partner.example", "https://partner.example:443", "https://shop.example:8443"}, strings.ToLower(u.Scheme+"://"+u.Host)) {
				t.Errorf("the citizen returns to %q", text)
			}
		}
		if text := s.Cashin.WebhookURL; text != "" {
			u, err := url.Parse(text)
			if err != nil || u.User != nil || u.Scheme != "https" && (live || u.Scheme != "http") || !hostname.MatchString(u.Hostname()) || !strings.Contains(u.Hostname(), ".") {
				t.Errorf("webhooks go to %q", text)
			} else if _, err := netip.ParseAddr(u.Hostname()); err == nil {
				t.Errorf("webhooks go to %q", text)
			}
		}
		if again, err := read(t, indented(t, body), live); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("with white space it is another request: %+v, %v", again, err)
		}
	})
}

// Any body of partners/payments is refused with a reason or obeys every rule. A payer's
// number is one of the operator's.
func FuzzPartnersPayments(f *testing.F) {
	seedPayments(f)
	a := fuzzed()
	numbers := map[string]*regexp.Regexp{checkout.OfferMomo: regexp.MustCompile(`^24206[0-9]{7}$`), checkout.OfferMomoB: regexp.MustCompile(`^2420[45][0-9]{7}$`)}
	f.Fuzz(func(t *testing.T, body []byte, _ bool) {
		if len(body) > maxBody/2 {
			return
		}
		read := func(body []byte) (request, error) {
			o, err := readObject(posted(body))
			if err != nil {
				return request{}, err
			}
			return readPay(o, registry.Application{}, false)
		}
		q, err := read(body)
		if err != nil {
			refused(t, a, err)
			return
		}
		checkCommon(t, body, q.session)
		within(t, "provider", q.provider, 1, 32)
		if g, known := providers[q.provider]; known && g.phone {
			within(t, "phone", q.phone, 1, 200)
			if payer, ok := a.payer(g.offer, q.phone); ok && !numbers[g.offer].MatchString(payer) {
				t.Errorf("%q is read as %q", q.phone, payer)
			}
		}
		if again, err := read(indented(t, body)); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("with white space it is another request: %+v, %v", again, err)
		}
	})
}

// Any body of generate-application-access-token is refused with a reason, or its credentials
// are looked up.
func FuzzCredentials(f *testing.F) {
	for _, body := range []string{
		`{"apiKey":"ak_test_x","secretKey":"as_test_y"}`, `{"apiKey":7,"secretKey":""}`, `{"apiKey":"\u0000","secretKey":"é","more":{}}`, `{"apiKey":null}`, ``, `[]`, `{"apiKey":"a","apiKey":"b"}`,
		"{\"apiKey\":\"\xff\",\"secretKey\":\"\\udc00\"}",
	} {
		f.Add([]byte(body))
	}
	a := fuzzed()
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > maxBody/2 {
			return
		}
		c := posted(body)
		c.route = routes[0]
		err := a.generate(c)
		if err == nil {
			t.Fatal("a token for nobody")
		}
		refused(t, a, err)
	})
}
