package lines

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/mozillazg/go-unidecode"
)

// invisible reports whether a character cannot be seen, or stands for one that could not be read: control and format
// characters, unassigned and private ones, separators of lines, and the replacement character.
func invisible(r rune) bool {
	return r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.In(r, unicode.Variation_Selector)
}

// escaped is how XLSX writes a control character in a text.
var escaped = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// unseen returns the first invisible character of a text, such as U+200E; empty if there is none.
func unseen(text string) string {
	for _, r := range text {
		if invisible(r) {
			return fmt.Sprintf("U+%04X", r)
		}
	}
	if found := escaped.FindString(text); found != "" {
		return "U+" + strings.ToUpper(found[2:6])
	}
	return ""
}

// printable returns the first character of a text that is not printable ASCII, such as U+00E9; empty if there is none.
func printable(text string) string {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("U+%04X", r)
		}
	}
	return ""
}

// latin returns a text in printable ASCII, with single spaces between words. Letters of the Latin, Greek and Cyrillic
// alphabets are transliterated. Of other scripts unidecode gives no readable names, as Arabic is written without most
// vowels: then bad is the first such character.
func latin(text string) (ascii, bad string) {
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
		if written == "" || printable(written) != "" {
			return "", string(r)
		}
		b.WriteString(written)
	}
	return strings.Join(strings.Fields(b.String()), " "), ""
}

// fold returns a header as headers are compared.
func fold(text string) string {
	ascii := strings.ToLower(unidecode.Unidecode(text))
	return strings.Join(strings.FieldsFunc(ascii, func(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) }), " ")
}
