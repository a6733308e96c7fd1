package ministry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
)

// VerifyCompletion answers POST /checkout/sessions/verify-completion (docs/design/decisions.md § 4).
func (a *API) VerifyCompletion(ctx context.Context, r api.VerifyCompletionRequestObject) (api.VerifyCompletionResponseObject, error) {
	p := callerOf(ctx).Principal
	v, faults, err := parseVerify(callerOf(ctx).body)
	if err != nil {
		return nil, err
	}
	app, faults, err := a.target(p, v.tenantID, faults)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, problem.Invalid(faults)
	}
	// A token of another partition belongs to another agency: this key may not learn
	// that it exists.
	partition, _, err := a.cfg.IDs.CheckCompletionToken(v.token)
	if err != nil || partition != a.cfg.Partition(app.AgencyID) {
		return nil, problem.New(checkout.CodeTokenNotFound)
	}
	hash := sha256.Sum256([]byte(v.token))
	answer, err := a.applicationCommand(ctx, "verify", app.ID, checkout.Command{Live: p.Live, Do: checkout.ConsumeToken{Hash: hash[:], OrderID: v.orderID}})
	if err != nil {
		return nil, err
	}
	out := api.VerifyCompletion200JSONResponse{Body: toCompletion(*answer.Session)}
	out.Headers.IdempotentReplayed = replayed(answer)
	return out, nil
}

// IssueCompletionToken answers POST /embed/{session_id}/completion-token. The embedded
// page calls it with its client_secret.
func (a *API) IssueCompletionToken(ctx context.Context, r api.IssueCompletionTokenRequestObject) (api.IssueCompletionTokenResponseObject, error) {
	partition, err := checkout.SessionPartition(r.SessionID)
	if err != nil {
		return nil, notFound()
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := a.cfg.IDs.NewCompletionToken(partition, random)
	hash, secret := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(callerOf(ctx).clientSecret))
	answer, err := a.command(ctx, "token "+r.SessionID, tokenAsks, checkout.Command{SessionID: r.SessionID, Do: checkout.IssueToken{
		Hash: hash[:], ClientSecretHash: secret[:], Lifetime: checkout.CompletionTokenLifetime,
	}})
	if err != nil {
		return nil, err
	}
	return api.IssueCompletionToken200JSONResponse{CompletionToken: token, ExpiresAt: timestamp(answer.TokenExpiresAt)}, nil
}
