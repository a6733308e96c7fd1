package registry

import (
	"time"

	"github.com/google/uuid"

	"quittance/internal/operation"
)

// MinPortalLifetime is the shortest lifetime of a portal's session: the citizen must have the
// time to pay.
const MinPortalLifetime = 5 * time.Minute

// portalSpace is the name space of the ids of portals' applications.
var portalSpace = uuid.MustParse("2f1c7a52-6f0e-4d7b-9a3e-5b8f0d4c6e11")

// PortalID returns the id of the application of an agency's citizen portal, whether or not the
// agency has one. It depends on the agency's id alone, so that a registry that is made anew
// from its files names the same application as the sessions do.
func PortalID(agencyID string) string {
	return uuid.NewSHA1(portalSpace, []byte(agencyID)).String()
}

// PortalName returns the name of the application of an agency's citizen portal.
func PortalName(slug string) string { return "Portail " + slug }

// PortalOf finds the application that owns the sessions of an agency's citizen portal, active
// or not. An agency with a portal has an ERP. The application has no keys and no quotas; its
// Active, Offers, SessionLifetime and SuccessOrigins are those of the portal.
func (r *Registry) PortalOf(agencyID string) (Application, bool) {
	return r.current.Load().PortalOf(agencyID)
}

// PortalOf finds the application of an agency's citizen portal, active or not.
func (s *Snapshot) PortalOf(agencyID string) (Application, bool) {
	a, ok := s.Applications[PortalID(agencyID)]
	return a, ok && a.Portal
}

// FindClient is FindApplication for what makes an application an integrator's: keys,
// credentials and embed origins. It refuses the application of a citizen portal.
func (s *Snapshot) FindClient(named string) (Application, error) {
	a, err := s.FindApplication(named)
	if err == nil && a.Portal {
		return Application{}, operation.Refuse("application.portal", "application", operation.Args{"agency": s.Agencies[a.AgencyID].Slug})
	}
	return a, err
}

// refusedFor returns why the change is not possible for an application of a citizen portal.
func (c ApplicationChange) refusedFor(portal bool) error {
	if !portal {
		return nil
	}
	for flag, value := range map[string]*int64{"creations-per-minute": c.CreationsPerMinute, "reads-per-minute": c.ReadsPerMinute, "page-size": c.PageSize} {
		if value != nil {
			return operation.Refuse("application.portal_has_none", flag, nil)
		}
	}
	if l := c.SessionLifetime; l != nil && *l < MinPortalLifetime {
		return operation.Refuse("registry.out_of_range", "session-lifetime", operation.Args{"least": MinPortalLifetime, "most": MaxLifetime})
	}
	return nil
}
