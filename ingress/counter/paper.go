package counter

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"quittance/checkout"
	"quittance/document"
	"quittance/internal/papers"
)

// Papers makes receipts: papers.Maker.
type Papers interface {
	// Receipt returns the receipt of a paid due. The error wraps document.ErrUnpaid if there is
	// none.
	Receipt(ctx context.Context, q papers.Request) (papers.Receipt, error)
}

const (
	// pathReceipt ends the address of a receipt's file.
	pathReceipt = "receipt.pdf"
	// queryDue is the transaction of the due whose receipt is asked for.
	queryDue = "due"
)

// paperLink leads to the receipt of a due. Name tells the dues of a session apart.
type paperLink struct{ URL, Name string }

// papers are the links to the receipts of a session that was paid here.
func (v visit) papers(s checkout.Session) (out []paperLink) {
	if s.Status != checkout.StatusCompleted {
		return nil
	}
	dues := s.Dues()
	for _, due := range dues {
		link := paperLink{URL: v.URL(s.PaymentRef+"/"+pathReceipt, queryDue, due.TransactionID)}
		if len(dues) > 1 {
			link.Name = strings.Join(nonEmpty(due.Label, due.NoticeRef), ", ")
		}
		out = append(out, link)
	}
	return out
}

// nonEmpty returns the texts that are not empty.
func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// receiptPDF is GET /counter/{payment_ref}/receipt.pdf: the receipt that the citizen takes home.
// It is that of somebody who knows the payment reference, without the payer's name, because a
// clerk's key never opens contact data.
func (v visit) receiptPDF() {
	s, err := v.desk.look(v.R.Context(), v.ref())
	if err != nil {
		v.refuse(err, v.ref())
		return
	}
	if c := s.Collection; c == nil || !isTaken(s, c.ID) {
		v.See(v.ref()) // the page says how the payment stands
		return
	}
	var body []byte
	r, err := v.c.cfg.Papers.Receipt(v.R.Context(), papers.Request{Session: s, TransactionID: v.R.URL.Query().Get(queryDue), Language: v.Lang, ByReference: true})
	if err == nil {
		body, err = r.PDF()
	}
	switch {
	case errors.Is(err, document.ErrUnpaid):
		v.See(v.ref())
	case err != nil:
		v.unavailable("making a receipt", err, v.w.NoPaper)
	default:
		h := v.W.Header()
		h.Set("Content-Type", papers.ContentType)
		h.Set("Content-Disposition", papers.Disposition(r.Name))
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		v.W.WriteHeader(http.StatusOK)
		_, _ = bytes.NewReader(body).WriteTo(v.W)
	}
}
