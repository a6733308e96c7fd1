package papers

import "quittance/document"

// ReceiptPDF returns the PDF of a receipt. address is what its QR code holds, see
// receipts.Address.
func ReceiptPDF(r document.Receipt, address string) ([]byte, error) {
	qr, err := newReceiptCode(address)
	if err != nil {
		return nil, err
	}
	p := properties{lang: r.Lang, name: r.Name, title: r.Title, author: r.Agency.Name, at: r.Date}
	return p.pdf(func(s *sheet) { s.receipt(r, qr) })
}

func (s *sheet) receipt(r document.Receipt, qr code) {
	s.onPage = func() { s.mark(r.Mark) }
	s.page()
	s.head(r.Agency, r.Title)
	for i, note := range r.Notes {
		c := black
		if i == 0 && (r.Stamp != "" || r.Test) {
			c = red
		}
		s.note(note, c)
	}
	s.y += 2
	switch {
	case r.Stamp != "":
		s.stamp(r.Stamp, red)
	case r.Paid != "":
		s.stamp(r.Paid, accent)
	}
	s.y += s.text(margin, s.y, textWidth, style{size: 24, bold: true, colour: black, lines: 1}, r.Total)
	s.y += s.text(margin, s.y, textWidth, style{size: 10, colour: black}, r.InWords) + 3
	const labels = 48
	for _, rows := range [][]document.Row{r.Facts, r.Money, r.Proof} {
		if len(rows) == 0 {
			continue
		}
		s.line()
		s.y += 2.5
		s.rows(margin, textWidth, labels, 3, rows)
		s.y += 2
	}
	s.check(checking{r.CheckTitle, r.Check, r.Mention, r.Accountant}, qr)
	s.foot(r)
}

// stampWidth and stampHeight are those of the frame of a stamp in millimetres.
const stampWidth, stampHeight = 54.0, 12.0

// stamp writes a word in a frame of its colour at the right of the total, at an angle.
func (s *sheet) stamp(word string, c colour) {
	t := style{size: 22, bold: true, colour: c, centre: true}
	const width, height = stampWidth, stampHeight
	x, y := pageWidth-margin-width, s.y+2
	s.pdf.TransformBegin()
	s.pdf.TransformRotate(5, x+width/2, y+height/2)
	s.stroke(c)
	s.pdf.SetLineWidth(0.9)
	s.pdf.Rect(x, y, width, height, "D")
	s.text(x, y+(height-t.leading())/2, width, t, word)
	s.pdf.TransformEnd()
}

// checking is what stands beside the code of a paper. The mention, and the accountant who gives a receipt, may be empty.
type checking struct {
	title, text, mention string
	accountant           document.Row
}

// check writes the QR code, what it is for, and who gives the receipt.
func (s *sheet) check(c checking, qr code) {
	side := qr.side()
	border := side / float64(len(qr.modules)) * quiet
	s.line()
	s.y += 3
	s.room(side + 2*border + 8)
	s.code(qr, margin+border, s.y+border, side)
	x := margin + side + 2*border + 6
	width := pageWidth - margin - x
	y := s.y + border
	y += s.text(x, y, width, style{size: 11, bold: true, colour: accent}, c.title) + 1
	y += s.text(x, y, width, style{size: 9.5, colour: black}, c.text) + 4
	if c.mention != "" {
		y += s.text(x, y, width, style{size: 9, colour: black, lines: 5}, c.mention) + 3
	}
	if c.accountant.Value != "" {
		y += s.text(x, y, width, style{size: 9, colour: grey}, c.accountant.Label)
		y += s.text(x, y, width, style{size: 10, bold: true, colour: black, lines: 2}, c.accountant.Value)
	}
	s.y = max(s.y+side+2*border, y) + 2
}

func (s *sheet) foot(r document.Receipt) {
	s.lacking()
	s.text(margin, bottom, textWidth, style{size: 7.5, colour: grey, lines: 1}, r.Footer)
}
