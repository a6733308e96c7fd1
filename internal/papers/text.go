package papers

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"

	"quittance/money"
	"quittance/money/language"
)

type words struct{ Lacking string }

var texts = language.Table[words]{
	money.French:  {Lacking: "[…] remplace des caractères que ce document ne peut pas imprimer."},
	money.English: {Lacking: "[…] stands for characters that this document cannot print."},
}

// lack is printed for characters that the fonts do not have.
const lack = "[…]"

// maxMarks is the number of combining marks that a letter keeps.
const maxMarks = 2

var face = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(regular)
	if err != nil {
		panic(err) // embedded
	}
	return f
})

// printable returns a text that the fonts can print, in one line: composed letters, one
// space where white space was, nothing that changes the direction of writing, and […] for
// each run of characters that the fonts lack.
func (s *sheet) printable(text string) string {
	var (
		b       strings.Builder
		buffer  sfnt.Buffer
		missing bool // the previous character was replaced
		space   bool // white space waits for the next character
		marks   int
	)
	for _, r := range norm.NFC.String(strings.ToValidUTF8(text, "\ufffd")) {
		switch {
		case r == '\u00a0' || r == '\u202f': // an amount stays in one line
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector):
			continue
		}
		if unicode.Is(unicode.M, r) {
			if marks++; marks > maxMarks || missing && !space {
				continue
			}
		} else {
			marks = 0
		}
		glyph, err := face().GlyphIndex(&buffer, r)
		lacks := err != nil || glyph == 0
		if lacks && missing {
			space = false // two foreign words are one gap
			s.replaced = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if missing = lacks; lacks {
			s.replaced = true
			b.WriteString(lack)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
