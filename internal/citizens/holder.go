package citizens

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// Holder is an account that is linked to a subject, as other holders and operators see it.
type Holder struct {
	// LinkID is the id of its link, and CitizenID that of the account.
	LinkID, CitizenID string
	// Addresses are masked.
	Addresses []string
	// Proof is code or contact.
	Proof             string
	CreatedAt, UsedAt time.Time
	// Refused means that somebody else has written the link: the account does not see the subject.
	Refused bool
}

// Holders returns the accounts that are linked to a subject, the oldest link first.
func (s *Store) Holders(ctx context.Context, subject Subject) ([]Holder, error) {
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT id::text, citizen_id::text, proof, created_at, used_at, mac FROM citizen_links
		WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3 AND used_at >= $4 ORDER BY created_at, id`,
		subject.AgencyID, subject.Live, subject.Ref, s.cfg.Now().UTC().AddDate(0, -unusedMonths, 0)) // the rows return its error
	holders, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Holder, err error) {
		var mac []byte
		err = row.Scan(&h.LinkID, &h.CitizenID, &h.Proof, &h.CreatedAt, &h.UsedAt, &mac)
		h.Refused = err == nil && !s.believesLink(ctx, mac, h.CitizenID, Link{ID: h.LinkID, Subject: subject, Proof: h.Proof, CreatedAt: h.CreatedAt})
		return h, err
	})
	if err != nil {
		return nil, failed("reading the holders of a reference", err)
	}
	for i, h := range holders {
		addresses, err := s.stored(ctx, s.cfg.Pool, h.CitizenID)
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			holders[i].Addresses = append(holders[i].Addresses, a.Masked())
		}
	}
	return holders, nil
}

// CoHolders returns the other holders of the subject of a link of an account, for its page:
// without what is theirs alone. ok is false if the account has no such link.
func (s *Store) CoHolders(ctx context.Context, citizenID, linkID string) (others []Holder, ok bool, err error) {
	subject, ok, err := s.subjectOf(ctx, citizenID, linkID)
	if err != nil || !ok {
		return nil, false, err
	}
	holders, err := s.Holders(ctx, subject)
	for _, h := range holders {
		if h.CitizenID != citizenID && !h.Refused {
			others = append(others, Holder{Addresses: h.Addresses, Proof: h.Proof, CreatedAt: h.CreatedAt})
		}
	}
	return others, true, err
}

// AskRenewal records that a holder asks the agency to renew the code of a subject, which ends
// all its links. The agency decides: otherwise any holder could shut out the others. ok is
// false if the account has no such link. It may be repeated; only the first counts.
func (s *Store) AskRenewal(ctx context.Context, actor operation.Actor, citizenID, linkID string) (ok bool, err error) {
	subject, ok, err := s.subjectOf(ctx, citizenID, linkID)
	if err != nil || !ok {
		return false, err
	}
	now := s.cfg.Now().UTC()
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := subject.lock(ctx, tx); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO link_renewals (agency_id, livemode, subject_ref, citizen_id, asked_at)
			SELECT agency_id, livemode, subject_ref, citizen_id, $3 FROM citizen_links WHERE id = $1 AND citizen_id = $2
			ON CONFLICT DO NOTHING`, linkID, citizenID, now)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{
			Action: "links.ask_renewal", Subject: subject.AgencyID, AgencyID: subject.AgencyID, Detail: map[string]any{"livemode": subject.Live, "subject": subject.Masked()},
		})
	})
	return err == nil, failed("asking for a new link code", err)
}

// subjectOf returns the subject of a link of an account.
func (s *Store) subjectOf(ctx context.Context, citizenID, linkID string) (subject Subject, ok bool, err error) {
	if _, err := uuid.Parse(linkID); err != nil {
		return Subject{}, false, nil //nolint:nilerr // no such link
	}
	links, err := s.linksOf(ctx, s.cfg.Pool, citizenID, `id = $2 AND used_at >= $3`, linkID, s.cfg.Now().UTC().AddDate(0, -unusedMonths, 0))
	if err != nil || len(links) == 0 {
		return Subject{}, false, failed("reading a link", err)
	}
	return links[0].Subject, true, nil
}

// Attention is a subject at which an agency should look: a holder asks for a new code, or
// somebody tries to guess it.
type Attention struct {
	SubjectRef string
	// AskedAt is the time of the oldest request for a new code; zero without one.
	AskedAt time.Time
	// Failures counts the wrong codes of the last day.
	Failures int
	// Holders counts the accounts that are linked.
	Holders int
}

// Attentions returns the subjects of an agency whose holders ask for a new code, or that had
// at least FailuresOfSubject wrong codes in the last day, by reference.
func (s *Store) Attentions(ctx context.Context, agencyID string, live bool) ([]Attention, error) {
	rows, _ := s.cfg.Pool.Query(ctx, `
		WITH asked AS (SELECT subject_ref, min(asked_at) AS at FROM link_renewals WHERE agency_id = $1 AND livemode = $2 GROUP BY subject_ref),
			failed AS (SELECT subject_ref, count(*) AS n FROM link_failures WHERE agency_id = $1 AND livemode = $2 AND at > $3 GROUP BY subject_ref)
		SELECT subject_ref, coalesce(asked.at, '0001-01-01'), coalesce(failed.n, 0),
			(SELECT count(*) FROM citizen_links l WHERE l.agency_id = $1 AND l.livemode = $2 AND l.subject_ref = s.subject_ref AND l.used_at >= $5)
		FROM (SELECT subject_ref FROM asked UNION SELECT subject_ref FROM failed WHERE n >= $4) s
			LEFT JOIN asked USING (subject_ref) LEFT JOIN failed USING (subject_ref) ORDER BY subject_ref`,
		agencyID, live, s.cfg.Now().UTC().Add(-failuresFor), FailuresOfSubject, s.cfg.Now().UTC().AddDate(0, -unusedMonths, 0)) // the rows return its error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Attention])
	for i := range list {
		list[i].AskedAt = list[i].AskedAt.UTC()
	}
	return list, failed("reading which references need attention", err)
}
