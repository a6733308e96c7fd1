package role

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quittance/checkout"
	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/readmodel"
	"quittance/internal/registry"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
)

// configuration is the registry as the roles' parts look at it: each declares the
// little that it needs.
type configuration struct{ *registry.Registry }

// AgencyName is what citizens call the agency.
func (c configuration) AgencyName(tenantID string) (string, bool) {
	a, ok := c.Agency(tenantID)
	return a.Name, ok
}

// Configured says whether the agency has a usable account for the offer.
func (c configuration) Configured(tenantID string, live bool, offerID string) bool {
	_, ok := c.Account(tenantID, live, offerID)
	return ok
}

// Account is an agency's merchant account.
func (c configuration) Account(tenantID string, live bool, offerID string) (connector.Account, bool) {
	a, ok := c.Connector(tenantID, live, offerID)
	if !ok || a.Locked {
		return connector.Account{}, false
	}
	return connector.Account{
		BaseURL: a.BaseURL, TargetEnvironment: a.TargetEnvironment, SubscriptionKey: a.SubscriptionKey.Reveal(),
		APIUser: a.APIUser, APIKey: a.APIKey.Reveal(),
	}, true
}

// endpoints are the registry's webhook endpoints.
type endpoints struct{ reg *registry.Registry }

func (e endpoints) Subscribed(applicationID string, platform, live bool, event string) []string {
	var ids []string
	for _, x := range e.reg.Endpoints(applicationID, platform, live, event) {
		ids = append(ids, x.ID)
	}
	return ids
}

func (e endpoints) Endpoint(id string) (webhook.Endpoint, bool) {
	x, ok := e.reg.Endpoint(id)
	out := webhook.Endpoint{ID: x.ID, URL: x.URL, MaxInFlight: x.MaxInFlight, Suspended: !x.SuspendedAt.IsZero(), Locked: x.Locked}
	for _, s := range x.Secrets {
		out.Secrets = append(out.Secrets, s.Reveal())
	}
	return out, ok
}

// erps are the registry's ERPs.
type erps struct{ reg *registry.Registry }

func (e erps) ERP(agencyID string, live bool) (erp.Settings, bool) {
	s, ok := e.reg.ERP(agencyID, live)
	out := erp.Settings{
		BaseURL: s.BaseURL, ConflictIsDone: s.ConflictIsDone, Networks: s.Networks, MaxInFlight: s.MaxInFlight, Locked: s.Locked,
		Auth: erp.Auth{Type: erp.AuthType(s.Auth.Type)},
	}
	switch secret := s.Auth.Secret.Reveal(); s.Auth.Type {
	case registry.AuthBearer:
		out.Auth.Token = secret
	case registry.AuthAPIKey:
		out.Auth.Header, out.Auth.Value = s.Auth.Name, secret
	case registry.AuthBasic:
		out.Auth.Username, out.Auth.Password = s.Auth.Name, secret
	}
	return out, ok
}

// maxInFlight is a destination's cap, 0 for the engine's default.
func maxInFlight(reg *registry.Registry) func(kind delivery.Kind, destinationID string) int {
	return func(kind delivery.Kind, destinationID string) int {
		if kind == delivery.KindWebhook {
			e, _ := reg.Endpoint(destinationID)
			return e.MaxInFlight
		}
		agencyID, mode, _ := strings.Cut(destinationID, "/")
		s, _ := reg.ERP(agencyID, mode == "live")
		return s.MaxInFlight
	}
}

// citizens read sessions by id alone: whoever holds the id may see the page.
type citizens struct{ reader *readmodel.Reader }

func (c citizens) Session(ctx context.Context, id string) (checkout.Session, error) {
	s, err := c.reader.ByID(ctx, id)
	if errors.Is(err, readmodel.ErrNotFound) {
		return s, fmt.Errorf("%w: %w", pages.ErrNotFound, err)
	}
	return s, err
}
