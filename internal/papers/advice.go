package papers

import "quittance/document"

// AdvicePDF returns the PDF of the payment advice of a line. address is what its QR code holds; empty for a paper without one.
func AdvicePDF(a document.Advice, address string) ([]byte, error) {
	qr, err := newPaperCode(address)
	if err != nil {
		return nil, err
	}
	p := properties{lang: a.Lang, name: a.Name, title: a.Title, author: a.Agency.Name, at: a.Date}
	return p.pdf(func(s *sheet) { s.advice(a, qr) })
}

func (s *sheet) advice(a document.Advice, qr *code) {
	s.pages(a.Mark, a.Footer)
	s.page()
	s.head(a.Agency, a.Title)
	for i, note := range a.Notes {
		colour := black
		if i == 0 {
			colour = red
		}
		s.note(note, colour)
	}
	s.y += 2
	switch {
	case a.Stamp != "":
		s.stamp(a.Stamp, red)
	case a.Paid != "":
		s.stamp(a.Paid, accent)
	}
	s.y += s.text(margin, s.y, textWidth, style{size: 24, bold: true, colour: black, lines: 1}, a.Total)
	s.y += s.text(margin, s.y, textWidth-stampWidth-6, style{size: 10, colour: black}, a.InWords) + 5
	const labels = 48
	for _, rows := range [][]document.Row{a.Facts, a.Proof} {
		s.line()
		s.y += 2.5
		s.rows(margin, textWidth, labels, 4, rows)
		s.y += 2
	}
	s.checked(a.CheckTitle, a.Check, qr)
	s.lacking()
}
