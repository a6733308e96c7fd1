package connector

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"quittance/internal/latin"
)

// NameVerdict says how the name of a line compares with the name that an operator has of the payee's number.
type NameVerdict string

// The verdicts.
const (
	// NameMatch: the same words, whatever their order, case and accents.
	NameMatch NameVerdict = "match"
	// NameClose: a word is missing, an initial, or differs by one letter. People look at it.
	NameClose NameVerdict = "close"
	// NameDifferent: another name.
	NameDifferent NameVerdict = "different"
	// NameUnknown: the operator has no such number, or no name of it.
	NameUnknown NameVerdict = "unknown"
)

// NameVerdicts lists all verdicts, those that people look at first.
var NameVerdicts = []NameVerdict{NameDifferent, NameUnknown, NameClose, NameMatch}

// PayeeChecker is a PayoutConnector whose operator tells the name of a number. Safe for concurrent use.
type PayeeChecker interface {
	// CheckPayee compares a name with that of the payee's number, as PayoutConnector.Payee returned it. It makes one call, at
	// most Config.EnquiriesPerSecond of an account with all enquiries. The operator's name is in neither the verdict nor an
	// error. Errors are *Error and say nothing about the name.
	CheckPayee(ctx context.Context, account Account, payee, name string) (NameVerdict, error)
}

// CompareNames compares the name of a line with the name that an operator has. Accents, case, punctuation and the order of words
// do not count.
func CompareNames(given, held string) NameVerdict {
	a, b := nameWords(given), nameWords(held)
	if len(b) == 0 {
		return NameUnknown
	}
	joined := strings.Join(a, "") == strings.Join(b, "") // "DE LA CRUZ" and "DELACRUZ"
	slices.Sort(a)
	slices.Sort(b)
	if joined || slices.Equal(a, b) {
		return NameMatch
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	// Each word of the shorter name has its own in the longer one, and one of them is the same word: two initials are no name.
	whole := false
	for _, alike := range []func(x, y string) bool{func(x, y string) bool { return x == y }, oneLetterApart, initial} {
		a = slices.DeleteFunc(a, func(x string) bool {
			i := slices.IndexFunc(b, func(y string) bool { return alike(x, y) })
			if i < 0 {
				return false
			}
			whole = whole || x == b[i] && len(x) > 1
			b = slices.Delete(b, i, i+1)
			return true
		})
	}
	if len(a) == 0 && whole {
		return NameClose
	}
	return NameDifferent
}

// nameWords returns the words of a name in capital letters without accents. An apostrophe is part of its word: N'Goma is NGOMA.
func nameWords(name string) []string {
	name = strings.NewReplacer("'", "", "’", "", "`", "").Replace(strings.ToUpper(latin.Alike(name)))
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// initial reports whether one word is the first letter of the other.
func initial(x, y string) bool {
	return x != "" && y != "" && (len(x) == 1 || len(y) == 1) && x[0] == y[0]
}

// oneLetterApart reports whether two words of five letters or more differ by one letter that is another, missing, or exchanged with
// its neighbour. Shorter names that differ by one letter are other names: Jean and Sean.
func oneLetterApart(x, y string) bool {
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 5 || len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return x[i:] == y[i+1:]
	}
	if i == len(x) || x[i+1:] == y[i+1:] {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && x[i+2:] == y[i+2:]
}
