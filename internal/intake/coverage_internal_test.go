package intake

import "testing"

// A day counts within a file, or within files that follow each other by their balances. The first and the last day of a file may
// be half a day.
func TestCoversWholeDays(t *testing.T) {
	t.Parallel()
	file := func(from, to string) Facts { return Facts{From: "2026-11-" + from, To: "2026-11-" + to} }
	balanced := func(from, to string, opening, closing int64) Facts {
		f := file(from, to)
		f.Balanced, f.Opening, f.Closing = true, opening, closing
		return f
	}
	pending := func(day string) Facts {
		f := file("19", "24")
		f.Undecided = "2026-11-" + day
		return f
	}
	for _, test := range []struct {
		name  string
		files []Facts
		want  bool // 20 to 22 November
	}{
		{"no file", nil, false},
		{"an entry is pending before", []Facts{pending("18")}, false},
		{"an entry is pending on the last day", []Facts{pending("22")}, false},
		{"an entry is pending after", []Facts{pending("23")}, true},
		{"it was pending in another file", []Facts{pending("21"), file("19", "23")}, true},
		{"one file around them", []Facts{file("19", "23")}, true},
		{"the file begins on the first day", []Facts{file("20", "23")}, false},
		{"the file ends on the last day", []Facts{file("19", "22")}, false},
		{"two files without balances", []Facts{file("19", "21"), file("21", "23")}, false},
		{"each day a file without balances", []Facts{file("19", "19"), file("20", "20"), file("21", "21"), file("22", "22"), file("23", "23")}, false},
		{"each day a file, by balances", []Facts{balanced("22", "22", 3, 4), balanced("19", "19", 0, 1), balanced("20", "20", 1, 2), balanced("21", "21", 2, 3), balanced("23", "23", 4, 5)}, true},
		{"days without a file, whatever the balances", []Facts{balanced("19", "20", 0, 2), balanced("23", "23", 2, 5)}, false},
		{"an account that is emptied each time", []Facts{balanced("19", "19", 0, 0), balanced("20", "20", 0, 0), balanced("23", "23", 0, 0)}, false},
		{"a file is missing", []Facts{balanced("19", "19", 0, 1), balanced("20", "20", 1, 2), balanced("22", "22", 3, 4), balanced("23", "23", 4, 5)}, false},
	} {
		c := Coverage{accepted: []accepted{{facts: test.files}}}
		if got := c.Covers("2026-11-20", "2026-11-22"); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

func TestBelowOffset(t *testing.T) {
	t.Parallel()
	c := Coverage{accepted: []accepted{{partition: 1, from: 10, facts: []Facts{{Lines: 4}, {Lines: 2}}}}} // offsets 10 to 17
	for _, test := range []struct {
		partition int32
		offset    int64
		want      bool
	}{{1, 18, true}, {1, 17, false}, {0, 18, false}} {
		if got := c.Below(test.partition, test.offset); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
