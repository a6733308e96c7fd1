package document

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"quittance/money"
)

// Agency is what a paper shows of the agency that is paid. Only Name is required.
type Agency struct {
	Name    string
	Address string // one line
	Phone   string
	Email   string
	Hours   string
	Logo    []byte // a PNG of internal/registry; nil for none
}

// Contact returns how the agency is reached, in the order in which papers show it.
func (a Agency) Contact() []string {
	var out []string
	for _, text := range []string{a.Phone, a.Email, a.Hours} {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// Row is a line of a paper: a label and its value.
type Row struct {
	Label, Value string
	// Money is true for an amount, which stands on the right; Sum for the last one.
	Money, Sum bool
	// Reference is true for a value that people copy character by character.
	Reference bool
}

// Errors of this package, for errors.Is.
var (
	// ErrUnpaid: a receipt of a due that is not paid, or that does not exist.
	ErrUnpaid = errors.New("a receipt needs a paid due")
	// ErrEnded: a notice of what can be paid no more.
	ErrEnded = errors.New("a notice needs an open session")
	// ErrFramed: a notice of what is paid in an integrator's frame and nowhere else.
	ErrFramed = errors.New("a notice needs a hosted session")
	// ErrIncomplete: the agency has no name, the currency is unknown, or a notice has no due.
	ErrIncomplete = errors.New("a paper needs the name of the agency, a listed currency and a due")
)

// subjectShown is the number of characters that are shown of who owes a due, if the
// reference has at least twice as many.
const subjectShown = 4

// SubjectEnd returns the end of the reference of who owes a due: enough to recognise one's
// own, too little to use another's. It is empty for a reference of fewer than eight
// characters.
func SubjectEnd(ref string) string {
	runes := []rune(ref)
	if len(runes) < 2*subjectShown {
		return ""
	}
	return string(runes[len(runes)-subjectShown:])
}

// amounts formats the amounts of a paper.
type amounts struct {
	currency money.Currency
	lang     money.Language
}

func (a amounts) of(minor int64) string { return a.currency.Format(a.lang, minor) }

func newAmounts(lang money.Language, code string, agency Agency) (amounts, error) {
	currency, listed := money.Lookup(code)
	if !listed || agency.Name == "" {
		return amounts{}, ErrIncomplete
	}
	return amounts{currency, lang}, nil
}

// maskedWords is how many words of a name a mask keeps.
const maskedWords = 4

// MaskName returns the initials of a name, such as É••• M•••, so that its owner recognises it
// and others learn little. It is empty for a name without letters.
func MaskName(name string) string {
	var out []string
	for word := range strings.FieldsSeq(name) {
		if i := strings.IndexFunc(word, unicode.IsLetter); i >= 0 && len(out) < maskedWords {
			initial, _ := utf8.DecodeRuneInString(word[i:])
			out = append(out, string(initial)+"•••")
		}
	}
	return strings.Join(out, " ")
}
