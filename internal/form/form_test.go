package form

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"": "too early", "{": "too early", "nul": "too early", "[]": "object", `"x"`: "object", "null": "object", "7": "object",
		"{} {}": "more than one", `{"a":1,}`: "at byte 8", "{'a':1}": "at byte 2", "\xff{}": "UTF-8",
		`{"amount":1,"amount":2}`: `"amount" twice`, `{"a":{"b":[{"c":1,"\u0063":1}]}}`: `"c" twice`,
	} {
		fields, err := Decode([]byte(body))
		var not *MalformedError
		if !errors.As(err, &not) || !strings.Contains(not.Detail, want) || fields != nil {
			t.Errorf("%q: %v, %v; want one that says %q", body, fields, err, want)
		}
	}
	fields, err := Decode([]byte(` {"a": 9007199254740993, "b": {"a": "x:\\\""}} `))
	if err != nil || fields["a"] != json.Number("9007199254740993") {
		t.Errorf("%v, %v", fields, err)
	}
}

// Each method accepts some values and reports a fault for the others.
func TestFields(t *testing.T) {
	t.Parallel()
	text := func(f *Form) any { return f.Text("x", true, 1, 3) }
	optional := func(f *Form) any { return f.Text("x", false, 1, 3) }
	line := func(f *Form) any { return f.Line("x", false, 3) }
	id := func(f *Form) any { return f.UUID("x", true) }
	amount := func(f *Form) any { return f.Amount("x") }
	object := func(f *Form) any {
		inner := ""
		f.Object("x", func(in *Form) { inner = in.Text("y", true, 1, 3) })
		return inner
	}
	for _, row := range []struct {
		take   func(*Form) any
		body   string
		want   any
		faults string
	}{
		{text, `{"x":"été"}`, "été", ""},
		{text, `{"x":""}`, "", "x:length"},
		{text, `{"x":"four"}`, "", "x:length"},
		{text, `{"x":7}`, "", "x:type"},
		{text, `{}`, "", "x:required"},
		{text, `{"x":null}`, "", "x:required"},
		{text, `{"x":"a\u0000"}`, "", "x:format"},
		{text, `{"x":"\ud800"}`, "", "x:format"},
		{text, `{"x":"a","X":"b"}`, "a", "X:unknown"},
		{optional, `{}`, "", ""},
		{optional, `{"x":null}`, "", ""},
		{optional, `{"x":""}`, "", "x:length"},
		{line, `{"x":"n 7"}`, "n 7", ""},
		{line, `{"x":"a\nb"}`, "", "x:format"},
		{line, `{"x":"  "}`, "", "x:format"},
		{line, `{"x":"\u202ea"}`, "", "x:format"},
		{line, `{"x":"a\ud800"}`, "a\ufffd", ""},
		{line, `{"x":"a\u0000"}`, "", "x:format"},
		{text, `{"x":"�"}`, "", "x:format"},
		{line, `{}`, "", ""},
		{line, `{"x":""}`, "", ""},
		{id, `{"x":"018F0000-0000-7000-8000-00000000000a"}`, "018f0000-0000-7000-8000-00000000000a", ""},
		{id, `{"x":"k1"}`, "", "x:format"},
		{id, `{"x":"018f00000000700080000000000000000a"}`, "", "x:format"},
		{id, `{}`, "", "x:required"},
		{amount, `{"x":1}`, int64(1), ""},
		{amount, `{"x":9007199254740991}`, int64(MaxAmount), ""},
		{amount, `{"x":9007199254740992}`, int64(0), "x:range"},
		{amount, `{"x":0}`, int64(0), "x:range"},
		{amount, `{"x":-5}`, int64(0), "x:range"},
		{amount, `{"x":99999999999999999999}`, int64(0), "x:range"},
		{amount, `{"x":5.0}`, int64(0), "x:type"},
		{amount, `{"x":5e2}`, int64(0), "x:type"},
		{amount, `{"x":"5"}`, int64(0), "x:type"},
		{amount, `{}`, int64(0), "x:required"},
		{object, `{"x":{"y":"in"}}`, "in", ""},
		{object, `{"x":{"y":7,"z":1}}`, "", "x.y:type x.z:unknown"},
		{object, `{"x":[]}`, "", "x:type"},
		{object, `{}`, "", ""},
	} {
		f, err := Read([]byte(row.body))
		if err != nil {
			t.Fatal(err)
		}
		got := row.take(f)
		var faults []string
		for _, fault := range f.Faults() {
			if !strings.HasPrefix(fault.Message, fault.Field+" ") || !strings.HasSuffix(fault.Message, ".") {
				t.Errorf("%s: the message is %q", row.body, fault.Message)
			}
			faults = append(faults, fault.Field+":"+fault.Rule)
		}
		if said := strings.Join(faults, " "); got != row.want || said != row.faults {
			t.Errorf("%s: %v and faults %q, want %v and %q", row.body, got, said, row.want, row.faults)
		}
	}
}

// The fault of an unknown field lists the known fields and shortens a long name.
func TestUnknown(t *testing.T) {
	t.Parallel()
	f, err := Read([]byte(`{"b":1,"` + strings.Repeat("é", 5000) + `":1,"":1}`))
	if err != nil {
		t.Fatal(err)
	}
	f.Text("a", false, 1, 3)
	var faults *FaultsError
	if err := f.Err(); !errors.As(err, &faults) {
		t.Fatalf("error %v", err)
	}
	want := []string{
		`"" is not a field of this request; the fields are a.`, "b is not a field of this request; the fields are a.",
		strings.Repeat("é", 64) + "… is not a field of this request; the fields are a.",
	}
	if len(faults.Faults) != len(want) {
		t.Fatalf("%d faults, want %d", len(faults.Faults), len(want))
	}
	for i, fault := range faults.Faults {
		if fault.Message != want[i] {
			t.Errorf("%q", fault.Message)
		}
	}
	if err := Of(nil).Err(); err != nil {
		t.Errorf("a form without faults returns %v", err)
	}
	if names := f.Names(); !slices.IsSorted(names) || len(names) != 3 {
		t.Errorf("names %d", len(names))
	}
}
