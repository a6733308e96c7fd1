package batch

import "testing"

// `batches show` printed ids alone, which nobody knows by heart.
func TestNamesOfPeople(t *testing.T) {
	t.Parallel()
	who := people{"018f-1": "Mireille Okemba"}
	for id, want := range map[string]string{"018f-1": "Mireille Okemba (018f-1)", "018f-2": "018f-2", "": ""} {
		if got := who.of(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	if got, want := detailText(map[string]string{"by": "018f-1", "case": "held"}, who), "by=Mireille Okemba (018f-1) case=held"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
