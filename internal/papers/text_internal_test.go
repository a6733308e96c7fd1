package papers

import (
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
	regular.useRegular()
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

// The font of Windows-1252 has all its characters, as wide as the other font has them.
func TestLatinFont(t *testing.T) {
	t.Parallel()
	font, err := sfnt.Parse(latin)
	if err != nil {
		t.Fatal(err)
	}
	regular, small := newSheet(properties{at: time.Unix(0, 0)}), newSheet(properties{at: time.Unix(0, 0)})
	regular.useRegular()
	small.useLatin()
	var buffer sfnt.Buffer
	for b := ' '; b < 256; b++ {
		r := charmap.Windows1252.DecodeByte(byte(b))
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			continue // no character has this byte
		}
		glyph, err := font.GlyphIndex(&buffer, r)
		if err != nil || glyph == 0 {
			t.Errorf("the font lacks %U", r)
		}
		for _, s := range []*sheet{regular, small} {
			s.use(style{size: 10})
		}
		if a, b := regular.width(string(r)), small.width(string(r)); math.Abs(a-b) > 0.001 || small.foreign {
			t.Errorf("%U is %.3f mm wide, want %.3f", r, b, a)
		}
	}
	if small.width("ŋ"); !small.foreign {
		t.Error("a character of no byte is not noticed")
	}
}

// The codes have the sizes that the design promises: version 3 on a notice, and half a
// millimetre a module on a receipt, however long the address is.
func TestCodes(t *testing.T) {
	t.Parallel()
	for address, version := range map[string]int{
		"HTTPS://PAIEMENT.EXAMPLE.CG/P/4821903344556672":                               3,
		"HTTPS://PAIEMENT.FINANCES.GOUV.CG/P/4821903344556672":                         3,
		"HTTP://127.0.0.1:8080/P/4821903344556672":                                     3,
		"HTTPS://PAIEMENT.DIRECTION-GENERALE-DES-IMPOTS.EXAMPLE.CG/P/4821903344556672": 5,
	} {
		if c, err := newNoticeCode(address); err != nil || c.version() > version {
			t.Errorf("%s: version %d, %v, want %d", address, c.version(), err, version)
		}
	}
	for length, version := range map[int]int{504: 17, 505: 18, 560: 18, 561: 19, 711: 21} {
		c, err := newReceiptCode("https://paiement.example.cg/q#" + strings.Repeat("a", length-30))
		if err != nil || c.version() != version || c.side() < minCode || c.side()/float64(len(c.modules)) < minModule {
			t.Errorf("%d characters: version %d, %.1f mm, %v", length, c.version(), c.side(), err)
		}
	}
	if _, err := newReceiptCode(strings.Repeat("a", 4000)); err == nil {
		t.Error("4000 characters fit a code")
	}
}
