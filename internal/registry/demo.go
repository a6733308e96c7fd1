package registry

import (
	"slices"
	"strings"

	"quittance/internal/secret"
)

// DemoSecret is a secret of the demo registry in the database.
type DemoSecret struct {
	// EndpointID is the webhook endpoint that signs with it; empty for another secret.
	EndpointID string
	// Where says where it is: "the ERP impots/test".
	Where string
}

// DemoSecrets lists the secrets of the demo registry that are used now, sorted by Where.
// Keys are not among them: package identity has those.
func (r *Registry) DemoSecrets() []DemoSecret {
	s, now := r.current.Load(), r.cfg.Now()
	var out []DemoSecret
	for _, e := range s.endpoints {
		for _, known := range e.secrets {
			if (known.expiresAt.IsZero() || now.Before(known.expiresAt)) && secret.IsDemoDigest(known.digest) {
				out = append(out, DemoSecret{e.ID, "a signing secret of webhook endpoint " + e.ID})
			}
		}
	}
	for _, e := range s.erp {
		if secret.IsDemo(e.Auth.Secret) {
			out = append(out, DemoSecret{Where: "the ERP " + s.Agencies[e.AgencyID].Slug + "/" + Mode(e.Live)})
		}
	}
	for k, a := range s.Accounts {
		for _, value := range a.Fields.Reveal() {
			if secret.IsDemo(secret.NewText(value)) {
				out = append(out, DemoSecret{Where: "the merchant account " + k.Name + " of " + s.Agencies[k.AgencyID].Slug + "/" + Mode(k.Live)})
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b DemoSecret) int { return strings.Compare(a.Where, b.Where) })
	return out
}
