package papers

import (
	"fmt"

	"quittance/document"
)

// CertificatePDF returns the PDF of the certificate of a batch. address is what its QR code holds; empty for a paper without one.
func CertificatePDF(c document.Certificate, address string) ([]byte, error) {
	qr, err := newPaperCode(address)
	if err != nil {
		return nil, err
	}
	p := properties{lang: c.Lang, name: c.Name, title: c.Title, author: c.Agency.Name, at: c.Date}
	return p.pdf(func(s *sheet) { s.certificate(c, qr) })
}

func (s *sheet) certificate(c document.Certificate, qr *code) {
	s.pages(c.Mark, c.Footer)
	s.page()
	s.head(c.Agency, c.Title)
	for i, note := range c.Notes {
		colour := black
		if i == 0 {
			colour = red
		}
		s.note(note, colour)
	}
	s.y += 2
	s.y += s.text(margin, s.y, textWidth, style{size: 24, bold: true, colour: black, lines: 1}, c.Total)
	s.y += s.text(margin, s.y, textWidth, style{size: 10, colour: black}, c.InWords) + 3
	for _, x := range c.Sections {
		s.section(x)
	}
	s.checked(c.CheckTitle, c.Check, qr)
	s.lacking()
}

// section writes a heading with its rows. The heading stays with the first of them.
func (s *sheet) section(x document.Section) {
	const labels = 58.0
	s.room(16)
	s.line()
	s.y += 2
	s.y += s.text(margin, s.y, textWidth, style{size: 11, bold: true, colour: accent, lines: 2}, x.Title) + 1
	s.rows(margin, textWidth, labels, 4, x.Rows)
	s.y += 2
}

// checked writes the code of a paper and how to verify it; nothing for a paper without a code.
func (s *sheet) checked(title, text string, qr *code) {
	if qr == nil {
		return
	}
	s.check(checking{title: title, text: text}, *qr)
}

// pages has each page begin with a mark below everything else and end with a footer and its number.
func (s *sheet) pages(mark, footer string) {
	n := 0
	s.onPage = func() {
		n++
		s.mark(mark)
		s.text(margin, bottom+2, textWidth-20, style{size: 7.5, colour: grey, lines: 1}, footer)
		s.text(margin, bottom+2, textWidth, style{size: 7.5, colour: grey, right: true}, fmt.Sprint(n))
	}
}

// newPaperCode returns the code of an address; nil for none.
func newPaperCode(address string) (*code, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // a paper without a code
	}
	c, err := newReceiptCode(address)
	return &c, err
}
