// Package latin writes names of people in the letters that files of banks and signed lines may have. go-unidecode has
// its tables.
package latin

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mozillazg/go-unidecode"
)

// Unprintable returns the first character of a text that is not printable ASCII, such as U+00E9; empty if there is none.
func Unprintable(text string) string {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("U+%04X", r)
		}
	}
	return ""
}

// Text returns a text in printable ASCII, with single spaces between words. Letters of the Latin, Greek and Cyrillic
// alphabets are transliterated. Of other scripts unidecode gives no readable names, as Arabic is written without most
// vowels: then bad is the first such character, and ascii is empty.
func Text(text string) (ascii, bad string) {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII:
			b.WriteRune(r)
			continue
		case unicode.Is(unicode.Mn, r):
			continue // the accent of the letter before
		case (unicode.IsLetter(r) || unicode.IsNumber(r)) && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Common):
			return "", string(r)
		}
		written := unidecode.Unidecode(string(r))
		if written == "" || Unprintable(written) != "" {
			return "", string(r)
		}
		b.WriteString(written)
	}
	return strings.Join(strings.Fields(b.String()), " "), ""
}

// Alike returns a text in ASCII of any script, for comparisons alone: nobody reads it, and it is not sent.
func Alike(text string) string { return unidecode.Unidecode(text) }
