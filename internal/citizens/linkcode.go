package citizens

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// alphabet is Crockford's base32: without I, L, O and U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// LinkCode returns the code of ten characters that proves a subject in its present epoch, as
// an agency prints it.
func (s *Store) LinkCode(ctx context.Context, subject Subject) (string, error) {
	all, err := s.CodeEpoch(ctx)
	if err != nil {
		return "", err
	}
	epoch, err := s.epoch(ctx, s.cfg.Pool, subject)
	return s.linkCode(all, subject, epoch), err
}

// linkCode is eight characters of a MAC and two that find mistyped ones.
func (s *Store) linkCode(all CodeEpoch, subject Subject, epoch int) string {
	mac := s.linkCodes(all.label() + subject.AgencyID + "|" + strconv.FormatBool(subject.Live) + "|" + strconv.Itoa(epoch) + "|" + subject.Ref)
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

// LinkCodes returns the codes of subjects of an agency, in the order of their references. The
// error of a malformed reference is that of CheckSubjectRef.
func (s *Store) LinkCodes(ctx context.Context, agencyID string, live bool, refs []string) ([]string, error) {
	for _, ref := range refs {
		if err := CheckSubjectRef(ref); err != nil {
			return nil, err
		}
	}
	all, err := s.CodeEpoch(ctx)
	if err != nil {
		return nil, err
	}
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT subject_ref, epoch FROM subject_epochs WHERE agency_id = $1 AND livemode = $2 AND subject_ref = ANY($3)`, agencyID, live, refs) // the rows return its error
	epochs := map[string]int{}
	var ref string
	var epoch int
	if _, err := pgx.ForEachRow(rows, []any{&ref, &epoch}, func() error {
		epochs[ref] = epoch
		return nil
	}); err != nil {
		return nil, failed("making link codes", err)
	}
	codes := make([]string, len(refs))
	for i, ref := range refs {
		codes[i] = s.linkCode(all, Subject{agencyID, live, ref}, epochs[ref])
	}
	return codes, nil
}

// Renewal is the result of Renew and Revoke.
type Renewal struct {
	// Code is the new link code; empty after Revoke.
	Code string
	// Links counts the links that ended, and Contacts the verified contacts that ended before
	// anybody was linked by them.
	Links, Contacts int64
}

// Renew raises the epoch of a subject: its link codes, its links and its verified contacts
// end, and who asked for it is answered. It returns the new code.
func (s *Store) Renew(ctx context.Context, actor operation.Actor, subject Subject) (Renewal, error) {
	r, epoch, err := s.raise(ctx, actor, subject, "links.renew")
	if err == nil {
		var all CodeEpoch
		all, err = s.CodeEpoch(ctx)
		r.Code = s.linkCode(all, subject, epoch)
	}
	return r, failed("renewing a link code", err)
}

// Revoke does what Renew does, and tells no new code.
func (s *Store) Revoke(ctx context.Context, actor operation.Actor, subject Subject) (Renewal, error) {
	r, _, err := s.raise(ctx, actor, subject, "links.revoke")
	return r, failed("revoking links", err)
}

func (s *Store) raise(ctx context.Context, actor operation.Actor, subject Subject, action string) (r Renewal, epoch int, err error) {
	if err := CheckSubjectRef(subject.Ref); err != nil {
		return Renewal{}, 0, err
	}
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := subject.lock(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `
			INSERT INTO subject_epochs (agency_id, livemode, subject_ref, epoch) VALUES ($1, $2, $3, 1)
			ON CONFLICT (agency_id, livemode, subject_ref) DO UPDATE SET epoch = subject_epochs.epoch + 1 RETURNING epoch`,
			subject.AgencyID, subject.Live, subject.Ref).Scan(&epoch); err != nil {
			return err
		}
		now := s.cfg.Now().UTC()
		if r.Contacts, err = revokeContacts(ctx, tx, subject, nil, byOperator, now); err != nil {
			return err
		}
		for _, end := range []struct {
			table string
			count *int64
		}{{"citizen_links", &r.Links}, {"link_renewals", new(int64)}} {
			tag, err := tx.Exec(ctx, `DELETE FROM `+end.table+` WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3`, subject.AgencyID, subject.Live, subject.Ref)
			if err != nil {
				return err
			}
			*end.count = tag.RowsAffected()
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: action, Subject: subject.AgencyID, AgencyID: subject.AgencyID, Detail: map[string]any{
			"livemode": subject.Live, "subject": subject.Masked(), "epoch": epoch, "links": r.Links, "contacts": r.Contacts,
		}})
	})
	return r, epoch, err
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
