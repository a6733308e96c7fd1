package lines

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"quittance/internal/latin"
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

// fold returns a header as headers are compared.
func fold(text string) string {
	ascii := strings.ToLower(latin.Alike(text))
	return strings.Join(strings.FieldsFunc(ascii, func(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) }), " ")
}
