package papers

import (
	"strings"

	"quittance/document"
)

// NoticePDF returns the PDF of a payment notice.
func NoticePDF(n document.Notice) ([]byte, error) {
	qr, err := newNoticeCode(n.QR)
	if err != nil {
		return nil, err
	}
	p := properties{lang: n.Lang, name: n.Name, title: n.Title, author: n.Agency.Name, at: n.Date}
	return p.pdf(func(s *sheet) { s.notice(n, qr) })
}

func (s *sheet) notice(n document.Notice, qr code) {
	s.onPage = func() { s.mark(n.Mark) }
	s.page()
	s.head(n.Agency, n.Title)
	s.reference(n, qr)
	s.dues(n)
	s.ways(n)
	warnings := n.Warnings
	if n.Test {
		s.note(warnings[0], red)
		warnings = warnings[1:]
	}
	s.note(strings.Join(warnings, " "), black)
	s.lacking()
	s.stub(n, qr)
}

// reference writes the facts, the payment reference in large digits and its code.
func (s *sheet) reference(n document.Notice, qr code) {
	const side, labels = 34.0, 42.0
	border := side / float64(len(qr.modules)) * quiet
	column := textWidth - side - 2*border - 6
	top := s.y
	s.code(qr, pageWidth-margin-border-side, top+border, side)
	s.rows(margin, column, labels, 3, n.Facts)
	s.y += 3
	s.y += s.text(margin, s.y, column, style{size: 9.5, colour: grey}, n.PaymentRefLabel)
	s.y += s.text(margin, s.y, column, style{size: 22, bold: true, colour: black}, n.PaymentRef) + 1
	s.y += s.text(margin, s.y, column, style{size: 8.5, colour: black}, n.QRText)
	s.y = max(s.y, top+side+2*border) + 3
}

// dues writes a line for each due, and the total.
func (s *sheet) dues(n document.Notice) {
	s.line()
	s.y += 2
	s.y += s.text(margin, s.y, textWidth, style{size: 11, bold: true, colour: accent}, n.Phrases.Lines) + 1
	const amount = 48.0
	for _, l := range n.Lines {
		label := style{size: 10, bold: true, colour: black, lines: 2}
		detail := style{size: 8.5, colour: grey, lines: 2}
		about := joined([][2]string{{"", l.NoticeRef}, {"", l.Service}, {n.Phrases.DueOn, l.DueOn}})
		sums := strings.Join(sums(n.Phrases, l), " · ")
		width := textWidth - amount
		s.room(float64(len(s.wrap(width, label, l.Label)))*label.leading() + float64(len(s.wrap(width, detail, about))+len(s.wrap(width, detail, sums)))*detail.leading() + 2)
		height := s.text(margin, s.y, width, label, l.Label)
		s.text(pageWidth-margin-amount, s.y, amount, style{size: 10, bold: true, colour: black, right: true}, l.ToPay)
		s.y += height
		s.y += s.text(margin, s.y, width, detail, about)
		s.y += s.text(margin, s.y, width, detail, sums) + 2
	}
	s.room(8)
	s.line()
	s.y += 1.5
	s.rows(margin, textWidth, 70, 3, []document.Row{n.Total})
	s.y += 3
}

// joined writes known values with their labels in a line.
func joined(values [][2]string) string {
	var out []string
	for _, v := range values {
		if v[1] != "" {
			out = append(out, strings.TrimSpace(v[0]+" "+v[1]))
		}
	}
	return strings.Join(out, " · ")
}

// ways writes how to pay by each channel, and what it costs.
func (s *sheet) ways(n document.Notice) {
	if len(n.Ways) == 0 {
		return
	}
	const fee, total = 32.0, 50.0 // the largest amount fits
	first := textWidth - fee - total
	columns := func(w document.Way, t style) float64 {
		right := t
		right.right = true
		height := s.text(margin, s.y, first, t, w.Name)
		s.text(margin+first, s.y, fee, right, w.Fee)
		s.text(margin+first+fee, s.y, total, right, w.Total)
		return height
	}
	s.room(14)
	s.y += s.text(margin, s.y, textWidth, style{size: 11, bold: true, colour: accent}, n.Phrases.How) + 1
	s.y += columns(n.WaysHead, style{size: 8.5, colour: grey, lines: 1}) + 0.5
	for _, w := range n.Ways {
		s.room(11)
		s.y += columns(w, style{size: 10, bold: true, colour: black, lines: 1})
		s.y += s.text(margin, s.y, textWidth, style{size: 8.5, colour: grey}, w.How) + 1.5
	}
	s.y += 1.5
}

// stub writes the part that a counter keeps, at the end of the last page.
func (s *sheet) stub(n document.Notice, qr code) {
	const height, side, labels = 40.0, 24.0, 46.0
	s.room(height)
	s.y = pageHeight - 12 - height
	s.stroke(grey)
	s.pdf.SetLineWidth(0.3)
	s.pdf.SetDashPattern([]float64{1.6, 1.4}, 0)
	s.pdf.Line(0, s.y, pageWidth, s.y)
	s.pdf.SetDashPattern(nil, 0)
	s.text(margin, s.y+0.6, textWidth, style{size: 7, colour: grey, right: true}, n.Cut)
	s.y += 6
	s.y += s.text(margin, s.y, textWidth-side, style{size: 11, bold: true, colour: accent, lines: 1}, n.StubText) + 1
	border := side / float64(len(qr.modules)) * quiet
	s.code(qr, pageWidth-margin-border-side, s.y+border-4, side)
	s.rows(margin, textWidth-side-2*border-4, labels, 1, n.Stub) // the part is whole or worth nothing
}
