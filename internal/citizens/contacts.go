package citizens

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/operation"
)

// Contact is an address that an agency has verified for a subject.
type Contact struct {
	SubjectRef string
	Address    contact.Address
}

// contactMonths is after how many months a contact that nobody has used ends.
const contactMonths = 24

// importAtOnce is the number of contacts in a statement of Import.
const importAtOnce = 10_000

// Import stores contacts that an agency has verified, all or none. Who signs in with one next
// is linked to its subject. A contact links once: after that the link stands for itself, and
// what ends the link ends the proof. It may be repeated. It returns the number of contacts
// that were not stored before. The error of a malformed reference is that of CheckSubjectRef.
func (s *Store) Import(ctx context.Context, actor operation.Actor, agencyID string, live bool, contacts []Contact) (added int64, err error) {
	for _, c := range contacts {
		if err := CheckSubjectRef(c.SubjectRef); err != nil {
			return 0, err
		}
	}
	now := s.cfg.Now().UTC()
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		for some := range slices.Chunk(contacts, importAtOnce) {
			refs, hashes := make([]string, len(some)), make([][]byte, len(some))
			for i, c := range some {
				refs[i], hashes[i] = c.SubjectRef, s.hash(c.Address)
			}
			var fresh int64
			err := tx.QueryRow(ctx, `
				WITH stored AS (INSERT INTO subject_contacts (agency_id, livemode, subject_ref, address, imported_at)
					SELECT DISTINCT $1::uuid, $2::boolean, ref, address, $5::timestamptz FROM unnest($3::text[], $4::bytea[]) c (ref, address) ORDER BY ref, address
					ON CONFLICT (agency_id, livemode, subject_ref, address) DO UPDATE SET imported_at = excluded.imported_at RETURNING xmax = 0 AS new)
				SELECT count(*) FILTER (WHERE new) FROM stored`, agencyID, live, refs, hashes, now).Scan(&fresh)
			if err != nil {
				return err
			}
			added += fresh
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{
			Action: "links.import", Subject: agencyID, Detail: map[string]any{"livemode": live, "contacts": len(contacts), "new": added},
		})
	})
	return added, failed("importing verified contacts", err)
}

// linkContacts links the account of a proven address to the subjects for which an agency has
// verified that address.
func (s *Store) linkContacts(ctx context.Context, tx pgx.Tx, citizenID string, address []byte, now time.Time) error {
	rows, _ := tx.Query(ctx, `SELECT agency_id::text, livemode, subject_ref FROM subject_contacts
		WHERE address = $1 AND imported_at >= $2 ORDER BY agency_id, livemode, subject_ref`, address, now.AddDate(0, -contactMonths, 0)) // the rows return its error
	subjects, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Subject])
	for _, subject := range subjects {
		if err == nil {
			err = s.linkContact(ctx, tx, citizenID, subject, address, now)
		}
	}
	return err
}

func (s *Store) linkContact(ctx context.Context, tx pgx.Tx, citizenID string, subject Subject, address []byte, now time.Time) error {
	if err := subject.lock(ctx, tx); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM subject_contacts WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3 AND address = $4`,
		subject.AgencyID, subject.Live, subject.Ref, address)
	if err != nil || tag.RowsAffected() == 0 { // the agency has revoked it meanwhile
		return err
	}
	_, _, err = link(ctx, tx, citizenID, subject, "contact", now)
	return err
}
