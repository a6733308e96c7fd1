package citizens

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/passkeys"
)

// Sweep deletes what no limit and no session needs any more, links that nobody has used for
// 24 months, and verified contacts of that age that were not revoked. It ends the reminders of
// accounts whose address was not proven for 90 days. It needs no keys.
func Sweep(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	now = now.UTC()
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM sign_in_codes WHERE sent_at < $1`, now.Add(-24*time.Hour))
	batch.Queue(`DELETE FROM sign_in_requests WHERE at < $1`, now.Add(-8*24*time.Hour))
	batch.Queue(`DELETE FROM sign_in_failures WHERE at < $1`, now.Add(-24*time.Hour))
	batch.Queue(`DELETE FROM known_browsers WHERE used_at <= $1`, now.Add(-KnownFor))
	batch.Queue(`DELETE FROM link_failures WHERE at < $1`, now.Add(-failuresFor))
	batch.Queue(`DELETE FROM citizen_sessions WHERE used_at <= $1 OR created_at <= $2`, now.Add(-SessionIdle), now.Add(-SessionLifetime))
	batch.Queue(`DELETE FROM citizen_links WHERE used_at < $1`, now.AddDate(0, -unusedMonths, 0))
	batch.Queue(`DELETE FROM subject_contacts WHERE imported_at < $1 AND revoked_at IS NULL`, now.AddDate(0, -contactMonths, 0))
	passkeys.Sweep(batch, now)
	batch.Queue(`DELETE FROM citizen_notices WHERE at < $1`, now.Add(-noticeLife))
	batch.Queue(endReminders, now.Add(-proveAgainAfter))
	batch.Queue(`DELETE FROM citizen_reminded WHERE at < $1`, now.AddDate(0, -remindedMonths, 0))
	return failed("deleting what citizens do not need any more", pool.SendBatch(ctx, batch).Close())
}

// State has what alerts watch, over all agencies and instances.
type State struct {
	// Guessed is the number of subjects with at least FailuresOfSubject wrong codes in the last
	// day.
	Guessed int
	// SMSStopped means that the limit of the whole service is reached: codes go by e-mail only.
	SMSStopped bool
	// MailStopped means that browsers that are not known get no codes by e-mail, because their
	// limit of the whole service is reached.
	MailStopped bool
	// OldestRenewal is the age of the oldest request of a holder for a new code, and
	// OldestNotice that of the oldest notice that is not sent; zero without one.
	OldestRenewal, OldestNotice time.Duration
}

// ReadState reads the State. smsPerHour and mailPerHour are those of the Config of the instances that
// send codes.
// It needs no keys.
func ReadState(ctx context.Context, pool *pgxpool.Pool, now time.Time, smsPerHour, mailPerHour int) (s State, err error) {
	now = now.UTC()
	var renewal, notice *time.Time
	err = pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT FROM link_failures WHERE at > $1 GROUP BY agency_id, livemode, subject_ref HAVING count(*) >= $2) f),
			(SELECT min(asked_at) FROM link_renewals), (SELECT min(at) FROM citizen_notices WHERE sent_at IS NULL)`, now.Add(-failuresFor), FailuresOfSubject).Scan(&s.Guessed, &renewal, &notice)
	var sent, most int
	if err == nil {
		sent, err = smsSent(ctx, pool, now)
	}
	if err == nil {
		most, err = smsLimit(ctx, pool, now, smsPerHour)
	}
	s.SMSStopped = err == nil && sent >= most
	if err == nil {
		s.MailStopped, err = mailStopped(ctx, pool, now, mailPerHour)
	}
	s.OldestRenewal, s.OldestNotice = age(renewal, now), age(notice, now)
	return s, failed("reading what citizens' alerts watch", err)
}

func age(of *time.Time, now time.Time) time.Duration {
	if of == nil {
		return 0
	}
	return max(0, now.Sub(*of))
}
