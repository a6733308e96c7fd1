package ministry

import (
	"slices"

	"quittance/ingress/problem"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

// target returns the application of the request: the key's own, or with a platform key
// the integrator application of the agency that tenant_id names (docs/design/decisions.md § 9). It adds
// faults of tenant_id to faults.
func (a *API) target(p identity.Principal, tenantID string, faults []form.Fault) (registry.Application, []form.Fault, error) {
	fault := func(rule, message string) (registry.Application, []form.Fault, error) {
		return registry.Application{}, append(faults, form.Fault{Field: "tenant_id", Rule: rule, Message: message}), nil
	}
	malformed := slices.ContainsFunc(faults, func(f form.Fault) bool { return f.Field == "tenant_id" })
	if !p.Platform {
		app, ok := a.cfg.Registry.Application(p.ApplicationID)
		if !ok || !app.Active {
			return registry.Application{}, nil, unauthorized()
		}
		if tenantID != "" && tenantID != app.AgencyID {
			faults = append(faults, form.Fault{
				Field: "tenant_id", Rule: "own_agency",
				Message: "tenant_id is not the agency of this key's application; leave it out: an application key does not need it.",
			})
		}
		return app, faults, nil
	}
	switch {
	case malformed:
		return registry.Application{}, faults, nil
	case tenantID == "":
		return fault("required", "tenant_id is required with a platform key.")
	case !slices.Contains(p.AgencyIDs, tenantID):
		return registry.Application{}, nil, forbiddenAgency()
	}
	app, ok := a.cfg.Registry.IntegratorOf(tenantID)
	if !ok || !app.Active {
		return fault("integrator", "tenant_id names an agency that has no active integrator application; the platform's operators configure one.")
	}
	return app, faults, nil
}

// scope returns the applications whose sessions the key sees. For a platform key
// tenantID narrows them to one agency.
func (a *API) scope(p identity.Principal, tenantID string) ([]registry.Application, error) {
	if !p.Platform {
		app, faults, err := a.target(p, tenantID, nil)
		if len(faults) > 0 {
			err = problem.Invalid(faults)
		}
		return []registry.Application{app}, err
	}
	agencies := p.AgencyIDs
	if tenantID != "" {
		if !slices.Contains(agencies, tenantID) {
			return nil, forbiddenAgency()
		}
		agencies = []string{tenantID}
	}
	var out []registry.Application
	for _, id := range agencies {
		if app, ok := a.cfg.Registry.IntegratorOf(id); ok {
			out = append(out, app)
		}
	}
	return out, nil
}

func applicationIDs(apps []registry.Application) []string {
	out := make([]string, len(apps))
	for i, app := range apps {
		out[i] = app.ID
	}
	return out
}
