package ministry

import (
	"context"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
)

// CancelSession answers POST /checkout/sessions/{id}/cancel.
func (a *API) CancelSession(ctx context.Context, r api.CancelSessionRequestObject) (api.CancelSessionResponseObject, error) {
	p := callerOf(ctx).Principal
	apps, err := a.scope(p, tenant(r.Params.TenantID))
	if err != nil {
		return nil, err
	}
	partition, _, err := a.cfg.IDs.CheckSession(r.ID)
	if err != nil {
		return nil, notFound()
	}
	for _, app := range apps {
		if a.cfg.Partition(app.AgencyID) != partition {
			continue
		}
		answer, err := a.applicationCommand(ctx, "cancel", app.ID, checkout.Command{SessionID: r.ID, Live: p.Live, Do: checkout.Cancel{By: checkout.ByIntegrator}})
		switch {
		case err == nil:
			return api.CancelSession200JSONResponse(toSession(*answer.Session, a.cfg.CheckoutURL)), nil
		case answer.Code != checkout.CodeSessionNotFound: // otherwise another agency of the platform may have it
			return nil, err
		}
	}
	return nil, notFound()
}
