package contact_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"quittance/internal/contact"
	"quittance/internal/operation"
)

func TestPhones(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"06 600 00 01": "+242066000001", "+242 06-600-0001": "+242066000001", "00242066000001": "+242066000001", "05 500 00 01": "+242055000001", "242 4 400 0001": "+242044000001",
	} {
		a, err := contact.ParsePhone(text)
		if err != nil || a.Text() != want || a.Masked() != "+242\u00a0"+want[4:6]+"\u00a0•••\u00a0••\u00a001" || a.Prefix() != want[4:9] {
			t.Errorf("%s is %s, %v", text, a.Text(), err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if strings.Contains(fmt.Sprintf(verb, a), "00") {
				t.Errorf("%s prints the number", verb)
			}
		}
		if again, err := contact.Parse(contact.Phone, a.Text()); err != nil || again != a {
			t.Errorf("%s read again is %s, %v", text, again.Text(), err)
		}
	}
	refuses(t, contact.ParsePhone, "phone", "", "12", "+33 6 12 34 56 78", "222 81 00 00", "22 281 00 00", "01 600 00 01", "06 600 00 0x", "+1 900 555 0100", "٠٦٦٠٠٠٠٠١")
}

func TestEmails(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Marie.Ngoma@Example.ORG": "marie.ngoma@example.org", " a@b.cg ": "a@b.cg", "a+tag@impôts.cg": "a+tag@xn--impts-8ta.cg", "a@1e100.net": "a@1e100.net",
		strings.Repeat("a", 64) + "@b.cg": strings.Repeat("a", 64) + "@b.cg",
	} {
		a, err := contact.ParseEmail(text)
		if err != nil || a.Text() != want || a.Masked() != want[:1]+"•••"+want[strings.IndexByte(want, '@'):] || a.Prefix() != "" || strings.Contains(fmt.Sprintf("%v %+v %#v", a, a, a), "@") {
			t.Errorf("%s is %q, %v", text, a.Text(), err)
		}
		if again, err := contact.Parse(contact.Email, a.Text()); err != nil || again != a {
			t.Errorf("%s read again is %s, %v", text, again.Text(), err)
		}
	}
	refuses(t, contact.ParseEmail, "email", "", "a", "a@b", "a@", "@b.cg", "A <a@b.cg>", "a@b.cg, c@d.cg", `"a b"@c.cg`, `a\b@c.cg`, "a@-b.cg", "a@b..cg", "a@b.cg.", "é@b.cg",
		"a@[192.0.2.1]", "a@192.0.2.1", "a@localhost", "a@b.cg\r\nBcc: c@d.cg", strings.Repeat("a", 65)+"@b.cg", "a@"+strings.Repeat("b", 64)+".cg", "a@"+strings.Repeat("bbbb.", 60)+"cg")
}

func refuses(t *testing.T, parse func(string) (contact.Address, error), field string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		a, err := parse(text)
		var refused *operation.Error
		if !errors.As(err, &refused) || refused.Field != field || a != (contact.Address{}) || len(text) > 1 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
}

// A citizen pasted a number from a message and it was refused: it had marks that nobody sees.
func TestInvisibleMarks(t *testing.T) {
	t.Parallel()
	marks := 0
	for _, table := range []*unicode.RangeTable{unicode.Cf, unicode.Variation_Selector} {
		for r := range unicode.MaxRune {
			if !unicode.Is(table, r) {
				continue
			}
			marks++
			m := string(r)
			if a, err := contact.ParsePhone(m + "+" + m + "242 06 600" + m + "00 01" + m); err != nil || a.Text() != "+242066000001" {
				t.Errorf("%U in a number: %s, %v", r, a.Text(), err)
			}
			if a, err := contact.ParseEmail(m + "marie" + m + "@example.cg" + m); err != nil || a.Text() != "marie@example.cg" {
				t.Errorf("%U in an address: %s, %v", r, a.Text(), err)
			}
		}
	}
	if marks < 100 {
		t.Errorf("%d marks were tried", marks)
	}
	between := strings.Join(strings.Split("+242066000001", ""), "\u200b\u2069")
	if a, err := contact.ParsePhone(between); err != nil || a.Text() != "+242066000001" {
		t.Errorf("marks between all digits: %s, %v", a.Text(), err)
	}
}
