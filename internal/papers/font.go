package papers

import (
	"bytes"
	"compress/zlib"
	_ "embed" // fonts
	"encoding/json"
	"sync"

	"codeberg.org/go-pdf/fpdf" // the maintained fork of gofpdf; writes PDF without C
	"golang.org/x/text/encoding/charmap"
)

// regular and bold have Latin with all diacritics. fpdf parses them for each file, and makes and
// compresses fonts of the characters that the file uses.
//
//go:embed assets/NotoSans-Regular.ttf
var regular []byte

//go:embed assets/NotoSans-Bold.ttf
var bold []byte

// latin and boldLatin have the characters of Windows-1252. Nearly every paper needs no others. They
// are embedded as they are, compressed once.
//
//go:embed assets/NotoSans-Latin.ttf
var latin []byte

//go:embed assets/NotoSans-BoldLatin.ttf
var boldLatin []byte

// family is the name of the fonts in a sheet, bolder the style of its bold face.
const (
	family = "sans"
	bolder = "B"
)

var (
	latinFont     = sync.OnceValues(func() (definition, file []byte) { return codePage("NotoSans", latin) })
	boldLatinFont = sync.OnceValues(func() (definition, file []byte) { return codePage("NotoSans-Bold", boldLatin) })
)

// codePage returns a font of Windows-1252 as fpdf takes a font of a code page: its definition (the
// format of fpdf's makefont) and its compressed file.
func codePage(name string, font []byte) (definition, file []byte) {
	probe := fpdf.New("P", "mm", "A4", "")
	probe.AddUTF8FontFromBytes(family, "", bytes.Clone(font))
	probe.SetFont(family, "", 1)
	desc := probe.GetFontDesc(family, "")
	desc.Flags = fpdf.FontFlagNonsymbolic
	widths := make([]int, 256)
	for b := ' '; b < 256; b++ {
		widths[b] = probe.GetStringSymbolWidth(string(charmap.Windows1252.DecodeByte(byte(b))))
	}
	definition, err := json.Marshal(map[string]any{
		"Tp": "TrueType", "Name": "QUITTA+" + name, "Desc": desc, "Cw": widths, "Enc": "cp1252", "File": name + ".z", "OriginalSize": len(font),
	})
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestCompression) // the level exists
	if _, failed := w.Write(font); failed != nil || w.Close() != nil || err != nil || probe.Err() {
		panic("papers: the embedded font is broken")
	}
	return definition, b.Bytes()
}

// useLatin gives a sheet the fonts of Windows-1252.
func (s *sheet) useLatin() {
	s.latin = true
	definition, file := latinFont()
	s.pdf.AddFontFromBytes(family, "", definition, file)
	definition, file = boldLatinFont()
	s.pdf.AddFontFromBytes(family, bolder, definition, file)
}

// useWhole gives a sheet the fonts of all characters.
func (s *sheet) useWhole() {
	s.pdf.AddUTF8FontFromBytes(family, "", bytes.Clone(regular))
	s.pdf.AddUTF8FontFromBytes(family, bolder, bytes.Clone(bold))
}

// encoded returns a printable text as the fonts of the sheet take it. A character that is not in
// Windows-1252 sets s.foreign: the sheet is then discarded and drawn again.
func (s *sheet) encoded(text string) string {
	if !s.latin {
		return text
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if r == '\u202f' { // the narrow no-break space of an amount
			r = '\u00a0'
		}
		b, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			s.foreign = true
			b = '?'
		}
		out = append(out, b)
	}
	return string(out)
}

// width returns the width of a printable text in millimetres, in the style in use.
func (s *sheet) width(text string) float64 { return s.pdf.GetStringWidth(s.encoded(text)) }
