package papers

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/encoding/charmap"
	"pgregory.net/rapid"

	"quittance/money/language/languagetest"
)

func TestBothLanguagesSayEverything(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
}

// What is printed of a text.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Élise  Mbemba\n":                  "Élise Mbemba",
		"E\u0301lise":                      "Élise", // composed
		"Ndɛ\u0301mbɛ\u0301":               "Ndɛ\u0301mbɛ\u0301",
		"Nguyễn Thị Hằng":                  "Nguyễn Thị Hằng",
		"محمد عبد الله":                    "[…]",
		"Paul محمد Ngouabi":                "Paul […] Ngouabi",
		"Léa 🎉👨\u200d👩\u200d👧 ❤\ufe0f B":   "Léa […] B",
		"\u202eabc\u202c\u2066d\u200f":     "abcd",
		"a\x00b\x1bc\u200b\ufeffd":         "abcd",
		"5\u202f000\u00a0FCFA":             "5\u202f000\u00a0FCFA",
		"a" + strings.Repeat("\u0335", 50): "a\u0335\u0335",
		"\xff\xfe":                         "\ufffd",
		" \t":                              "",
		"日本 Tokyo":                         "[…] Tokyo",
	} {
		s := &sheet{}
		if got := s.printable(text); got != want || s.replaced != strings.Contains(want, lack) {
			t.Errorf("%q is printed as %q (%v), want %q", text, got, s.replaced, want)
		}
	}
}

// Whatever a text has, its lines fit, every character is in the fonts, and nothing turns
// the direction of writing.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	regular, latin := newSheet(properties{at: time.Unix(0, 0)}), newSheet(properties{at: time.Unix(0, 0)})
	regular.useWhole()
	latin.useLatin()
	regular.page()
	latin.page()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-zéèç ]{0,300}`), rapid.StringOfN(rapid.RuneFrom(nil, unicode.Latin, unicode.Arabic, unicode.Mn, unicode.Cf, unicode.Zs), 0, 200, -1)).Draw(t, "text")
		style := style{size: rapid.Float64Range(7, 26).Draw(t, "size"), bold: rapid.Bool().Draw(t, "bold"), lines: rapid.IntRange(0, 3).Draw(t, "lines")}
		width := rapid.Float64Range(20, textWidth).Draw(t, "width")
		s := rapid.SampledFrom([]*sheet{regular, latin}).Draw(t, "sheet")
		lines := s.wrap(width, style, text)
		if style.lines > 0 && len(lines) > style.lines {
			t.Fatalf("%d lines, want %d", len(lines), style.lines)
		}
		var buffer sfnt.Buffer
		for _, line := range lines {
			if got := s.width(line); got > width+0.01 {
				t.Fatalf("%q is %.2f mm wide, want %.2f", line, got, width)
			}
			for _, r := range line {
				if glyph, err := face().GlyphIndex(&buffer, r); err != nil || glyph == 0 || unicode.In(r, unicode.Cc, unicode.Cf) {
					t.Fatalf("%q has %U", line, r)
				}
			}
		}
	})
}

// The fonts of Windows-1252 have all its characters, as wide as the other fonts have them, and the bold face has
// every character of the regular one: a text is looked up in that one alone.
func TestFonts(t *testing.T) {
	t.Parallel()
	whole, small := newSheet(properties{at: time.Unix(0, 0)}), newSheet(properties{at: time.Unix(0, 0)})
	whole.useWhole()
	small.useLatin()
	glyphs := func(file []byte) func(r rune) bool {
		font, err := sfnt.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		var buffer sfnt.Buffer
		return func(r rune) bool {
			glyph, err := font.GlyphIndex(&buffer, r)
			return err == nil && glyph != 0
		}
	}
	for _, c := range []struct {
		style style
		small func(r rune) bool
	}{{style{size: 10}, glyphs(latin)}, {style{size: 10, bold: true}, glyphs(boldLatin)}} {
		for b := ' '; b < 256; b++ {
			r := charmap.Windows1252.DecodeByte(byte(b))
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				continue // no character has this byte
			}
			if !c.small(r) {
				t.Errorf("the font lacks %U", r)
			}
			for _, s := range []*sheet{whole, small} {
				s.use(c.style)
			}
			if a, b := whole.width(string(r)), small.width(string(r)); math.Abs(a-b) > 0.001 || small.foreign {
				t.Errorf("%U is %.3f mm wide, want %.3f", r, b, a)
			}
		}
	}
	if small.width("ŋ"); !small.foreign {
		t.Error("a character of no byte is not noticed")
	}
	thin, fat := glyphs(regular), glyphs(bold)
	for r := ' '; r < 0xffff; r++ {
		if thin(r) && !fat(r) {
			t.Errorf("the bold face lacks %U", r)
		}
	}
}

// Bold text was the regular face with a stroke, which is blurred on paper and no bold to a program that reads it.
func TestBoldFace(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"Windows-1252": "Reçu de paiement", "all characters": "Reçu ŋ"} {
		out, err := properties{at: time.Unix(0, 0)}.pdf(func(s *sheet) {
			s.pdf.SetCompression(false)
			s.page()
			s.text(margin, 20, textWidth, style{size: 20, bold: true}, text)
			s.text(margin, 40, textWidth, style{size: 10}, text)
		})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(out, []byte("NotoSans-Bold")) && !bytes.Contains(out, []byte("sansB")) {
			t.Errorf("%s: the file has no bold face", name)
		}
		if bytes.Contains(out, []byte(" Tr\n")) || bytes.Contains(out, []byte(" Tr ")) {
			t.Errorf("%s: a text is stroked", name)
		}
	}
}
