package crash_test

import (
	"slices"
	"testing"
)

// returns is what somebody says of dues whose money was given back: the sum with its fee, by
// transaction. The read model says only which, of completed sessions.
type returns struct {
	name      string
	sums      map[string]int64
	readModel bool
}

// returned checks that the money of each due was given back at most once, and that everybody tells
// what the log has.
func (v *verdict) returned(h history, l *log) {
	want, completed := map[string]int64{}, map[string]int64{}
	partly := 0
	for _, e := range l.all {
		if e.kind == kindPartly {
			partly++
		}
		for _, d := range e.back {
			if _, again := want[d.transaction]; again {
				v.double("the money of %s was given back twice", d.transaction)
			}
			want[d.transaction] = d.amount + d.fee
			if e.after.status == "completed" {
				completed[d.transaction] = want[d.transaction]
			}
		}
	}
	for _, told := range h.told {
		known := want
		if told.readModel {
			known = completed
		}
		for transaction, sum := range known {
			if got, ok := told.sums[transaction]; !ok || !told.readModel && got != sum {
				v.find(&v.untold, "untold", "%s says that %d of %s was given back (%v), the log %d", told.name, got, transaction, ok, sum)
			}
		}
		for transaction, sum := range told.sums {
			if _, ok := known[transaction]; !ok {
				v.find(&v.untold, "untold", "%s says that %d of %s was given back, the log does not", told.name, sum, transaction)
			}
		}
	}
	v.count("dues given back", len(want))
	v.count("  carts of which a part was given back", partly)
}

// returns reports whether an event of the session gave the money of a transaction back.
func (l *log) returns(session, transaction string) bool {
	for _, e := range l.sessions[session] {
		if e.kind == kindReversed && len(e.back) == 0 || slices.ContainsFunc(e.back, func(d due) bool { return d.transaction == transaction }) {
			return true
		}
	}
	return false
}

// Who says of a returned due something else than the log is found: another sum, nothing, or a due
// whose money nobody gave back.
func TestCrashVerifierFindsUntoldReturns(t *testing.T) {
	t.Parallel()
	completed := standing{status: "completed"}
	l := &log{all: []event{
		{kind: kindPartly, after: completed, back: []due{{transaction: "t-1", amount: 100, fee: 2}}},
		{kind: kindReversed, after: completed, back: []due{{transaction: "t-2", amount: 50}}},
	}}
	for name, c := range map[string]struct {
		told returns
		want int
	}{
		"as the log":    {returns{sums: map[string]int64{"t-1": 102, "t-2": 50}}, 0},
		"without sums":  {returns{sums: map[string]int64{"t-1": 0, "t-2": 0}, readModel: true}, 0},
		"without fee":   {returns{sums: map[string]int64{"t-1": 100, "t-2": 50}}, 1},
		"one is missed": {returns{sums: map[string]int64{"t-1": 0}, readModel: true}, 1},
		"one too many":  {returns{sums: map[string]int64{"t-1": 102, "t-2": 50, "t-3": 7}}, 1},
	} {
		v := &verdict{}
		v.returned(history{told: []returns{c.told}}, l)
		if v.untold != c.want || v.doubled != 0 {
			t.Errorf("%s: %d untold, %d doubled, want %d", name, v.untold, v.doubled, c.want)
		}
	}
	l.all = append(l.all, l.all[1])
	v := &verdict{}
	if v.returned(history{}, l); v.doubled != 1 {
		t.Errorf("given back twice: %d doubled", v.doubled)
	}
}
