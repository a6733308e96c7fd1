package role

import (
	"strings"

	"quittance/internal/connector"
	"quittance/internal/registry"
	"quittance/sinks/delivery"
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

// AccountOf is the fingerprint of the agency's account for the offer.
func (c configuration) AccountOf(tenantID string, live bool, offerID string) string {
	a, ok := c.Account(tenantID, live, offerID)
	if !ok {
		return ""
	}
	return a.Fingerprint()
}

// Account is an agency's merchant account.
func (c configuration) Account(tenantID string, live bool, offerID string) (connector.Account, bool) {
	a, ok := c.Connector(tenantID, live, offerID)
	if !ok || a.Locked {
		return connector.Account{}, false
	}
	return connector.Account{
		BaseURL: a.BaseURL, TargetEnvironment: a.TargetEnvironment, SubscriptionKey: a.SubscriptionKey.Reveal(),
		APIUser: a.APIUser, APIKey: a.APIKey.Reveal(), ClientID: a.ClientID, ClientSecret: a.ClientSecret.Reveal(),
	}, true
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
