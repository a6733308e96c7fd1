package citizens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/money"
)

// NoticeKind says what a Notice is about.
type NoticeKind string

// The kinds.
const (
	NoticeNewLink    NoticeKind = "new_link"    // another account was linked to a subject of this one
	NoticeNewPasskey NoticeKind = "new_passkey" // the account has a new passkey
	// NoticePasskeyRemoved says that a passkey of the account was removed.
	NoticePasskeyRemoved NoticeKind = "passkey_removed"
)

// Notice is what an account is told by message, at all its addresses.
type Notice struct {
	// ID makes its messages unique.
	ID   string
	Kind NoticeKind
	At   time.Time
	// Addresses are those of the account to which messages may go; see Store.Addresses.
	Addresses []contact.Address
	Locale    money.Language
	// AgencyID, Live and the masked Subject say of a NoticeNewLink what it is about.
	AgencyID string
	Live     bool
	Subject  string
}

// noticeLife is after how long a notice that could not be sent is given up.
const noticeLife = 7 * 24 * time.Hour

// noticesADay is the largest number of notices that an account is told in a day. Each costs the
// agency an SMS.
const noticesADay = 10

// noticeNewLink records that the other holders of a subject are to be told of a new link. It
// commits with the link, so that no death of a process loses it. Who ends a link and makes it
// again is told of once a day.
func noticeNewLink(ctx context.Context, tx pgx.Tx, citizenID string, subject Subject, now time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO citizen_notices (id, citizen_id, kind, agency_id, livemode, subject, at, cause)
		SELECT gen_random_uuid(), citizen_id, $6, agency_id, livemode, $5, $7, $9 FROM citizen_links l
		WHERE agency_id = $1 AND livemode = $2 AND subject_ref = $3 AND citizen_id <> $4 AND used_at >= $8
			AND NOT EXISTS (SELECT FROM citizen_notices n WHERE n.citizen_id = l.citizen_id AND n.cause = $9 AND n.at > $10)
			AND (SELECT count(*) FROM citizen_notices n WHERE n.citizen_id = l.citizen_id AND n.at > $10) < $11`,
		subject.AgencyID, subject.Live, subject.Ref, citizenID, subject.Masked(), string(NoticeNewLink), now, now.AddDate(0, -unusedMonths, 0),
		fmt.Sprintf("%s|%s|%t|%s", citizenID, subject.AgencyID, subject.Live, subject.Ref), now.Add(-24*time.Hour), noticesADay)
	return err
}

// notice records that an account is to be told of what happened to it. It commits with its
// cause.
func notice(ctx context.Context, tx pgx.Tx, citizenID string, kind NoticeKind, now time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO citizen_notices (id, citizen_id, kind, at) VALUES (gen_random_uuid(), $1, $2, $3)`, citizenID, string(kind), now)
	return err
}

// Language returns the language of an account; French for one that is gone.
func (s *Store) Language(ctx context.Context, citizenID string) (money.Language, error) {
	var locale string
	err := s.cfg.Pool.QueryRow(ctx, `SELECT locale FROM citizens WHERE id = $1`, citizenID).Scan(&locale)
	if errors.Is(err, pgx.ErrNoRows) {
		return money.French, nil
	}
	return money.Language(locale), failed("reading a citizen's language", err)
}

// maxUnsent is the number of notices that cannot be sent after which Tell gives up for now.
const maxUnsent = 5

// Tell takes the notices that wait, gives each to send, and marks it as sent when send returns
// nil.
// Several instances may call it at once. A notice may be sent again after an error or a death
// of the process, with the same ID. One that cannot be sent does not hold up the others. Tell
// returns the number of notices that were sent, and the errors of those that were not.
func (s *Store) Tell(ctx context.Context, send func(context.Context, Notice) error) (sent int, err error) {
	var errs []error
	for last := (uuid.UUID{}); len(errs) < maxUnsent; {
		found, err := s.tellNext(ctx, &last, send)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !found:
			return sent, failed("telling citizens", errors.Join(errs...))
		default:
			sent++
		}
		if ctx.Err() != nil {
			return sent, failed("telling citizens", ctx.Err())
		}
	}
	return sent, failed("telling citizens", errors.Join(errs...))
}

// tellNext sends the first notice after the one with the id last, and moves last.
func (s *Store) tellNext(ctx context.Context, last *uuid.UUID, send func(context.Context, Notice) error) (found bool, err error) {
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		var n Notice
		var id uuid.UUID
		var citizenID, kind, locale string
		var agencyID *string
		err := tx.QueryRow(ctx, `
			SELECT n.id, n.citizen_id::text, n.kind, n.agency_id::text, n.livemode, n.subject, n.at, c.locale
			FROM citizen_notices n JOIN citizens c ON c.id = n.citizen_id WHERE n.sent_at IS NULL AND n.id > $1 ORDER BY n.id LIMIT 1 FOR UPDATE OF n SKIP LOCKED`, *last).
			Scan(&id, &citizenID, &kind, &agencyID, &n.Live, &n.Subject, &n.At, &locale)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		found, *last, n.ID = true, id, id.String()
		n.Kind, n.Locale, n.At = NoticeKind(kind), money.Language(locale), n.At.UTC()
		if agencyID != nil {
			n.AgencyID = *agencyID
		}
		if n.Addresses, err = s.Addresses(ctx, citizenID); err != nil {
			return err
		}
		if err := send(ctx, n); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE citizen_notices SET sent_at = $2 WHERE id = $1`, id, s.cfg.Now().UTC())
		return err
	})
	return found, err
}
