package papers

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the colour profile
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"quittance/document"
	"quittance/money"
)

// srgb is the profile of the International Color Consortium, which may be embedded by
// anybody (assets/sRGB2014.txt). PDF/A needs to know what a colour looks like.
//
//go:embed assets/sRGB2014.icc
var srgb []byte

// Measures in millimetres.
const (
	pageWidth, pageHeight = 210.0, 297.0
	margin                = 18.0
	textWidth             = pageWidth - 2*margin
	bottom                = pageHeight - 16
)

const producer = "Quittance"

// colour is red, green and blue.
type colour [3]int

var (
	black  = colour{0, 0, 0}
	grey   = colour{85, 85, 85}
	rule   = colour{190, 190, 190}
	shade  = colour{242, 242, 238}
	pale   = colour{232, 232, 232}
	red    = colour{176, 0, 32}
	accent = colour{10, 92, 58}
)

// sheet is a PDF in the making. y is where the next thing goes.
type sheet struct {
	pdf      *fpdf.Fpdf
	lang     money.Language
	y        float64
	replaced bool // a character was printed as […]
	latin    bool // its fonts are those of Windows-1252
	foreign  bool // latin, and a text has another character
	// onPage draws what lies below everything else on a page.
	onPage func()
}

// properties are what the metadata of a paper says.
type properties struct {
	lang                money.Language
	name, title, author string
	at                  time.Time
}

// pdf returns the paper that draw draws. draw is called again, with the fonts of all characters, if a
// text needs them (DESIGN.md, "Fonts").
func (p properties) pdf(draw func(*sheet)) ([]byte, error) {
	s := newSheet(p)
	s.useLatin()
	draw(s)
	if s.foreign {
		s = newSheet(p)
		s.useWhole()
		draw(s)
	}
	return s.bytes()
}

// newSheet makes a sheet without fonts.
func newSheet(p properties) *sheet {
	f := fpdf.NewCustom(&fpdf.InitType{UnitStr: "mm", SizeStr: "A4"})
	f.SetCatalogSort(true)
	f.SetCreationDate(p.at.UTC())
	f.SetModificationDate(p.at.UTC())
	f.SetAutoPageBreak(false, 0)
	f.SetMargins(0, 0, 0)
	f.SetCellMargin(0)
	s := &sheet{pdf: f, lang: p.lang}
	f.SetLang(string(p.lang))
	title, author := s.printable(p.title+" "+p.name), s.printable(p.author)
	s.replaced = false
	f.SetTitle(title, true)
	f.SetAuthor(author, true)
	f.SetProducer(producer, true)
	f.SetXmpMetadata(metadata(p.lang, title, author, p.at))
	f.AddOutputIntent(fpdf.OutputIntentType{
		SubtypeIdent: fpdf.OutputIntent_GTS_PDFA1, OutputConditionIdentifier: "sRGB2014", Info: "sRGB2014", ICCProfile: srgb,
	})
	return s
}

// metadata is the XMP packet, which calls the file PDF/A-2b.
func metadata(lang money.Language, title, author string, at time.Time) []byte {
	date := at.UTC().Format(time.RFC3339)
	escaped := func(text string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(text))
		return b.String()
	}
	return fmt.Appendf(nil, `<?xpacket begin="`+"\ufeff"+`" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:pdf="http://ns.adobe.com/pdf/1.3/">
<pdfaid:part>2</pdfaid:part><pdfaid:conformance>B</pdfaid:conformance>
<dc:format>application/pdf</dc:format>
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">%s</rdf:li></rdf:Alt></dc:title>
<dc:creator><rdf:Seq><rdf:li>%s</rdf:li></rdf:Seq></dc:creator>
<dc:language><rdf:Bag><rdf:li>%s</rdf:li></rdf:Bag></dc:language>
<xmp:CreateDate>%s</xmp:CreateDate><xmp:ModifyDate>%s</xmp:ModifyDate>
<pdf:Producer>%s</pdf:Producer>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>`, escaped(title), escaped(author), lang, date, date, producer)
}

// bytes ends the document. It adds the identifier that PDF/A wants in the trailer, which
// fpdf does not write. Nothing in the file points behind the trailer.
func (s *sheet) bytes() ([]byte, error) {
	var out bytes.Buffer
	if err := s.pdf.Output(&out); err != nil {
		return nil, fmt.Errorf("writing a PDF: %w", err)
	}
	const trailer = "\ntrailer\n<<\n"
	at := bytes.LastIndex(out.Bytes(), []byte(trailer))
	if at < 0 {
		return nil, errors.New("writing a PDF: it has no trailer")
	}
	at += len(trailer)
	sum := sha256.Sum256(out.Bytes())
	id := fmt.Sprintf("/ID [<%X> <%X>]\n", sum[:16], sum[:16])
	return append(append(bytes.Clone(out.Bytes()[:at]), id...), out.Bytes()[at:]...), nil
}

func (s *sheet) page() {
	s.pdf.AddPage()
	s.y = margin - 2
	if s.onPage != nil {
		s.onPage()
	}
}

// room begins another page unless the height is left on this one.
func (s *sheet) room(height float64) {
	if s.y+height > bottom {
		s.page()
	}
}

// style is how a text looks.
type style struct {
	size   float64 // points
	bold   bool
	colour colour
	lines  int // at most; 0 for any number
	right  bool
	centre bool
}

// leading returns the height of a line in millimetres.
func (t style) leading() float64 { return t.size * 0.3528 * 1.32 }

// use makes a style that of the texts to come.
func (s *sheet) use(t style) {
	face := ""
	if t.bold {
		face = bolder
	}
	s.pdf.SetFont(family, face, t.size)
	s.pdf.SetTextColor(t.colour[0], t.colour[1], t.colour[2])
}

// text writes a text into a column whose top left corner is at x and y, and returns its
// height.
func (s *sheet) text(x, y, width float64, t style, text string) float64 {
	lines := s.wrap(width, t, text)
	for i, line := range lines {
		at := x
		switch free := width - s.width(line); {
		case t.right:
			at += free
		case t.centre:
			at += free / 2
		}
		// The base line lies below the middle of the line.
		s.pdf.Text(at, y+float64(i)*t.leading()+t.leading()*0.76, s.encoded(line))
	}
	return float64(len(lines)) * t.leading()
}

// wrap divides a text into lines of a width. Lines end at spaces, never at no-break spaces;
// a word that is too long is divided. A text with too many lines ends with an ellipsis.
func (s *sheet) wrap(width float64, t style, text string) []string {
	s.use(t)
	text = s.printable(text)
	if text == "" {
		return nil
	}
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if longer := strings.TrimPrefix(line+" "+word, " "); s.width(longer) <= width {
			line = longer
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for s.width(word) > width {
			head := s.fitting(word, width)
			lines, word = append(lines, head), word[len(head):]
		}
		line = word
	}
	lines = append(lines, line)
	if t.lines > 0 && len(lines) > t.lines {
		lines = lines[:t.lines]
		last := lines[t.lines-1]
		if s.width(last+"…") > width {
			last = s.fitting(last, width-s.width("…"))
		}
		lines[t.lines-1] = strings.TrimRight(last, " ") + "…"
	}
	return lines
}

// fitting returns the beginning of a word that fits a width, at least one character.
func (s *sheet) fitting(word string, width float64) string {
	var total float64
	for i, r := range word {
		total += s.width(string(r))
		if total > width && i > 0 {
			return word[:i]
		}
	}
	return word
}

func (s *sheet) fill(c colour)   { s.pdf.SetFillColor(c[0], c[1], c[2]) }
func (s *sheet) stroke(c colour) { s.pdf.SetDrawColor(c[0], c[1], c[2]) }

// line draws a horizontal line over the width of the text.
func (s *sheet) line() {
	s.stroke(rule)
	s.pdf.SetLineWidth(0.25)
	s.pdf.Line(margin, s.y, pageWidth-margin, s.y)
}

// head writes the agency with its logo, and the title of the paper.
func (s *sheet) head(a document.Agency, title string) {
	x := margin
	const height = 15.0
	if len(a.Logo) > 0 {
		info := s.pdf.RegisterImageOptionsReader("logo", fpdf.ImageOptions{ImageType: "PNG"}, bytes.NewReader(a.Logo))
		if info != nil && info.Height() > 0 {
			w, h := info.Width()*height/info.Height(), height
			if w > 2*height {
				w, h = 2*height, info.Height()*2*height/info.Width()
			}
			s.pdf.ImageOptions("logo", x, s.y+(height-h)/2, w, h, false, fpdf.ImageOptions{ImageType: "PNG"}, 0, "")
			x += w + 5
		}
	}
	width := pageWidth - margin - x
	top := s.y
	s.y += s.text(x, s.y, width, style{size: 13, bold: true, colour: black, lines: 2}, a.Name)
	small := style{size: 8.5, colour: grey, lines: 2}
	s.y += s.text(x, s.y, width, small, a.Address)
	s.y += s.text(x, s.y, width, small, strings.Join(a.Contact(), " · "))
	s.y = max(s.y, top+height) + 4
	s.line()
	s.y += 5
	s.y += s.text(margin, s.y, textWidth, style{size: 20, bold: true, colour: accent, lines: 2}, title) + 2
}

// note writes what the reader must know, with a bar at its left.
func (s *sheet) note(text string, c colour) {
	t := style{size: 9.5, bold: true, colour: c}
	height := float64(len(s.wrap(textWidth-6, t, text)))*t.leading() + 3
	s.room(height + 2)
	s.fill(shade)
	s.pdf.Rect(margin, s.y, textWidth, height, "F")
	s.fill(c)
	s.pdf.Rect(margin, s.y, 1.2, height, "F")
	s.text(margin+4, s.y+1.5, textWidth-6, t, text)
	s.y += height + 2
}

// rows writes labels and values, each on at most a number of lines.
func (s *sheet) rows(x, width, labels float64, most int, rows []document.Row) {
	for _, r := range rows {
		value := style{size: 10, colour: black, lines: most, bold: r.Sum || r.Reference, right: r.Money}
		label := style{size: 9.5, colour: grey, lines: most, bold: r.Sum}
		if r.Sum {
			label.colour = black
		}
		lines := max(len(s.wrap(width-labels, value, r.Value)), len(s.wrap(labels-3, label, r.Label)))
		s.room(float64(lines) * value.leading())
		height := s.text(x, s.y, labels-3, label, r.Label)
		height = max(height, s.text(x+labels, s.y, width-labels, value, r.Value))
		s.y += height + 0.6
	}
}

// mark writes a word across the page, below everything else.
func (s *sheet) mark(word string) {
	if word == "" {
		return
	}
	t := style{size: 150, bold: true, colour: pale}
	s.use(t)
	s.pdf.TransformBegin()
	s.pdf.TransformRotate(40, pageWidth/2, pageHeight/2)
	s.text(0, pageHeight/2-t.leading()/2, pageWidth, style{size: t.size, bold: true, colour: pale, centre: true}, word)
	s.pdf.TransformEnd()
}

// lacking writes the line that explains […] if the paper has one.
func (s *sheet) lacking() {
	if s.replaced {
		s.room(5)
		s.y += s.text(margin, s.y, textWidth, style{size: 7.5, colour: grey}, texts.In(s.lang).Lacking)
	}
}
