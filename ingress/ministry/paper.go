package ministry

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"quittance/checkout"
	"quittance/checkout/document"
	"quittance/checkout/money"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
	"quittance/internal/papers"
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
	pdf, err := papers.Notice(n)
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
