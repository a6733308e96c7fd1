package erp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"quittance/internal/erp"
	"quittance/internal/form"
	"quittance/internal/registry"
)

// due is a valid due, changed by members. A nil member is removed.
func due(ref string, changes map[string]any) map[string]any {
	d := map[string]any{
		"erp_due_ref": ref, "label": "Patente 2026", "amount_minor": 5000, "outstanding_minor": 4000, "original_minor": 5000,
		"currency": "XAF", "allow_partial": true, "minimum_amount_minor": 1000, "revenue_line_code": "4711", "due_date": "2026-03-31",
	}
	maps.Copy(d, changes)
	maps.DeleteFunc(d, func(_ string, v any) bool { return v == nil })
	return d
}

func body(t testing.TB, items ...any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A due keeps what the ERP states. The ERP's own service fields and unknown ones are ignored.
func TestParseDues(t *testing.T) {
	t.Parallel()
	const most = 1<<53 - 1
	dues, refused, err := erp.ParseDues(body(t,
		due("D-1", map[string]any{"service_id": 7, "service_code": "x", "service_label": []int{1}, "more": map[string]any{"a": 1}}),
		due("D-2", map[string]any{
			"label": "  Taxe\n\tfoncière  " + strings.Repeat("é", 300), "amount_minor": 0, "outstanding_minor": most, "original_minor": most, "currency": "EUR",
			"allow_partial": false, "minimum_amount_minor": nil, "revenue_line_code": nil, "due_date": nil,
		}),
		due("D-3", map[string]any{"outstanding_minor": 0}), // paid: its minimum does not matter
		due("D-4", map[string]any{"due_date": "31/03/2026", "allow_partial": false, "minimum_amount_minor": "?"}),
		due("d-1", map[string]any{"due_date": "2026-03-31T23:30:00+01:00", "minimum_amount_minor": 4000}), // references differ in case
	))
	if err != nil || len(refused) != 0 || len(dues) != 5 {
		t.Fatalf("%+v, %+v, %v", dues, refused, err)
	}
	march := time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
	want := erp.Due{Ref: "D-1", Label: "Patente 2026", Amount: 5000, Outstanding: 4000, Original: 5000, Currency: "XAF", AllowPartial: true, Minimum: 1000, RevenueLine: "4711", DueDate: march}
	if dues[0] != want {
		t.Errorf("%+v, want %+v", dues[0], want)
	}
	if d := dues[1]; !strings.HasPrefix(d.Label, "Taxe foncière éé") || len([]rune(d.Label)) != 200 || !strings.HasSuffix(d.Label, "é…") || d.Outstanding != most || d.Minimum != 0 || !d.DueDate.IsZero() {
		t.Errorf("%+v", d)
	}
	if !dues[2].Paid() || dues[2].Takes(0) || dues[2].Takes(1) || dues[0].Paid() {
		t.Errorf("%+v", dues[2])
	}
	if !dues[3].DueDate.IsZero() || !dues[4].DueDate.Equal(march) {
		t.Errorf("due dates %v and %v", dues[3].DueDate, dues[4].DueDate)
	}
	for amount, taken := range map[int64]bool{999: false, 1000: true, 4000: true, 4001: false, -1: false} {
		if dues[0].Takes(amount) != taken || dues[3].Takes(amount) != (amount == 4000) {
			t.Errorf("%d is taken: %v, %v", amount, dues[0].Takes(amount), dues[3].Takes(amount))
		}
	}
	for at, overdue := range map[time.Time]bool{march.Add(23 * time.Hour): false, march.Add(24 * time.Hour): true} {
		if dues[0].Overdue(at) != overdue || dues[2].Overdue(at) || dues[1].Overdue(at) {
			t.Errorf("overdue at %v: %v", at, dues[0].Overdue(at))
		}
	}
}

// The agency adds penalties and interest to what is left to pay, which is then above the
// original amount. Such a due was refused as faulty, and the citizen could not pay it.
func TestDueWithPenalties(t *testing.T) {
	t.Parallel()
	dues, refused, err := erp.ParseDues(body(t,
		due("D-1", map[string]any{"outstanding_minor": 5001}),
		due("D-2", map[string]any{"outstanding_minor": 7500, "original_minor": 0, "allow_partial": false}),
		due("D-3", map[string]any{"outstanding_minor": 5000}),
		due("D-4", map[string]any{"outstanding_minor": 0}),
	))
	if err != nil || len(refused) != 0 || len(dues) != 4 {
		t.Fatalf("%+v, %+v, %v", dues, refused, err)
	}
	for i, want := range []int64{1, 7500, 0, 0} {
		if dues[i].Added() != want {
			t.Errorf("%+v: %d added, want %d", dues[i], dues[i].Added(), want)
		}
	}
	if !dues[0].Takes(5001) || !dues[0].Takes(1000) || dues[0].Takes(5002) || !dues[1].Takes(7500) || dues[1].Takes(5000) {
		t.Errorf("what the dues take: %+v", dues)
	}
}

// Each rule of a due is checked, the reason is named, and the other dues stay usable.
func TestRefusedDues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 201)
	for _, c := range []struct {
		item        any
		field, rule string
	}{
		{due("", nil), "erp_due_ref", "length"},
		{due("  ", nil), "erp_due_ref", "format"},
		{due("D\n1", nil), "erp_due_ref", "format"},
		{due("D\u0000", nil), "erp_due_ref", "format"},
		{due(long, nil), "erp_due_ref", "length"},
		{due("x", map[string]any{"erp_due_ref": nil}), "erp_due_ref", "required"},
		{due("x", map[string]any{"erp_due_ref": 7}), "erp_due_ref", "type"},
		{due("x", map[string]any{"label": nil}), "label", "required"},
		{due("x", map[string]any{"label": " \n"}), "label", "type"},
		{due("x", map[string]any{"label": 7}), "label", "type"},
		{due("x", map[string]any{"amount_minor": nil}), "amount_minor", "required"},
		{due("x", map[string]any{"amount_minor": "5000"}), "amount_minor", "type"},
		{due("x", map[string]any{"amount_minor": 5000.5}), "amount_minor", "type"},
		{due("x", map[string]any{"amount_minor": json.RawMessage("5e3")}), "amount_minor", "type"},
		{due("x", map[string]any{"amount_minor": json.RawMessage("5000.0")}), "amount_minor", "type"},
		{due("x", map[string]any{"amount_minor": -1}), "amount_minor", "range"},
		{due("x", map[string]any{"amount_minor": 1 << 53}), "amount_minor", "range"},
		{due("x", map[string]any{"amount_minor": json.RawMessage("99999999999999999999")}), "amount_minor", "range"},
		{due("x", map[string]any{"outstanding_minor": -1}), "outstanding_minor", "range"},
		{due("x", map[string]any{"original_minor": false}), "original_minor", "type"},
		{due("x", map[string]any{"currency": nil}), "currency", "required"},
		{due("x", map[string]any{"currency": "XOF"}), "currency", "enum"},
		{due("x", map[string]any{"currency": "xaf"}), "currency", "enum"},
		{due("x", map[string]any{"allow_partial": nil}), "allow_partial", "required"},
		{due("x", map[string]any{"allow_partial": "true"}), "allow_partial", "type"},
		{due("x", map[string]any{"minimum_amount_minor": nil}), "minimum_amount_minor", "required"},
		{due("x", map[string]any{"minimum_amount_minor": 0}), "minimum_amount_minor", "range"},
		{due("x", map[string]any{"minimum_amount_minor": 4001}), "minimum_amount_minor", "range"},
		{due("x", map[string]any{"minimum_amount_minor": "1"}), "minimum_amount_minor", "type"},
		{due("x", map[string]any{"revenue_line_code": strings.Repeat("4", 51)}), "revenue_line_code", "length"},
		{due("x", map[string]any{"revenue_line_code": 4711}), "revenue_line_code", "type"},
		{"x", "", "type"},
		{nil, "", "type"},
		{json.RawMessage(`{"erp_due_ref":"x","erp_due_ref":"y"}`), "", "type"},
	} {
		dues, refused, err := erp.ParseDues(body(t, due("good-1", nil), c.item, due("good-2", nil)))
		if err != nil || len(dues) != 2 || dues[0].Ref != "good-1" || dues[1].Ref != "good-2" || len(refused) != 1 || refused[0].Position != 1 {
			t.Errorf("%v: %+v, %+v, %v", c.item, dues, refused, err)
			continue
		}
		if f := refused[0].Faults; len(f) != 1 || f[0].Field != c.field || f[0].Rule != c.rule || !strings.HasPrefix(f[0].Message, c.field) {
			t.Errorf("%v: %+v, want %s of %s", c.item, f, c.rule, c.field)
		}
	}
	_, refused, _ := erp.ParseDues(body(t, due("D-1", map[string]any{"amount_minor": -1, "currency": "?", "minimum_amount_minor": nil})))
	if len(refused) != 1 || refused[0].Ref != "D-1" || refused[0].Label != "Patente 2026" || len(refused[0].Faults) != 3 {
		t.Errorf("several faults: %+v", refused)
	}
	// All dues with a repeated reference are refused: it is ambiguous which one is paid.
	dues, refused, _ := erp.ParseDues(body(t, due("D-1", nil), due("D-2", nil), due("D-1", nil), due("D-1", map[string]any{"currency": nil})))
	if len(dues) != 1 || dues[0].Ref != "D-2" || len(refused) != 3 || refused[0].Faults[0].Rule != "duplicate" || refused[1].Position != 2 || len(refused[2].Faults) != 2 {
		t.Errorf("duplicates: %+v, %+v", dues, refused)
	}
}

// An answer that is not usable as a whole is not an empty list.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	many := make([]any, 501)
	for i := range many {
		many[i] = due(fmt.Sprint(i), nil)
	}
	for text, want := range map[string]string{
		"":                                 erp.InvalidJSON,
		"<!doctype html><p>ok":             erp.InvalidHTML,
		"\x1f\x8b\x08":                     erp.InvalidCompressed,
		`{"items":[]`:                      erp.InvalidJSON,
		`{"items":[]}{}`:                   erp.InvalidJSON,
		"{\"items\":[\"\xff\"]}":           erp.InvalidUTF8,
		`{}`:                               erp.InvalidItems,
		`[]`:                               erp.InvalidItems,
		`null`:                             erp.InvalidItems,
		`{"items":null}`:                   erp.InvalidItems,
		`{"items":{}}`:                     erp.InvalidItems,
		`{"Items":[]}`:                     erp.InvalidItems,
		`{"items":[],"items":[]}`:          erp.InvalidItems,
		string(body(t, many...)):           erp.InvalidTooMany,
		"\xEF\xBB\xBF {\"items\":[]} \r\n": "",
		string(body(t, many[:500]...)):     "",
	} {
		_, _, err := erp.ParseDues([]byte(text))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// catalogue maps codes to services; the code "" is the default.
type catalogue map[string]registry.Service

func (c catalogue) ResolveService(_, code string) (registry.Service, bool) {
	s, ok := c[code]
	if !ok {
		s, ok = c[""]
	}
	return s, ok
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dues := []erp.Due{{Ref: "1", RevenueLine: "4711"}, {Ref: "2", RevenueLine: "9"}, {Ref: "3"}}
	patente, other := registry.Service{ID: "p", Code: "patente", Label: "Patente"}, registry.Service{ID: "o", Code: "autre"}
	got := erp.Resolve("a", dues, catalogue{"4711": patente, "": other})
	if got[0].Service != patente || got[1].Service != other || got[2].Service != other || dues[0].Service.ID != "" {
		t.Errorf("%+v", got)
	}
	if got := erp.Resolve("a", dues, catalogue{"4711": patente}); got[0].Service != patente || got[1].Service.ID != "" || got[2].Ref != "3" {
		t.Errorf("without a default: %+v", got)
	}
}

// Whatever an ERP answers, a due that can be paid keeps the contract, and every item is
// either usable or refused with a reason.
func FuzzParseDues(f *testing.F) {
	f.Add(body(f, due("D-1", nil), due("D-1", nil), due("D-2", map[string]any{"minimum_amount_minor": 5001})))
	f.Add([]byte(`{"items":[{"erp_due_ref":"\ud800","amount_minor":9007199254740992,"allow_partial":true}]}`))
	f.Add([]byte("\xEF\xBB\xBF{\"more\":{\"items\":[1]},\"items\":[{}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dues, refused, err := erp.ParseDues(text)
		if err != nil {
			if len(dues)+len(refused) > 0 || len(err.Error()) > 20 {
				t.Fatalf("%v with %d items", err, len(dues)+len(refused))
			}
			return
		}
		var whole struct{ Items []json.RawMessage }
		if errors.Is(json.Unmarshal(text, &whole), nil) && len(whole.Items) > 0 && len(whole.Items) != len(dues)+len(refused) {
			t.Logf("%d of %d items", len(dues)+len(refused), len(whole.Items)) // "Items" is another member
		}
		refs := map[string]bool{}
		for _, d := range dues {
			if refs[d.Ref] || !erp.IsReference(d.Ref) || d.Label == "" || d.Outstanding < 0 || d.Outstanding > form.MaxAmount || d.Original < 0 || d.Original > form.MaxAmount || d.Added() < 0 ||
				d.AllowPartial && !d.Paid() && (d.Minimum < 1 || d.Minimum > d.Outstanding) || !d.Paid() && !d.Takes(d.Outstanding) || d.Takes(d.Outstanding+1) || d.Takes(0) {
				t.Fatalf("usable: %+v", d)
			}
			refs[d.Ref] = true
		}
		for _, r := range refused {
			if len(r.Faults) == 0 {
				t.Fatalf("refused without a reason: %+v", r)
			}
		}
	})
}
