package link

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadReferences(t *testing.T) {
	t.Parallel()
	refs, err := readReferences(strings.NewReader("\ufeffNIU-1\r\n\r\nréf 2, b\nNIU-1\n"))
	if err != nil || strings.Join(refs, "|") != "NIU-1|réf 2, b|NIU-1" {
		t.Errorf("%q, %v", refs, err)
	}
	for text, want := range map[string]string{
		"":                         "the file has no references",
		"NIU-1\n NIU-2\n":          "faults: 1\n  line 2, subject_ref: must be 1 to 200 bytes",
		"\xff\n":                   "line 1, subject_ref",
		strings.Repeat("a", 201):   "line 1, subject_ref",
		strings.Repeat("\t\n", 25): "faults: 25",
	} {
		if _, err := readReferences(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestReadContacts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no names":          "NIU-1,06 600 00 01\nNIU-2,a@b.cg\n",
		"names":             "subject_ref,contact\nNIU-1,+242 06 600 00 01\nNIU-2,A@B.cg\n",
		"other order":       "Email;Phone;Subject_Ref\r\n;06 600 00 01;NIU-1\r\na@b.cg;;NIU-2\r\n",
		"a mark and quotes": "\ufeffsubject_ref;contact\n\"NIU-1\";\"06 600 00 01\"\n\nNIU-2; a@b.cg\n",
	} {
		contacts, err := readContacts(strings.NewReader(text))
		if err != nil || len(contacts) != 2 || contacts[0].SubjectRef != "NIU-1" || contacts[0].Address.Text() != "+242066000001" || contacts[1].SubjectRef != "NIU-2" || contacts[1].Address.Text() != "a@b.cg" {
			t.Errorf("%s: %+v, %v", name, contacts, err)
		}
	}
	if both, err := readContacts(strings.NewReader("subject_ref,phone,email\nNIU-1,066000001,a@b.cg\n")); err != nil || len(both) != 2 {
		t.Errorf("%+v, %v", both, err)
	}
	for text, want := range map[string]string{
		"":                                 "the file has no contacts; `quittance links import --help`",
		"subject_ref,phone\n":              "the file has no contacts",
		"subject_ref,telephone\nNIU-1,1\n": "line 1: a column has another name; the columns are subject_ref, phone, email and contact",
		"subject_ref,phone,phone\n":        "line 1: column phone is there twice",
		"subject_ref\n":                    "line 1: a column with the contacts is missing",
		"NIU-1,06 600 00 01\nNIU-2,+33 6 12 34 56 78\nNIU-3,a@b\n,a@b.cg\nNIU-5\n": "faults: 4\n  line 2, contact: must be a mobile number of Congo, such as +242 06 600 00 01\n  line 3, contact: must be an e-mail address, such as name@example.org\n" +
			"  line 4, subject_ref: must be 1 to 200 bytes of UTF-8, without control characters, and without spaces at its ends\n  line 5, fields: must be 2 (subject_ref, contact), not 1",
		"subject_ref,phone,email\nNIU-1,,\n":      "line 2, phone or email: is required",
		"NIU-1,\"06 600 00 01\nNIU-2,a@b.cg\n":    "quotes: must be closed",
		"NIU-1,\xe9@b.cg\n":                       "line 1, contact: must be in UTF-8",
		strings.Repeat("NIU-1,12\n", 30):          "and 10 more",
		"subject_ref,email\nNIU-1,06 600 00 01\n": "line 2, email: must be an e-mail address",
	} {
		_, err := readContacts(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "33 6") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	var big strings.Builder
	for n := range 200_000 {
		_, _ = fmt.Fprintf(&big, "NIU-%d,06 %07d\n", n, n)
	}
	if contacts, err := readContacts(strings.NewReader(big.String())); err != nil || len(contacts) != 200_000 {
		t.Errorf("%d contacts of a big file, %v", len(contacts), err)
	}
}
