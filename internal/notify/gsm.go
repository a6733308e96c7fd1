package notify

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The characters of GSM-7 (3GPP TS 23.038). One of gsmExtended takes the room of two.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€"
)

// Lengths of an SMS in septets: of one alone, and of each part of several.
const (
	septetsAlone = 160
	septetsPart  = 153
)

// Septets returns the length of a text in GSM-7. ok is false if it has another character.
func Septets(text string) (n int, ok bool) {
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsmBasic, r):
			n++
		case strings.ContainsRune(gsmExtended, r):
			n += 2
		default:
			return 0, false
		}
	}
	return n, true
}

// Segments returns the number of SMS that a text of GSM-7 takes.
func Segments(septets int) int {
	if septets <= septetsAlone {
		return 1
	}
	return (septets + septetsPart - 1) / septetsPart
}

// spelling has the characters that lose more than an accent in GSM-7.
var spelling = strings.NewReplacer(
	"’", "'", "‘", "'", "“", `"`, "”", `"`, "«\u00a0", `"`, "\u00a0»", `"`, "« ", `"`, " »", `"`, "«", `"`, "»", `"`,
	"œ", "oe", "Œ", "OE", "–", "-", "—", "-", "‑", "-", "…", "...", "•", "-", "\u00a0", " ", "\u202f", " ", "\u2009", " ", "\t", " ",
)

// Fold returns a text in GSM-7: accents that it lacks are dropped, so that ê becomes e, and
// typographic signs become plain ones. Other characters become a question mark. Control
// characters and marks of direction are left out.
func Fold(text string) string {
	text = spelling.Replace(norm.NFC.String(text))
	var b strings.Builder
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsmBasic+gsmExtended, r):
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r), unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		default:
			base := []rune(norm.NFD.String(string(r)))[0]
			if !strings.ContainsRune(gsmBasic, base) {
				base = '?'
			}
			b.WriteRune(base)
		}
	}
	return b.String()
}
