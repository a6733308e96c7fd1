package contact_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/internal/contact"
)

func TestMobileOf(t *testing.T) {
	t.Parallel()
	const want = "242066000001"
	for _, input := range []string{
		"06 600 00 01", "066000001", "06-600-00-01", "06.600.00.01", "(06) 600 00 01", " 06 600 00 01 ", "06\u00a0600\u202f00\u00a001",
		"+242 06 600 00 01", "+242066000001", "242066000001", "00242066000001", "00 242 06 600 00 01",
		"+24266000001", // as the deprecated surface writes it, without the 0
		"24266000001",
	} {
		if got, err := contact.MobileOf(input, "06"); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %s", input, got, err, want)
		}
	}
	for _, input := range []string{
		"", "0", "06", "06 600 00 0", "06 600 00 011", "66000001", "+33 6 12 34 56 78", "+243 066000001", "0033612345678",
		"06 600 00 0x", "０６６０００００１", "+242 +066000001", "000000000", "006600001", "+242", strings.Repeat("0", 5000), "\x00",
	} {
		if got, err := contact.MobileOf(input, "06"); !errors.Is(err, contact.ErrNotMobile) {
			t.Errorf("%q: %q, %v, want ErrNotMobile", input, got, err)
		}
	}
	for _, input := range []string{"05 500 00 01", "+242 04 400 00 01", "22 281 00 00"} {
		if got, err := contact.MobileOf(input, "06"); err == nil {
			t.Errorf("%q: %q, want an error", input, got)
		}
	}
	if _, err := contact.MobileOf("05 500 00 01", "06"); !errors.Is(err, contact.ErrOtherOperator) || strings.Contains(err.Error(), "5500") {
		t.Errorf("error %v", err)
	}
}

func TestMobileOfIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got, err := contact.MobileOf(rapid.String().Draw(t, "input"), "06")
		if err != nil {
			return
		}
		if again, err := contact.MobileOf(got, "06"); err != nil || again != got || len(got) != 12 {
			t.Fatalf("%q again: %q, %v", got, again, err)
		}
	})
}

func TestMask(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"242066000001": "+242\u00a006\u00a0•••\u00a0••\u00a001", "06 600 00 01": "+242\u00a006\u00a0•••\u00a0••\u00a001",
		"": "•••", "12345": "•••", "+33612345678": "•••",
	} {
		if got := contact.Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}

// A customer may have a number of any country. What no telephone has is refused.
func TestPossibleNumber(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"+242 06 600 00 01", "066000001", "00242066000001", "+24266000001", "+242 222 81 00 00", "+33 6 12 34 56 78", "0033612345678", "+1 (202) 555-0143", "222810000", "+43 1 58858"} {
		if !contact.PossibleNumber(input) {
			t.Errorf("%q is refused", input)
		}
	}
	for _, input := range []string{"", "+", "12", "06 600", "aucun", "+0 66 00 00 01", "+242 06", "+242 066 000 001 23", "1234567890123456", "06 600 00 0x", "066000001\x00", "+242 +066000001"} {
		if contact.PossibleNumber(input) {
			t.Errorf("%q is accepted", input)
		}
	}
}
