package citizens

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/operation"
	"quittance/internal/signed"
)

// Contact is an address that an agency has verified for a subject.
type Contact struct {
	SubjectRef string
	Address    contact.Address
}

// linksFor is how long after its import a contact links who signs in with it. A number that
// nobody signs in with is given to somebody else after 90 days.
const linksFor = proveAgainAfter

// contactMonths is after how many months Sweep deletes a contact that was not revoked.
const contactMonths = 24

// importAtOnce is the number of contacts in a statement of Import.
const importAtOnce = 10_000

// Who revokes a contact.
const (
	byOperator = "operator" // Renew or Revoke
	byHolder   = "holder"   // Unlink
)

// Imported is the result of Import.
type Imported struct {
	// New counts the contacts that were not known before.
	New int64
	// Revoked and Removed count the contacts that were skipped: an operator has revoked them, or
	// their holder has removed the link.
	Revoked, Removed int64
	// Revived counts the contacts that an operator or a holder had ended and that link again.
	Revived int64
}

// Import stores contacts that an agency has verified, all or none. Who signs in with one within
// 90 days is linked to its subject; another import of it begins the 90 days again. A contact
// links once: after that the link stands for itself, and what ends the link ends the proof.
// Contacts that an operator has revoked, or whose holder has removed the link, are skipped,
// unless again is true. The error of a malformed reference is that of CheckSubjectRef.
func (s *Store) Import(ctx context.Context, actor operation.Actor, agencyID string, live bool, contacts []Contact, again bool) (done Imported, err error) {
	for _, c := range contacts {
		if err := CheckSubjectRef(c.SubjectRef); err != nil {
			return Imported{}, err
		}
	}
	now := s.cfg.Now().UTC()
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		for some := range slices.Chunk(contacts, importAtOnce) {
			if err := s.importSome(ctx, tx, agencyID, live, some, again, now, &done); err != nil {
				return err
			}
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "links.import", Subject: agencyID, AgencyID: agencyID, Detail: map[string]any{
			"livemode": live, "contacts": len(contacts), "new": done.New, "again": again, "skipped_revoked": done.Revoked, "skipped_removed": done.Removed, "revived": done.Revived,
		}})
	})
	return done, failed("importing verified contacts", err)
}

// importSome stores contacts and adds to the counts.
func (s *Store) importSome(ctx context.Context, tx pgx.Tx, agencyID string, live bool, some []Contact, again bool, now time.Time, done *Imported) error {
	refs, hashes, macs := make([]string, len(some)), make([][]byte, len(some)), make([][]byte, len(some))
	for i, c := range some {
		refs[i], hashes[i] = c.SubjectRef, s.hash(c.Address)
		macs[i] = signed.MAC(s.macs, "subject_contacts", contactValues(Subject{agencyID, live, c.SubjectRef}, hashes[i], now)...)
	}
	// The rows are locked first, so that nobody revokes one between the count and the change.
	var ended Imported
	err := tx.QueryRow(ctx, `
		WITH held AS (SELECT revoked_by FROM subject_contacts WHERE agency_id = $1 AND livemode = $2
			AND (subject_ref, address) IN (SELECT * FROM unnest($3::text[], $4::bytea[])) ORDER BY subject_ref, address FOR UPDATE)
		SELECT count(*) FILTER (WHERE revoked_by = $5), count(*) FILTER (WHERE revoked_by = $6) FROM held`,
		agencyID, live, refs, hashes, byOperator, byHolder).Scan(&ended.Revoked, &ended.Removed)
	if err != nil {
		return err
	}
	if again {
		ended = Imported{Revived: ended.Revoked + ended.Removed}
	}
	var fresh int64
	err = tx.QueryRow(ctx, `
		WITH stored AS (INSERT INTO subject_contacts AS c (agency_id, livemode, subject_ref, address, imported_at, mac)
			SELECT DISTINCT $1::uuid, $2::boolean, ref, address, $5::timestamptz, mac FROM unnest($3::text[], $4::bytea[], $7::bytea[]) c (ref, address, mac) ORDER BY ref, address
			ON CONFLICT (agency_id, livemode, subject_ref, address)
			DO UPDATE SET imported_at = excluded.imported_at, mac = excluded.mac, linked_at = NULL, revoked_at = NULL, revoked_by = NULL WHERE c.revoked_at IS NULL OR $6 RETURNING xmax = 0 AS new)
		SELECT count(*) FILTER (WHERE new) FROM stored`, agencyID, live, refs, hashes, now, again, macs).Scan(&fresh)
	done.New += fresh
	done.Revoked += ended.Revoked
	done.Removed += ended.Removed
	done.Revived += ended.Revived
	return err
}

// revokeContacts ends all contacts of a subject, or those of one account: the contacts that are
// known, and those with which its links were made. It returns the number of contacts that
// had not linked yet. The caller has locked the subject, and deletes the links afterwards.
func revokeContacts(ctx context.Context, tx pgx.Tx, subject Subject, citizenID *string, by string, now time.Time) (waiting int64, err error) {
	args := []any{subject.AgencyID, subject.Live, subject.Ref, citizenID, now, by}
	err = tx.QueryRow(ctx, `
		WITH held AS (SELECT address FROM subject_contacts WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3 AND revoked_at IS NULL
				AND ($4::uuid IS NULL OR address IN (SELECT hash FROM citizen_addresses WHERE citizen_id = $4)) ORDER BY address FOR UPDATE),
			ended AS (UPDATE subject_contacts c SET revoked_at = $5, revoked_by = $6, mac = NULL FROM held
				WHERE c.agency_id = $1 AND c.livemode = $2 AND c.subject_ref = $3 AND c.address = held.address RETURNING c.linked_at)
		SELECT count(*) FILTER (WHERE linked_at IS NULL) FROM ended`, args...).Scan(&waiting)
	if err != nil {
		return 0, err
	}
	// Sweep has deleted the contact of an old link.
	_, err = tx.Exec(ctx, `
		INSERT INTO subject_contacts (agency_id, livemode, subject_ref, address, imported_at, linked_at, revoked_at, revoked_by)
		SELECT l.agency_id, l.livemode, l.subject_ref, a.hash, l.created_at, l.created_at, $5, $6 FROM citizen_links l JOIN citizen_addresses a ON a.citizen_id = l.citizen_id
		WHERE l.agency_id = $1 AND l.livemode = $2 AND l.subject_ref = $3 AND l.proof = 'contact' AND ($4::uuid IS NULL OR l.citizen_id = $4)
		ORDER BY a.hash ON CONFLICT DO NOTHING`, args...)
	return waiting, err
}

// linkContacts links the account of a proven address to the subjects for which an agency has
// verified that address in the last 90 days.
func (s *Store) linkContacts(ctx context.Context, tx pgx.Tx, citizenID string, address []byte, now time.Time) error {
	rows, _ := tx.Query(ctx, `SELECT agency_id::text, livemode, subject_ref, imported_at, mac FROM subject_contacts
		WHERE address = $1 AND imported_at > $2 AND linked_at IS NULL AND revoked_at IS NULL ORDER BY agency_id, livemode, subject_ref`, address, now.Add(-linksFor)) // the rows return its error
	type proof struct {
		subject Subject
		mac     []byte
	}
	var proofs []proof
	var subject Subject
	var importedAt time.Time
	var mac []byte
	_, err := pgx.ForEachRow(rows, []any{&subject.AgencyID, &subject.Live, &subject.Ref, &importedAt, &mac}, func() error {
		if s.believes(ctx, mac, "subject_contacts", "of agency "+subject.AgencyID, contactValues(subject, address, importedAt)) {
			proofs = append(proofs, proof{subject, mac})
		}
		return nil
	})
	for _, p := range proofs {
		if err == nil {
			err = s.linkContact(ctx, tx, citizenID, p.subject, address, p.mac, now)
		}
	}
	return err
}

// linkContact links an account by a contact that mac proves. It is proved no more then: whoever makes it look unused
// makes no second link of it.
func (s *Store) linkContact(ctx context.Context, tx pgx.Tx, citizenID string, subject Subject, address, mac []byte, now time.Time) error {
	if err := subject.lock(ctx, tx); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE subject_contacts SET linked_at = $5, mac = NULL
		WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3 AND address = $4 AND linked_at IS NULL AND revoked_at IS NULL AND mac = $6`,
		subject.AgencyID, subject.Live, subject.Ref, address, now, mac)
	if err != nil || tag.RowsAffected() == 0 { // the agency has revoked it meanwhile
		return err
	}
	_, _, err = s.link(ctx, tx, citizenID, subject, "contact", now)
	return err
}
