package citizens

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/operation"
)

// Subject is who owes dues to an agency, by the agency's own reference, in a mode.
type Subject struct {
	AgencyID string
	Live     bool
	Ref      string
}

// MaxSubjectRef is the longest reference of a subject, in bytes.
const MaxSubjectRef = 200

func (q Subject) hash() []byte {
	sum := sha256.Sum256([]byte(q.AgencyID + "|" + strconv.FormatBool(q.Live) + "|" + q.Ref))
	return sum[:]
}

// unusedMonths is after how many months without use a link ends.
const unusedMonths = 24

// The failures of proofs: more are refused for an account, and alert for a subject.
const (
	failuresOfAccount = 5
	// FailuresOfSubject is how many wrong codes of a subject in a day are an alert. They never
	// refuse the right one, or anybody could lock out the owner.
	FailuresOfSubject = 100
)

// alphabet is Crockford's base32: without I, L, O and U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// LinkCode returns the code of ten characters that proves a subject in its present epoch, as
// an agency prints it.
func (s *Store) LinkCode(ctx context.Context, subject Subject) (string, error) {
	epoch, err := s.epoch(ctx, s.cfg.Pool, subject)
	return s.linkCode(subject, epoch), err
}

// linkCode is eight characters of a MAC and two that find mistyped ones.
func (s *Store) linkCode(subject Subject, epoch int) string {
	mac := s.linkCodes(subject.AgencyID + "|" + strconv.FormatBool(subject.Live) + "|" + strconv.Itoa(epoch) + "|" + subject.Ref)
	out := make([]byte, 8)
	for i := range out {
		out[i] = alphabet[mac[i]&31]
	}
	sum := checkOf(out)
	return string(append(out, alphabet[sum>>5], alphabet[sum&31]))
}

// checkOf is a weighted sum of the characters modulo the largest prime below 32². It finds
// every single wrong character and every two that changed places.
func checkOf(chars []byte) int {
	sum := 0
	for i, c := range chars {
		sum += (i + 2) * (strings.IndexByte(alphabet, c) + 1)
	}
	return sum * 37 % 1021
}

// typed returns a code as it is printed, from how people write it: any case, spaces and
// hyphens, O for 0, I and L for 1. ok is false for a code that was mistyped.
func typed(code string) (string, bool) {
	var out []byte
	for _, c := range strings.ToUpper(code) {
		switch c {
		case ' ', '-', '\u00a0', '\u202f':
			continue
		case 'O':
			c = '0'
		case 'I', 'L':
			c = '1'
		}
		if c > 127 || !strings.ContainsRune(alphabet, c) {
			return "", false
		}
		out = append(out, byte(c))
	}
	if len(out) != 10 {
		return "", false
	}
	sum := checkOf(out[:8])
	return string(out), out[8] == alphabet[sum>>5] && out[9] == alphabet[sum&31]
}

// Link is a subject that an account sees.
type Link struct {
	ID      string
	Subject Subject
	// Proof is code or contact.
	Proof             string
	CreatedAt, UsedAt time.Time
}

// The refusals of Prove.
var (
	// ErrLinkRefused says that the reference and the code do not belong together. It is the
	// same whether the reference exists or not.
	ErrLinkRefused = errors.New("the reference and the code do not belong together")
	// ErrLinkLimit says that the account has made too many wrong proofs today.
	ErrLinkLimit = errors.New("too many wrong codes today")
)

// Proof is the result of Prove.
type Proof struct {
	Link Link
	// New is false if the account had the link already.
	New bool
	// Failures counts the wrong codes of the subject in the last day, also with an error.
	Failures int
}

// Prove links an account to a subject whose link code it knows.
func (s *Store) Prove(ctx context.Context, citizenID string, subject Subject, code string) (p Proof, err error) {
	now := s.cfg.Now().UTC()
	refused := error(nil)
	err = s.locked(ctx, "linking a citizen", [][]byte{[]byte("links|" + citizenID)}, func(tx pgx.Tx) error {
		var own int
		err := tx.QueryRow(ctx, `
			SELECT (SELECT count(*) FROM link_failures WHERE citizen_id = $1 AND at > $3), (SELECT count(*) FROM link_failures WHERE subject = $2 AND at > $3)`,
			citizenID, subject.hash(), now.Add(-24*time.Hour)).Scan(&own, &p.Failures)
		if err != nil {
			return err
		}
		if own >= failuresOfAccount {
			refused = ErrLinkLimit
			return nil
		}
		epoch, err := s.epoch(ctx, tx, subject)
		if err != nil {
			return err
		}
		if given, ok := typed(code); !ok || subtle.ConstantTimeCompare([]byte(given), []byte(s.linkCode(subject, epoch))) != 1 {
			refused = ErrLinkRefused
			p.Failures++
			_, err := tx.Exec(ctx, `INSERT INTO link_failures (citizen_id, subject, at) VALUES ($1, $2, $3)`, citizenID, subject.hash(), now)
			return err
		}
		p.Link, p.New, err = link(ctx, tx, citizenID, subject, "code", now)
		return err
	})
	if err == nil {
		err = refused
	}
	return p, err
}

// link makes a link, or returns the one that there is.
func link(ctx context.Context, tx pgx.Tx, citizenID string, subject Subject, proof string, now time.Time) (l Link, made bool, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Link{}, false, err
	}
	l = Link{Subject: subject}
	err = tx.QueryRow(ctx, `
		INSERT INTO citizen_links (id, citizen_id, agency_id, livemode, subject_ref, proof, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
		ON CONFLICT (citizen_id, agency_id, livemode, subject_ref) DO UPDATE SET used_at = excluded.used_at
		RETURNING id, proof, created_at, used_at`, id, citizenID, subject.AgencyID, subject.Live, subject.Ref, proof, now).Scan(&l.ID, &l.Proof, &l.CreatedAt, &l.UsedAt)
	return l, l.ID == id.String(), err
}

// linkContacts links the account of a proven address to the subjects for which an agency has
// verified that address.
func (s *Store) linkContacts(ctx context.Context, tx pgx.Tx, citizenID string, address []byte, now time.Time) error {
	rows, _ := tx.Query(ctx, `SELECT agency_id::text, livemode, subject_ref FROM subject_contacts WHERE address = $1 ORDER BY agency_id, livemode, subject_ref`, address) // the rows return its error
	subjects, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Subject])
	for _, subject := range subjects {
		if err == nil {
			_, _, err = link(ctx, tx, citizenID, subject, "contact", now)
		}
	}
	return err
}

// Links returns the links of an account, the oldest first. Using says that the account looks
// at them, which keeps them from ending.
func (s *Store) Links(ctx context.Context, citizenID string) ([]Link, error) {
	now := s.cfg.Now().UTC()
	rows, _ := s.cfg.Pool.Query(ctx, `
		WITH used AS (UPDATE citizen_links SET used_at = $2 WHERE citizen_id = $1 AND used_at < $3)
		SELECT id, agency_id::text, livemode, subject_ref, proof, created_at, used_at FROM citizen_links
		WHERE citizen_id = $1 AND used_at >= $4 ORDER BY created_at, id`, citizenID, now, now.Add(-24*time.Hour), now.AddDate(0, -unusedMonths, 0)) // the rows return its error
	links, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Link, err error) {
		return l, row.Scan(&l.ID, &l.Subject.AgencyID, &l.Subject.Live, &l.Subject.Ref, &l.Proof, &l.CreatedAt, &l.UsedAt)
	})
	return links, failed("reading the links of a citizen", err)
}

// Unlink ends a link of an account. ok is false if the account has no such link.
func (s *Store) Unlink(ctx context.Context, citizenID, linkID string) (ok bool, err error) {
	if _, err := uuid.Parse(linkID); err != nil {
		return false, nil //nolint:nilerr // no such link
	}
	tag, err := s.cfg.Pool.Exec(ctx, `DELETE FROM citizen_links WHERE id = $1 AND citizen_id = $2`, linkID, citizenID)
	return tag.RowsAffected() > 0, failed("ending a link", err)
}

// Holders returns the accounts that are linked to a subject, the oldest link first.
func (s *Store) Holders(ctx context.Context, subject Subject) ([]string, error) {
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT citizen_id::text FROM citizen_links WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3 ORDER BY created_at, id`,
		subject.AgencyID, subject.Live, subject.Ref) // the rows return its error
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, failed("reading the holders of a reference", err)
}

// Renew raises the epoch of a subject: its link codes and its links end. It returns the new
// code and the number of links that ended.
func (s *Store) Renew(ctx context.Context, actor operation.Actor, subject Subject) (code string, ended int64, err error) {
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		var epoch int
		if err := tx.QueryRow(ctx, `
			INSERT INTO subject_epochs (agency_id, livemode, subject_ref, epoch) VALUES ($1, $2, $3, 1)
			ON CONFLICT (agency_id, livemode, subject_ref) DO UPDATE SET epoch = subject_epochs.epoch + 1 RETURNING epoch`,
			subject.AgencyID, subject.Live, subject.Ref).Scan(&epoch); err != nil {
			return err
		}
		code = s.linkCode(subject, epoch)
		tag, err := tx.Exec(ctx, `DELETE FROM citizen_links WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3`, subject.AgencyID, subject.Live, subject.Ref)
		if err != nil {
			return err
		}
		ended = tag.RowsAffected()
		return operation.Record(ctx, tx, actor, s.cfg.Now(), operation.Entry{
			Action: "links.renew", Subject: subject.AgencyID, Detail: map[string]any{"livemode": subject.Live, "epoch": epoch, "ended": ended},
		})
	})
	return code, ended, failed("renewing a link code", err)
}

// Contact is an address that an agency has verified for a subject.
type Contact struct {
	SubjectRef string
	Address    contact.Address
}

// Import stores contacts that an agency has verified. Who signs in with one is linked to its
// subject. It may be repeated.
func (s *Store) Import(ctx context.Context, actor operation.Actor, agencyID string, live bool, contacts []Contact) error {
	refs, hashes := make([]string, len(contacts)), make([][]byte, len(contacts))
	for i, c := range contacts {
		refs[i], hashes[i] = c.SubjectRef, s.hash(c.Address)
	}
	return failed("importing verified contacts", pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO subject_contacts (agency_id, livemode, subject_ref, address)
			SELECT $1, $2, * FROM unnest($3::text[], $4::bytea[]) ON CONFLICT DO NOTHING`, agencyID, live, refs, hashes); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, s.cfg.Now(), operation.Entry{
			Action: "links.import", Subject: agencyID, Detail: map[string]any{"livemode": live, "contacts": len(contacts)},
		})
	}))
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// epoch returns how often the codes of a subject were renewed.
func (s *Store) epoch(ctx context.Context, db querier, subject Subject) (epoch int, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT epoch FROM subject_epochs WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3), 0)`,
		subject.AgencyID, subject.Live, subject.Ref).Scan(&epoch)
	return epoch, err
}
