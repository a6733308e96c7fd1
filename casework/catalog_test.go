package casework_test

import (
	"reflect"
	"testing"

	"quittance/casework"
)

// A domain adds kinds to those of another. A resolution of both closes the kinds of each as
// that domain says.
func TestCatalogJoins(t *testing.T) {
	t.Parallel()
	kinds := func(list ...casework.Kind) []casework.Kind { return list }
	c := casework.Join(
		casework.Catalog{Kinds: kinds("late", "mismatch"), Evidence: []string{"source"}, Exits: []casework.Exit{
			{Resolution: "honour", Of: kinds("late", "mismatch")},
			{Resolution: casework.ResolutionWriteOff, Of: kinds("late"), NeedsReference: true},
		}},
		casework.Catalog{Kinds: kinds("returned"), Evidence: []string{"batch"}, Exits: []casework.Exit{
			{Resolution: "pay_again", Of: kinds("returned"), NeedsTwo: true},
			{Resolution: casework.ResolutionWriteOff, Of: kinds("returned")},
		}},
	)
	for _, x := range []struct{ got, want any }{
		{c.Kinds, kinds("late", "mismatch", "returned")},
		{c.Evidence, []string{"source", "batch"}},
		{c.Resolutions(), []casework.Resolution{"honour", casework.ResolutionWriteOff, "pay_again"}},
		{c.Allowed("late"), []casework.Resolution{"honour", casework.ResolutionWriteOff}},
		{c.Allowed("returned"), []casework.Resolution{"pay_again", casework.ResolutionWriteOff}},
		{len(c.Allowed("unknown")), 0},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("%v, want %v", x.got, x.want)
		}
	}
	if e, ok := c.Exit("late", casework.ResolutionWriteOff); !ok || !e.NeedsReference {
		t.Errorf("%+v, %t", e, ok)
	}
	if e, ok := c.Exit("returned", casework.ResolutionWriteOff); !ok || e.NeedsReference {
		t.Errorf("%+v, %t", e, ok)
	}
	if _, ok := c.Exit("late", "pay_again"); ok {
		t.Error("a resolution of another domain closes the case")
	}
}
