package citizen

import (
	"context"
	"errors"
	"time"

	"quittance/internal/citizens"
	"quittance/internal/registry"
)

// linkRetry is the RetryAfter of an account with too many wrong link codes. Its limit is that
// of the last day.
const linkRetry = time.Hour

// Link is a reference that an account sees.
type Link struct {
	ID string
	// Agency has only its id if the registry does not know it any more.
	Agency     registry.Agency
	SubjectRef string
	// Proof is code or contact.
	Proof     string
	CreatedAt time.Time
}

// Me is an account as its owner sees it.
type Me struct {
	citizens.Citizen
	Links []Link
}

// Me returns an account with its links, the oldest first.
func (s *Service) Me(ctx context.Context, who Visitor) (Me, error) {
	links, err := s.linksOf(ctx, who.ID)
	return Me{who.Citizen, links}, err
}

// linksOf returns the links of an account in the mode of the installation.
func (s *Service) linksOf(ctx context.Context, citizenID string) ([]Link, error) {
	all, err := s.cfg.Citizens.Links(ctx, citizenID)
	var links []Link
	for _, l := range all {
		if l.Subject.Live == s.cfg.Live {
			links = append(links, s.toLink(l))
		}
	}
	return links, err
}

func (s *Service) toLink(l citizens.Link) Link {
	agency, ok := s.cfg.Registry.Agency(l.Subject.AgencyID)
	if !ok {
		agency.ID = l.Subject.AgencyID
	}
	return Link{ID: l.ID, Agency: agency, SubjectRef: l.Subject.Ref, Proof: l.Proof, CreatedAt: l.CreatedAt}
}

// LinkRequest proves a reference of an agency by its link code.
type LinkRequest struct {
	// TenantID is a UUID.
	TenantID, SubjectRef, Code string
}

// AddLink links the account to a reference. made is false if the account had the link already.
// A code that does not belong to the reference is refused with citizen.link_refused, the
// same and in the same time whether the reference exists or not. Too many wrong codes are
// refused with generic.rate_limited.
func (s *Service) AddLink(ctx context.Context, who Visitor, q LinkRequest) (l Link, made bool, err error) {
	proof, err := s.cfg.Citizens.Prove(ctx, who.ID, citizens.Subject{AgencyID: q.TenantID, Live: s.cfg.Live, Ref: q.SubjectRef}, q.Code)
	switch {
	case errors.Is(err, citizens.ErrLinkLimit):
		s.links.WithLabelValues("limited").Inc()
		return Link{}, false, limited(linkRetry)
	case errors.Is(err, citizens.ErrLinkRefused):
		s.links.WithLabelValues("refused").Inc()
		return Link{}, false, refused(CodeLinkRefused)
	case err != nil:
		return Link{}, false, err
	case proof.New:
		s.links.WithLabelValues("made").Inc()
	default:
		s.links.WithLabelValues("known").Inc()
	}
	return s.toLink(proof.Link), proof.New, nil
}

// RemoveLink ends a link of the account. Another account's is refused with
// citizen.link_not_found, as one that does not exist.
func (s *Service) RemoveLink(ctx context.Context, who Visitor, id string) error {
	ok, err := s.cfg.Citizens.Unlink(ctx, who.ID, id)
	if err == nil && !ok {
		return refused(CodeLinkNotFound)
	}
	return err
}
