package cases

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/identity"
)

// Awaiting is an open case whose proposal waits for the approval of another person.
type Awaiting struct {
	CaseID string
	Number int // of the proposal
	Kind   casework.Kind
	// AgencyID and Mode are empty where the session is not known.
	AgencyID, Mode string
	ProposedBy     string // id of staff
	ProposedAt     time.Time

	clerks []string
	cash   bool   // about an account of the counters
	ledger string // code of the account of a case of the matcher
}

// MayApprove reports whether Approve would accept the person: one who acts for the agency, did
// not propose, and neither took nor gave back the cash.
func (a Awaiting) MayApprove(s identity.Staff) bool {
	return a.decision().MayBeSecond(s.Person()) == nil && s.ActsFor(a.AgencyID) &&
		!slices.ContainsFunc(a.clerks, func(code string) bool { return s.IsClerk(a.AgencyID, code) }) &&
		!(a.cash && s.AnyClerk(a.AgencyID))
}

func (a Awaiting) decision() casework.Decision {
	return Proposal{State: ProposalOpen, ProposedBy: a.ProposedBy, ProposedAt: a.ProposedAt}.decision()
}

// AwaitingApproval returns the proposals that can be approved at a time of the service's clock,
// the oldest first.
func (s *Store) AwaitingApproval(ctx context.Context, now time.Time) (out []Awaiting, err error) {
	err = s.tx(ctx, "reading what waits for approval", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			SELECT p.case_id, p.number, c.kind, coalesce(c.agency_id, ''), CASE WHEN c.livemode THEN 'live' WHEN NOT c.livemode THEN 'test' ELSE '' END,
				p.proposed_by::text, p.proposed_at, c.clerks, coalesce(c.evidence->>$1, '')
			FROM case_proposals p JOIN cases c ON c.id = p.case_id
			WHERE p.state = 'open' AND c.resolution IS NULL AND c.ended_as IS NULL
			ORDER BY p.proposed_at, p.case_id`, EvidenceLedger)
		found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (a Awaiting, err error) {
			err = r.Scan(&a.CaseID, &a.Number, &a.Kind, &a.AgencyID, &a.Mode, &a.ProposedBy, &a.ProposedAt, &a.clerks, &a.ledger)
			a.ProposedAt = a.ProposedAt.UTC()
			return a, err
		})
		if err != nil {
			return err
		}
		ids := make([]string, len(found))
		for i, a := range found {
			ids[i] = a.ProposedBy
		}
		staff, err := identity.StaffOf(ctx, tx, s.keys, ids...)
		if err != nil {
			return err
		}
		for _, a := range found {
			if a.decision().At(now, staff[a.ProposedBy].Person()) != casework.DecisionProposed {
				continue
			}
			if a.cash, err = ofCash(ctx, tx, s.keys, Case{AgencyID: a.AgencyID, Mode: a.Mode, Evidence: map[string]string{EvidenceLedger: a.ledger}}); err != nil {
				return err
			}
			out = append(out, a)
		}
		return nil
	})
	return out, err
}
