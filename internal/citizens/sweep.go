package citizens

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Sweep deletes what no limit and no session needs any more, links that nobody has used for
// 24 months, and verified contacts of that age. It needs no keys.
func Sweep(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	now = now.UTC()
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM sign_in_codes WHERE sent_at < $1`, now.Add(-24*time.Hour))
	batch.Queue(`DELETE FROM sign_in_requests WHERE at < $1`, now.Add(-8*24*time.Hour))
	batch.Queue(`DELETE FROM sign_in_failures WHERE at < $1`, now.Add(-24*time.Hour))
	batch.Queue(`DELETE FROM link_failures WHERE at < $1`, now.Add(-failuresFor))
	batch.Queue(`DELETE FROM citizen_sessions WHERE used_at <= $1 OR created_at <= $2`, now.Add(-SessionIdle), now.Add(-SessionLifetime))
	batch.Queue(`DELETE FROM citizen_links WHERE used_at < $1`, now.AddDate(0, -unusedMonths, 0))
	batch.Queue(`DELETE FROM subject_contacts WHERE imported_at < $1`, now.AddDate(0, -contactMonths, 0))
	batch.Queue(`DELETE FROM citizen_notices WHERE at < $1`, now.Add(-noticeLife))
	return failed("deleting what citizens do not need any more", pool.SendBatch(ctx, batch).Close())
}

// State counts what alerts watch.
type State struct {
	// Guessed is the number of subjects with at least FailuresOfSubject wrong codes in the last
	// day.
	Guessed int
	// Asked is the number of subjects whose holders ask for a new code.
	Asked int
	// OldestNotice is the age of the oldest notice that waits; zero without one.
	OldestNotice time.Duration
}

// ReadState counts over all agencies and instances. It needs no keys.
func ReadState(ctx context.Context, pool *pgxpool.Pool, now time.Time) (s State, err error) {
	now = now.UTC()
	var oldest *time.Time
	err = pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT FROM link_failures WHERE at > $1 GROUP BY agency_id, livemode, subject_ref HAVING count(*) >= $2) f),
			(SELECT count(*) FROM (SELECT DISTINCT agency_id, livemode, subject_ref FROM link_renewals) r),
			(SELECT min(at) FROM citizen_notices)`, now.Add(-failuresFor), FailuresOfSubject).Scan(&s.Guessed, &s.Asked, &oldest)
	if oldest != nil {
		s.OldestNotice = max(0, now.Sub(*oldest))
	}
	return s, failed("counting what citizens' alerts watch", err)
}
