package pages

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"quittance/checkout"
	"quittance/checkout/document"
	"quittance/checkout/money"
	"quittance/internal/papers"
)

// Names of papers in addresses.
const (
	paperNotice    = "notice"
	paperNoticePDF = "notice.pdf"
)

// Papers makes the papers of sessions: papers.Maker.
type Papers interface {
	// Notice returns the notice of an open session. Errors are those of document.NewNotice.
	Notice(ctx context.Context, lang money.Language, s checkout.Session) (document.Notice, error)
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
		body, err := papers.Notice(n)
		v.writePDF(n.Name, body, err)
	}
}

// writePaper answers with the page of a paper.
func (v visit) writePaper(body []byte, err error) {
	if err != nil {
		v.unavailable("rendering a paper", err)
		return
	}
	setHeaders(v.w.Header(), v.p.papers.Headers()...)
	_, _ = v.w.Write(body) //nolint:gosec // html/template has escaped it
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
	_, _ = v.w.Write(body)
	v.p.rendered.WithLabelValues("pdf").Inc()
}
