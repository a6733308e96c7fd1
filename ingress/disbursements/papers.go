package disbursements

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/document"
	"quittance/internal/batchpapers"
	"quittance/internal/disbursements"
	"quittance/money"
)

// Papers makes certificates and payment advices of rows that agree with what was approved: batchpapers.Maker.
type Papers interface {
	Certificate(ctx context.Context, lang money.Language, in disbursements.Scope, batch string, staff batchpapers.Staff, now time.Time) (batchpapers.Paper, error)
	Advice(ctx context.Context, lang money.Language, in disbursements.Scope, batch string, position int, staff batchpapers.Staff, now time.Time) (batchpapers.Paper, error)
}

// Ends of the addresses of papers.
const (
	pathCertificate = "/certificate"
	pathAdvice      = "/advice"
)

// certified reports whether a batch has a certificate.
func certified(b disbursements.Batch) bool {
	return b.Status == disbursement.StatusApproved || b.Status == disbursement.StatusReleasing || b.Status == disbursement.StatusDone
}

// advised reports whether a line has a payment advice.
func advised(l disbursements.OpenLine) bool {
	return l.Opened && !l.Contested && (l.Status == disbursement.LinePaid || l.Status == disbursement.LineReturned)
}

// staff returns the names and passkeys of people, for papers.
func (v *visit) staff(b disbursements.Batch) (out batchpapers.Staff, err error) {
	if out.People, err = v.d.cfg.Book.Read(v.Context(), v.Now); err == nil {
		_, out.Roster, err = v.d.cfg.Batches.Agency(v.Context(), b.TenantID, b.Live)
	}
	return out, err
}

// certificate is GET /agency/batches/{batch}/certificate.
func (v *visit) certificate() {
	b, ok := v.batch()
	if !ok {
		return
	}
	staff, err := v.staff(b)
	var paper batchpapers.Paper
	if err == nil {
		paper, err = v.d.cfg.Papers.Certificate(v.Context(), v.Lang, disbursements.Scope{TenantID: v.agency()}, b.ID, staff, v.Now)
	}
	if said := v.noPaper(err); said != "" {
		v.writeBatch(http.StatusConflict, b, "", said)
		return
	}
	if err != nil {
		v.Failed("making the certificate of a batch", err)
		return
	}
	if v.Record("batch.certificate", b.ID, b.TenantID, map[string]any{"status": string(b.Status)}) {
		v.download(paper)
	}
}

// advice is GET /agency/batches/{batch}/lines/{line}/advice.
func (v *visit) advice() {
	b, l, err := v.lineOf(v.Context())
	if errors.Is(err, disbursements.ErrUnknown) {
		v.Unknown()
		return
	}
	var staff batchpapers.Staff
	if err == nil {
		staff, err = v.staff(b)
	}
	var paper batchpapers.Paper
	if err == nil {
		paper, err = v.d.cfg.Papers.Advice(v.Context(), v.Lang, disbursements.Scope{TenantID: v.agency()}, b.ID, l.Position, staff, v.Now)
	}
	if said := v.noPaper(err); said != "" {
		v.writeLine(http.StatusConflict, said)
		return
	}
	if err != nil {
		v.Failed("making a payment advice", err)
		return
	}
	if v.Record("batch.advice", b.ID, b.TenantID, map[string]any{"line": l.Position + 1}) {
		v.download(paper)
	}
}

// noPaper says why there is no paper; empty for another error, and for none.
func (v *visit) noPaper(err error) string {
	w := v.w
	var differs *batchpapers.DiffersError
	switch {
	case errors.Is(err, document.ErrUnapproved):
		return w.NotApproved
	case errors.Is(err, document.ErrUnpaid):
		return w.NotPaid
	case errors.Is(err, batchpapers.ErrErased):
		return w.NoPayee
	case errors.As(err, &differs):
		parts := make([]string, len(differs.Found))
		for i, d := range differs.Found {
			parts[i] = w.Differences[string(d)]
		}
		return fmt.Sprintf(w.NoPaper, strings.Join(parts, ", "))
	}
	return ""
}

// download answers with a paper.
func (v *visit) download(paper batchpapers.Paper) {
	d := v.Download(paper.Name+".pdf", int64(len(paper.PDF)))
	_, _ = d.Write(paper.PDF) // the reader may be gone
	d.End()
}
