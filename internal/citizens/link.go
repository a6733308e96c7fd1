package citizens

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/signed"
)

// unusedMonths is after how many months without use a link ends.
const unusedMonths = 24

// The failures of proofs: more are refused for an account, and alert for a subject.
const (
	failuresOfAccount = 5
	failuresFor       = 24 * time.Hour
	// FailuresOfSubject is how many wrong codes of a subject in a day are an alert. They never
	// refuse the right one, or anybody could lock out the owner.
	FailuresOfSubject = 100
)

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

// Prove links an account to a subject whose link code it knows. People type references in any
// case: the reference is tried as it is and in upper case, and what the code proves is linked.
// Both together are one guess. The other holders of the subject are told of a new link.
func (s *Store) Prove(ctx context.Context, citizenID string, subject Subject, code string) (p Proof, err error) {
	now := s.cfg.Now().UTC()
	if CheckSubjectRef(subject.Ref) != nil {
		return Proof{}, ErrLinkRefused
	}
	tried := []Subject{subject}
	if upper := (Subject{subject.AgencyID, subject.Live, strings.ToUpper(subject.Ref)}); upper != subject && CheckSubjectRef(upper.Ref) == nil {
		tried = append(tried, upper)
	}
	// Wrong codes are counted for the last of them, so that a guess in another case counts for
	// the same subject.
	counted := tried[len(tried)-1]
	refused := error(nil)
	err = s.locked(ctx, "linking a citizen", [][]byte{[]byte("links|" + citizenID)}, func(tx pgx.Tx) error {
		for _, t := range tried {
			if err := t.lock(ctx, tx); err != nil {
				return err
			}
		}
		var own int
		err := tx.QueryRow(ctx, `
			SELECT (SELECT count(*) FROM link_failures WHERE citizen_id = $1 AND at > $5),
				(SELECT count(*) FROM link_failures WHERE agency_id = $2 AND livemode = $3 AND subject_ref = $4 AND at > $5)`,
			citizenID, counted.AgencyID, counted.Live, counted.Ref, now.Add(-failuresFor)).Scan(&own, &p.Failures)
		if err != nil {
			return err
		}
		if own >= failuresOfAccount {
			refused = ErrLinkLimit
			return nil
		}
		proven, err := s.proven(ctx, tx, tried, code)
		if err != nil {
			return err
		}
		if proven == nil {
			refused = ErrLinkRefused
			p.Failures++
			_, err := tx.Exec(ctx, `INSERT INTO link_failures (citizen_id, agency_id, livemode, subject_ref, at) VALUES ($1, $2, $3, $4, $5)`,
				citizenID, counted.AgencyID, counted.Live, counted.Ref, now)
			return err
		}
		p.Link, p.New, err = s.link(ctx, tx, citizenID, *proven, "code", now)
		return err
	})
	if err == nil {
		err = refused
	}
	return p, err
}

// proven returns the first of the subjects that the code proves, nil for none. It looks at each,
// so that its time does not tell which of them exists.
func (s *Store) proven(ctx context.Context, tx pgx.Tx, tried []Subject, code string) (found *Subject, err error) {
	given, ok := typed(code)
	accepted, err := s.codeEpochs(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, subject := range tried {
		epoch, err := s.epoch(ctx, tx, subject)
		if err != nil {
			return nil, err
		}
		for _, all := range accepted {
			same := subtle.ConstantTimeCompare([]byte(given), []byte(s.linkCode(all, subject, epoch))) == 1
			if ok && same && found == nil {
				found = &subject
			}
		}
	}
	return found, nil
}

// link makes a link and tells the other holders, or returns the link that there is. The
// caller has locked the subject. A link that somebody else has written is made anew.
func (s *Store) link(ctx context.Context, tx pgx.Tx, citizenID string, subject Subject, proof string, now time.Time) (l Link, made bool, err error) {
	held, err := s.linksOf(ctx, tx, citizenID, `agency_id = $2 AND livemode = $3 AND subject_ref = $4`, subject.AgencyID, subject.Live, subject.Ref)
	if err != nil {
		return Link{}, false, err
	}
	if len(held) > 0 {
		l = held[0]
		l.UsedAt = now
		_, err := tx.Exec(ctx, `UPDATE citizen_links SET used_at = $2 WHERE id = $1`, l.ID, now)
		return l, false, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Link{}, false, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM citizen_links WHERE citizen_id = $1 AND agency_id = $2 AND livemode = $3 AND subject_ref = $4`,
		citizenID, subject.AgencyID, subject.Live, subject.Ref); err != nil { // one that is not believed
		return Link{}, false, err
	}
	l = Link{ID: id.String(), Subject: subject, Proof: proof, CreatedAt: now, UsedAt: now}
	if _, err := tx.Exec(ctx, `INSERT INTO citizen_links (id, citizen_id, agency_id, livemode, subject_ref, proof, created_at, used_at, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)`,
		id, citizenID, subject.AgencyID, subject.Live, subject.Ref, proof, now, signed.MAC(s.macs, "citizen_links", linkValues(citizenID, l)...)); err != nil {
		return Link{}, false, err
	}
	if err := noticeNewLink(ctx, tx, citizenID, subject, now); err != nil {
		return Link{}, false, err
	}
	return l, true, remindSoon(ctx, tx, citizenID, now)
}

// Links returns the links of an account, the oldest first. Using says that the account looks
// at them, which keeps them from ending.
func (s *Store) Links(ctx context.Context, citizenID string) (links []Link, err error) {
	now := s.cfg.Now().UTC()
	held := now.AddDate(0, -unusedMonths, 0)
	if links, err = s.linksOf(ctx, s.cfg.Pool, citizenID, `used_at >= $2`, held); err == nil {
		_, err = s.cfg.Pool.Exec(ctx, `UPDATE citizen_links SET used_at = $2 WHERE citizen_id = $1 AND used_at < $3 AND used_at >= $4`, citizenID, now, now.Add(-24*time.Hour), held)
	}
	return links, failed("reading the links of a citizen", err)
}

// linksOf returns the links of an account that are believed, the oldest first. where chooses among them; its arguments
// begin at $2.
func (s *Store) linksOf(ctx context.Context, db signed.Querier, citizenID, where string, args ...any) (links []Link, err error) {
	rows, _ := db.Query(ctx, `SELECT id::text, agency_id::text, livemode, subject_ref, proof, created_at, used_at, mac FROM citizen_links
		WHERE citizen_id = $1 AND `+where+` ORDER BY created_at, id`, append([]any{citizenID}, args...)...) // the rows return its error
	var l Link
	var mac []byte
	_, err = pgx.ForEachRow(rows, []any{&l.ID, &l.Subject.AgencyID, &l.Subject.Live, &l.Subject.Ref, &l.Proof, &l.CreatedAt, &l.UsedAt, &mac}, func() error {
		if s.believesLink(ctx, mac, citizenID, l) {
			links = append(links, l)
		}
		return nil
	})
	return links, err
}

// believesLink reports whether one of our roles has linked the account.
func (s *Store) believesLink(ctx context.Context, mac []byte, citizenID string, l Link) bool {
	return s.believes(ctx, mac, "citizen_links", l.ID+" of account "+citizenID, linkValues(citizenID, l))
}

// Unlink ends a link of an account. The contacts of the account that an agency has verified for
// the subject do not link any more. ok is false if the account has no such link.
func (s *Store) Unlink(ctx context.Context, citizenID, linkID string) (ok bool, err error) {
	subject, ok, err := s.subjectOf(ctx, citizenID, linkID)
	if err != nil || !ok {
		return false, err
	}
	now := s.cfg.Now().UTC()
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := subject.lock(ctx, tx); err != nil {
			return err
		}
		contacts, err := revokeContacts(ctx, tx, subject, &citizenID, byHolder, now)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM citizen_links WHERE id = $1 AND citizen_id = $2`, linkID, citizenID)
		if ok = tag.RowsAffected() > 0; err != nil || !ok {
			return err
		}
		return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorPerson, Name: citizenID}, now, operation.Entry{
			Action: "links.remove", Subject: subject.AgencyID, AgencyID: subject.AgencyID, Detail: map[string]any{"livemode": subject.Live, "subject": subject.Masked(), "contacts": contacts},
		})
	})
	return ok, failed("ending a link", err)
}
