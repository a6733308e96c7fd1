package pages

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/document"
	"quittance/internal/papers"
	"quittance/money"
)

// Names of papers in addresses.
const (
	paperNotice    = "notice"
	paperNoticePDF = "notice.pdf"

	paperReceipt    = "receipt"
	paperReceiptPDF = "receipt.pdf"
	// queryDue is the transaction of the due whose receipt is asked for; the first one's
	// without it.
	queryDue = "due"
)

// Papers makes the papers of sessions: papers.Maker.
type Papers interface {
	// Notice returns the notice of an open session. Errors are those of document.NewNotice.
	Notice(ctx context.Context, lang money.Language, s checkout.Session) (document.Notice, error)
	// Receipt returns the receipt of a paid due. The error wraps document.ErrUnpaid if there is
	// none.
	Receipt(ctx context.Context, q papers.Request) (papers.Receipt, error)
}

// paperURL returns the address of a paper of this session.
func (v visit) paperURL(paper string, lang money.Language) string {
	return v.path(paper) + "?" + query(lang, "", "")
}

// notice returns the notice of the session. When ok is false the request has been answered:
// the page of a session without a notice says why.
func (v visit) notice() (n document.Notice, ok bool) {
	s, ok := v.session()
	if !ok {
		return n, false
	}
	n, err := v.p.cfg.Papers.Notice(v.r.Context(), v.lang, s)
	switch {
	case errors.Is(err, document.ErrEnded), errors.Is(err, document.ErrFramed):
		v.noPaper(s)
	case err != nil:
		v.unavailable("making a notice", err)
	default:
		return n, true
	}
	return n, false
}

// noPaper answers with the session's own page and the status of a conflict: the page says
// what became of the session.
func (v visit) noPaper(s checkout.Session) {
	if state := end(s, v.p.cfg.Now()); state != "" {
		v.showEndWith(http.StatusConflict, s, state)
		return
	}
	v.steps(s).first(http.StatusConflict)
}

// showNotice is GET /c/{id}/notice.
func (v visit) showNotice() {
	n, ok := v.notice()
	if !ok {
		return
	}
	var b bytes.Buffer
	err := v.p.papers.Notice(&b, n, papers.Links{
		PDF: v.paperURL(paperNoticePDF, v.lang), Language: v.paperURL(paperNotice, v.otherLanguage()), Back: v.url(v.lang, "", ""),
	})
	v.writePaper(b.Bytes(), err)
}

// noticePDF is GET /c/{id}/notice.pdf.
func (v visit) noticePDF() {
	if n, ok := v.notice(); ok {
		body, err := papers.NoticePDF(n)
		v.writePDF(n.Name, body, err)
	}
}

// receipt returns the receipt that the address names. When ok is false the request has been
// answered. By reference only the browser that paid gets it.
func (v visit) receipt() (r papers.Receipt, due string, ok bool) {
	s, ok := v.session()
	if !ok {
		return r, "", false
	}
	if !v.shows(s) {
		v.noPaper(s)
		return r, "", false
	}
	due = v.r.URL.Query().Get(queryDue)
	r, err := v.p.cfg.Papers.Receipt(v.r.Context(), papers.Request{Session: s, TransactionID: due, Language: v.lang, ByReference: v.by != nil})
	switch {
	case errors.Is(err, document.ErrUnpaid) && s.Status == checkout.StatusCompleted:
		v.unknown() // of another session, or mistyped
	case errors.Is(err, document.ErrUnpaid):
		v.noPaper(s)
	case err != nil:
		v.unavailable("making a receipt", err)
	default:
		return r, due, true
	}
	return r, "", false
}

// receiptURL returns the address of a receipt, or of its file.
func (v visit) receiptURL(paper, due string, lang money.Language) string {
	at := v.paperURL(paper, lang)
	if due != "" {
		at += "&" + queryDue + "=" + url.QueryEscape(due)
	}
	return at
}

// showReceipt is GET /c/{id}/receipt.
func (v visit) showReceipt() {
	r, due, ok := v.receipt()
	if !ok {
		return
	}
	var b bytes.Buffer
	err := v.p.papers.Receipt(&b, r.Receipt, r.Address, papers.Links{
		PDF: v.receiptURL(paperReceiptPDF, due, v.lang), Language: v.receiptURL(paperReceipt, due, v.otherLanguage()), Back: v.url(v.lang, "", ""),
	})
	v.writePaper(b.Bytes(), err)
}

// receiptPDF is GET /c/{id}/receipt.pdf.
func (v visit) receiptPDF() {
	if r, _, ok := v.receipt(); ok {
		body, err := r.PDF()
		v.writePDF(r.Name, body, err)
	}
}

// receipts are the links to the receipts of a completed session.
func (v visit) receipts(s checkout.Session) (out []page.ReceiptLink) {
	if s.Status != checkout.StatusCompleted || v.frame != nil {
		return nil
	}
	dues := s.Dues()
	if len(dues) == 1 {
		return []page.ReceiptLink{{URL: v.paperURL(paperReceipt, v.lang)}}
	}
	for i, due := range dues {
		link := page.ReceiptLink{URL: v.receiptURL(paperReceipt, due.TransactionID, v.lang), Label: due.Label, Name: due.NoticeRef}
		if v.by != nil {
			link.Label = due.ServiceLabel
			link.Name = strconv.Itoa(i + 1) // the first notice_ref may be the order
		}
		out = append(out, link)
	}
	return out
}

// writePaper answers with the page of a paper.
func (v visit) writePaper(body []byte, err error) {
	if err != nil {
		v.unavailable("rendering a paper", err)
		return
	}
	setHeaders(v.w.Header(), v.p.papers.Headers()...)
	_, _ = bytes.NewReader(body).WriteTo(v.w)
	v.p.rendered.WithLabelValues("paper").Inc()
}

// writePDF answers with a file to keep. A browser never shows it on our origin.
func (v visit) writePDF(name string, body []byte, err error) {
	if err != nil {
		v.unavailable("making a PDF", err)
		return
	}
	setHeaders(v.w.Header())
	v.w.Header().Set("Content-Type", papers.ContentType)
	v.w.Header().Set("Content-Disposition", papers.Disposition(name))
	_, _ = bytes.NewReader(body).WriteTo(v.w)
	v.p.rendered.WithLabelValues("pdf").Inc()
}
