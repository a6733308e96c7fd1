package ministry

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"quittance/checkout"
	"quittance/document"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
	"quittance/internal/form"
	"quittance/internal/papers"
	"quittance/money"
)

// GetSessionNotice answers GET /checkout/sessions/{id}/notice.
func (a *API) GetSessionNotice(ctx context.Context, r api.GetSessionNoticeRequestObject) (api.GetSessionNoticeResponseObject, error) {
	s, err := a.session(ctx, r.ID, r.Params.TenantID)
	if err != nil {
		return nil, err
	}
	n, err := a.cfg.Papers.Notice(ctx, money.Language(or(r.Params.Lang, "")), s)
	switch {
	case errors.Is(err, document.ErrFramed):
		return nil, noNotice("The session is embedded; the QR code of a notice leads to the page of a hosted session.")
	case errors.Is(err, document.ErrEnded) && s.Status == checkout.StatusOpen:
		return nil, noNotice("The session's expires_at has passed; a payment notice is a view of an open session.")
	case errors.Is(err, document.ErrEnded):
		return nil, noNotice("The session is %s; a payment notice is a view of an open session.", s.Status)
	case err != nil:
		return nil, fmt.Errorf("making a notice: %w", err)
	}
	pdf, err := papers.NoticePDF(n)
	if err != nil {
		return nil, err
	}
	out := api.GetSessionNotice200ApplicationPdfResponse{Body: bytes.NewReader(pdf), ContentLength: int64(len(pdf))}
	out.Headers.ContentDisposition = papers.Disposition(n.Name)
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(callerOf(ctx).quota)
	return out, nil
}

func noNotice(detail string, args ...any) *problem.Problem {
	return problem.New("checkout.no_notice").Saying(detail, args...)
}

// GetSessionReceipt answers GET /checkout/sessions/{id}/receipt.
func (a *API) GetSessionReceipt(ctx context.Context, r api.GetSessionReceiptRequestObject) (api.GetSessionReceiptResponseObject, error) {
	s, err := a.session(ctx, r.ID, r.Params.TenantID)
	if err != nil {
		return nil, err
	}
	if s.Status != checkout.StatusCompleted {
		return nil, problem.New(checkout.CodeNotCompleted).Saying("The session is %s; a receipt is of a completed session.", s.Status)
	}
	dues := s.Dues()
	if id := r.Params.TransactionID; id != nil {
		due, ok := s.Due(id.String())
		if !ok {
			return nil, transactionFault("membership", "transaction_id is none of the session's dues: ask without it for all.")
		}
		dues = []checkout.Item{due}
	}
	c := callerOf(ctx)
	if c.pdf {
		return a.receiptPDF(ctx, s, dues, money.Language(or(r.Params.Lang, "")))
	}
	out := api.GetSessionReceipt200JSONResponse{Body: api.Receipts{Items: []api.Receipt{}}}
	for _, due := range dues {
		token, address, err := a.cfg.Papers.Token(ctx, s, due)
		if err != nil {
			return nil, fmt.Errorf("signing a receipt: %w", err)
		}
		out.Body.Items = append(out.Body.Items, api.Receipt{TransactionID: due.TransactionID, NoticeRef: due.NoticeRef, Token: token, URL: address})
	}
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(c.quota)
	return out, nil
}

// receiptPDF answers with the file of one receipt.
func (a *API) receiptPDF(ctx context.Context, s checkout.Session, dues []checkout.Item, lang money.Language) (api.GetSessionReceiptResponseObject, error) {
	if len(dues) > 1 {
		return nil, transactionFault("required", fmt.Sprintf("transaction_id is required: the session has %d dues, and a file is the receipt of one.", len(dues)))
	}
	receipt, err := a.cfg.Papers.Receipt(ctx, papers.Request{Session: s, TransactionID: dues[0].TransactionID, Language: lang})
	if err != nil {
		return nil, fmt.Errorf("making a receipt: %w", err)
	}
	pdf, err := receipt.PDF()
	if err != nil {
		return nil, err
	}
	out := api.GetSessionReceipt200ApplicationPdfResponse{Body: bytes.NewReader(pdf), ContentLength: int64(len(pdf))}
	name := papers.Disposition(receipt.Name)
	out.Headers.ContentDisposition = &name
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(callerOf(ctx).quota)
	return out, nil
}

func transactionFault(rule, message string) *problem.Problem {
	return problem.Invalid([]form.Fault{{Field: "transaction_id", Rule: rule, Message: message}})
}
