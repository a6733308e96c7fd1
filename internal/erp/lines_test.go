package erp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"quittance/internal/call"
	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// line is a valid line, changed by members. A nil member is removed.
func line(ref string, changes map[string]any) map[string]any {
	l := map[string]any{
		"line_ref": ref, "beneficiary": map[string]any{"name": "A. Beneficiary", "msisdn": "+242066000001"}, "payment_mode": "MOBILE_MONEY",
		"amount_minor": 25000, "currency": "XAF", "purpose": "Bourse", "metadata": map[string]any{"lot": "7"},
	}
	maps.Copy(l, changes)
	maps.DeleteFunc(l, func(_ string, v any) bool { return v == nil })
	return l
}

func readLines(body io.Reader) (items []erp.LineItem, err error) {
	err = erp.ReadDisbursements(body, func(i erp.LineItem) error {
		items = append(items, i)
		return nil
	})
	return items, err
}

func TestReadDisbursements(t *testing.T) {
	t.Parallel()
	to := func(account any) map[string]any {
		return map[string]any{"beneficiary": map[string]any{"name": "B", "account": account}}
	}
	items, err := readLines(bytes.NewReader(body(t, line("L-1", nil), line("L-2", to(map[string]any{"number": "0001", "bic": "ABCDCGCG"})), line("L-3", map[string]any{"purpose": nil, "metadata": nil}))))
	if err != nil || len(items) != 3 {
		t.Fatalf("%+v, %v", items, err)
	}
	want := erp.Line{Ref: "L-1", Beneficiary: erp.Beneficiary{Name: "A. Beneficiary", MSISDN: "+242066000001"}, PaymentMode: "MOBILE_MONEY", Amount: 25000, Currency: "XAF", Purpose: "Bourse", Metadata: map[string]string{"lot": "7"}}
	if !reflect.DeepEqual(items[0], erp.LineItem{Line: want}) || items[1].Beneficiary != (erp.Beneficiary{Name: "B", Number: "0001", BIC: "ABCDCGCG"}) || items[2].Position != 2 {
		t.Errorf("%+v", items)
	}
	for _, c := range []struct {
		changes     map[string]any
		field, rule string
	}{
		{map[string]any{"line_ref": strings.Repeat("x", 36)}, "line_ref", "length"},
		{map[string]any{"line_ref": "good"}, "line_ref", "duplicate"},
		{map[string]any{"beneficiary": nil}, "beneficiary", "required"},
		{map[string]any{"beneficiary": "B"}, "beneficiary", "type"},
		{map[string]any{"beneficiary": map[string]any{"name": "B"}}, "beneficiary.msisdn", "required"},
		{map[string]any{"beneficiary": map[string]any{"name": "B", "msisdn": "1", "account": map[string]any{"iban": "CG1"}}}, "beneficiary.msisdn", "required"},
		{map[string]any{"beneficiary": map[string]any{"msisdn": "1"}}, "beneficiary.name", "required"},
		{to(map[string]any{}), "beneficiary.account.iban", "required"},
		{to(map[string]any{"iban": "CG1", "number": "1"}), "beneficiary.account.iban", "required"},
		{map[string]any{"amount_minor": 0}, "amount_minor", "range"},
		{map[string]any{"amount_minor": json.RawMessage("2.5e4")}, "amount_minor", "type"},
		{map[string]any{"currency": "???"}, "currency", "enum"},
		{map[string]any{"payment_mode": nil}, "payment_mode", "required"},
		{map[string]any{"metadata": map[string]any{"a": 1}}, "metadata.a", "type"},
	} {
		items, err := readLines(bytes.NewReader(body(t, line("good", nil), line("bad", c.changes))))
		field := "items[1]." + c.field
		if err != nil || len(items) != 2 || len(items[0].Faults) != 0 || len(items[1].Faults) != 1 || items[1].Faults[0].Field != field || items[1].Faults[0].Rule != c.rule ||
			!strings.HasPrefix(items[1].Faults[0].Message, field+" ") {
			t.Errorf("%v: %+v, %v", c.changes, items, err)
		}
	}
	// All faults of an item at once; what is no object has the fault itself.
	items, err = readLines(bytes.NewReader(body(t, line("L-1", map[string]any{"amount_minor": -1, "currency": "€"}), 7)))
	if err != nil || len(items) != 2 || len(items[0].Faults) != 2 || len(items[1].Faults) != 1 || items[1].Faults[0].Field != "items[1]" {
		t.Errorf("%+v, %v", items, err)
	}
}

// A body that is not a list of items is refused as a whole, wherever it goes wrong.
func TestUnusableBatches(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(line("L-1", nil))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", erp.MaxLine)
	for text, want := range map[string]string{
		"":                                    erp.InvalidJSON,
		" \n":                                 erp.InvalidJSON,
		"<html>":                              erp.InvalidHTML,
		"\xEF\xBB\xBF \n<!doctype html>":      erp.InvalidHTML,
		"\x1f\x8b\x08":                        erp.InvalidCompressed,
		"[]":                                  erp.InvalidItems,
		"null":                                erp.InvalidItems,
		"{}":                                  erp.InvalidItems,
		`{"Items":[]}`:                        erp.InvalidItems,
		`{"items":null}`:                      erp.InvalidItems,
		`{"items":{}}`:                        erp.InvalidItems,
		`{"items":[],"items":[]}`:             erp.InvalidItems,
		`{"items":[]`:                         erp.InvalidJSON,
		`{"items":[` + string(good):           erp.InvalidJSON,
		`{"items":[` + string(good) + `,`:     erp.InvalidJSON,
		`{"items":[` + string(good) + `]]`:    erp.InvalidJSON,
		`{"items":[` + string(good) + ` {}]}`: erp.InvalidJSON,
		`{"items":[]}{}`:                      erp.InvalidJSON,
		`{"items":[]} x`:                      erp.InvalidJSON,
		`{"items":[{"line_ref":"` + "\xe9" + `"}]}`:                  erp.InvalidUTF8,
		`{"items":[{"line_ref":"` + long + `"}]}`:                    erp.InvalidItemSize,
		`{"items":[{"line_ref":"` + strings.Repeat(long, 9) + `"}]}`: erp.InvalidItemSize,
		`{"more":"` + strings.Repeat(long, 9) + `","items":[]}`:      erp.InvalidItemSize,
	} {
		for name, from := range map[string]io.Reader{"at once": strings.NewReader(text), "in small pieces": iotest.OneByteReader(strings.NewReader(text))} {
			if _, err := readLines(from); err == nil || err.Error() != want {
				t.Errorf("%.60q %s: %v, want %s", text, name, err, want)
			}
		}
	}
	for _, text := range []string{
		`{"items":[]}`, "\xEF\xBB\xBF\n{\"items\" : [ ] }\n", `{"more":{"items":[1,{"items":[[]]}]},"items":[` + string(good) + `],"and":[]}`,
	} {
		if items, err := readLines(iotest.DataErrReader(strings.NewReader(text))); err != nil || len(items) > 1 {
			t.Errorf("%q: %+v, %v", text, items, err)
		}
	}
}

// settings are those of an ERP at an address.
func settings(address string) registry.ERPSettings {
	return registry.ERPSettings{
		AgencyID: "a", BaseURL: address, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("s3cret")},
	}
}

// batchOf serves a batch of n lines, written as they are made, and does what the test wants
// after a number of lines.
func batchOf(t *testing.T, n, after int, then func(w http.ResponseWriter)) registry.ERPSettings {
	t.Helper()
	padding := strings.Repeat("é", 140)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/disbursements" || r.URL.Query().Get("batch_ref") != "B 7" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"items":[`)
		for i := range n {
			if i == after && then != nil {
				then(w)
			}
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = fmt.Fprintf(w, `{"line_ref":"L-%d","beneficiary":{"name":"A. Beneficiary","msisdn":"+242066000001"},"payment_mode":"MOBILE_MONEY","amount_minor":25000,"currency":"XAF","purpose":%q}`, i, padding)
		}
		_, _ = io.WriteString(w, `]}`)
	}))
	t.Cleanup(s.Close)
	return settings(s.URL)
}

// The limits of dues, 500 items and 1 MiB, refused every batch that is worth one. An answer
// that ends early is not a smaller batch.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	c := erp.New(erp.Config{Loopback: true})
	count := func(s registry.ERPSettings) (n int, r call.Result) {
		t.Helper()
		r, err := c.Disbursements(t.Context(), s, "B 7", func(i erp.LineItem) error {
			if len(i.Faults) > 0 || i.Position != n || i.Ref != fmt.Sprintf("L-%d", n) {
				t.Errorf("%+v", i)
			}
			n++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return n, r
	}
	if n, r := count(batchOf(t, 20_000, 0, nil)); n != 20_000 || !r.OK() {
		t.Errorf("%d lines, %+v", n, r)
	}
	if n, r := count(batchOf(t, erp.MaxLines+1, 0, nil)); n != erp.MaxLines || r.Fault != erp.FaultInvalid || r.Detail != erp.InvalidTooMany {
		t.Errorf("one line too many: %d, %+v", n, r)
	}
	cut := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	if n, r := count(batchOf(t, 1000, 600, cut)); n == 0 || n > 600 || r.Fault != call.FaultConnection {
		t.Errorf("cut after 600 lines: %d, %+v", n, r)
	}
	endless := func(w http.ResponseWriter) {
		more := []byte(`,{"more":"` + strings.Repeat("x", 1<<16) + `"}`)
		for i := 0; i <= erp.MaxLinesAnswer; i += len(more) {
			if _, err := w.Write(more); err != nil {
				return
			}
		}
	}
	r, err := c.Disbursements(t.Context(), batchOf(t, 10, 5, endless), "B 7", func(erp.LineItem) error { return nil })
	if err != nil || r.Fault != call.FaultTooLarge {
		t.Errorf("an endless answer: %+v, %v", r, err)
	}
	enough := errors.New("enough")
	if r, err := c.Disbursements(t.Context(), batchOf(t, 1000, 0, nil), "B 7", func(erp.LineItem) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("an error of the taker: %+v, %v", r, err)
	}
	if r, err := c.Disbursements(t.Context(), batchOf(t, 0, 0, nil), "other", nil); err != nil || r.Status != http.StatusNotFound {
		t.Errorf("%+v, %v", r, err)
	}
}

// A batch of 64 MiB whose lines are all held, as those of dues are, would have taken several
// hundred megabytes of ingress.
func TestMemoryDoesNotGrowWithTheBatch(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	peak := func(lines int) int64 {
		c, s := erp.New(erp.Config{Loopback: true}), batchOf(t, lines, 0, nil)
		before, most, n := live(), int64(0), 0
		r, err := c.Disbursements(t.Context(), s, "B 7", func(erp.LineItem) error {
			if n++; n%(lines/5) == 0 {
				most = max(most, live()-before)
			}
			return nil
		})
		if err != nil || !r.OK() || n != lines {
			t.Fatalf("%d of %d lines, %+v, %v", n, lines, r, err)
		}
		return most
	}
	small, large := peak(1000), peak(erp.MaxLines)
	t.Logf("live: %d KiB with 1000 lines, %d KiB with %d", small>>10, large>>10, erp.MaxLines)
	// Of each line the position of its line_ref is kept: some 100 bytes with the room of the
	// map. The bodies differ by 40 MB.
	if grown := large - small; grown > erp.MaxLines*150 {
		t.Errorf("%d bytes more are live with %d lines than with 1000", grown, erp.MaxLines)
	}
}

// Whatever an ERP answers, lines without faults keep the contract, and no line_ref occurs
// twice among them.
func FuzzReadDisbursements(f *testing.F) {
	f.Add(body(f, line("L-1", nil), line("L-1", nil), line("L-2", map[string]any{"amount_minor": -5})))
	f.Add([]byte(`{"items":[{"line_ref":"\ud800"}],"more":[[{}]]}`))
	f.Add([]byte("\xEF\xBB\xBF{\"items\":[{}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		items, err := readLines(bytes.NewReader(text))
		if err != nil && len(err.Error()) > 20 {
			t.Fatal(err)
		}
		if err == nil && !json.Valid(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))) {
			t.Fatalf("%q is no JSON", text)
		}
		var refs []string
		for n, i := range items {
			if i.Position != n {
				t.Fatalf("item %d is said to be %d", n, i.Position)
			}
			if len(i.Faults) == 0 {
				if slices.Contains(refs, i.Ref) || !erp.IsReference(i.Ref) || i.Amount < 1 || (i.Beneficiary.MSISDN == "") == (i.Beneficiary.IBAN+i.Beneficiary.Number == "") {
					t.Fatalf("usable: %+v", i)
				}
				refs = append(refs, i.Ref)
			}
		}
	})
}

// Brackets beside the items end the reading at a depth, long before the body ends.
func TestDepthBesideItems(t *testing.T) {
	t.Parallel()
	for depth, usable := range map[int]bool{64: true, 65: false} {
		body := strings.NewReader(`{"more": ` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `, "items": []}`)
		err := erp.ReadDisbursements(body, func(erp.LineItem) error { return nil })
		if usable != (err == nil) || err != nil && err.Error() != erp.InvalidJSON {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
	deep := &io.LimitedReader{R: brackets{}, N: 64 << 20}
	if err := erp.ReadDisbursements(io.MultiReader(strings.NewReader(`{"more": `), deep), func(erp.LineItem) error { return nil }); err == nil {
		t.Error("a body of brackets is usable")
	}
	if read := 64<<20 - deep.N; read > 1<<20 {
		t.Errorf("%d bytes were read", read)
	}
}

// brackets is a body without end.
type brackets struct{}

func (brackets) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	return len(p), nil
}
