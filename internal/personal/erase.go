package personal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/operation"
)

// KeptAtMost is the greatest age of a data key of a session or a message: 30 days of the
// longest lifetime of a session, 30 days after its end, and a day for a last approval window
// and for clocks. Data keys of lines have a time of their own (LineKept).
const KeptAtMost = 61 * 24 * time.Hour

// Forget deletes the data keys of a session that was not created, or of a message that is done.
func (s *Store) Forget(ctx context.Context, sessionID string) error {
	if _, err := s.cfg.Pool.Exec(ctx, `DELETE FROM personal_keys WHERE session_id = $1`, sessionID); err != nil {
		return fmt.Errorf("deleting keys of personal data: %w", err)
	}
	return nil
}

// Adopt gives the data keys of a session that was not created to another session, which
// has its contact data now. The values stay sealed for the first one, see
// checkout.Session.ContactID.
func (s *Store) Adopt(ctx context.Context, from, to string) error {
	if _, err := s.cfg.Pool.Exec(ctx, adopt, from, to); err != nil {
		return fmt.Errorf("moving keys of personal data: %w", err)
	}
	return nil
}

const adopt = `UPDATE personal_keys SET session_id = $2 WHERE session_id = $1`

// Adopt adds the adoption of data keys to a transaction of the sessions' sink: whoever sent
// the command may have ended before it could do so. adopted maps the id of a session that
// was not created to the one that has its contact data.
func Adopt(batch *pgx.Batch, adopted map[string]string) {
	for _, from := range slices.Sorted(maps.Keys(adopted)) {
		batch.Queue(adopt, from, adopted[from])
	}
}

// Delete adds the deletion of the data keys of sessions, and of the messages about them, to a
// transaction of their sink.
func Delete(batch *pgx.Batch, sessionIDs []string) {
	if len(sessionIDs) > 0 {
		batch.Queue(`DELETE FROM personal_keys WHERE session_id = ANY($1)
			OR session_id IN (SELECT event_id FROM deliveries WHERE session_id = ANY($1) AND starts_with(event_id, '`+MessagePrefix+`'))`, sessionIDs)
	}
}

// Sweep deletes the data keys that are older than KeptAtMost: they belong to values whose
// session was never created, or to commands that were refused. It deletes those that have a
// time until which they are kept when that is over, also one that a restored database
// brings back.
func Sweep(ctx context.Context, pool *pgxpool.Pool, now time.Time) (deleted int64, err error) {
	tag, err := pool.Exec(ctx, `DELETE FROM personal_keys WHERE (keep_until IS NULL AND created_at < $1) OR keep_until < $2`, now.Add(-KeptAtMost), now)
	if err != nil {
		return 0, fmt.Errorf("deleting old keys of personal data: %w", err)
	}
	return tag.RowsAffected(), nil
}

// ErrLocked says that data keys do not open with the master keys of this process, so that a
// search is incomplete.
var ErrLocked = errors.New("keys of personal data do not open with these master keys")

// findAtOnce is the number of data keys in a query of Find.
const findAtOnce = 10_000

// Find returns the sessions with a phone number, as contact data or as payer, the messages
// to it and the lines that pay it, in the order of their ids. It opens every data key, because an index of phone numbers, hashed or not,
// would tell the numbers to whoever has the database.
//
// With ErrLocked it also returns what it found.
func (s *Store) Find(ctx context.Context, phone string) (sessionIDs []string, err error) {
	want := Canonical(phone)
	if want == "" {
		return nil, operation.Refuse("personal.phone_malformed", "phone", nil)
	}
	return s.find(ctx, want)
}

// find returns the ids whose data keys have a text.
func (s *Store) find(ctx context.Context, want string) (ids []string, err error) {
	found := map[string]bool{}
	locked := 0
	for after, n := (uuid.UUID{}), findAtOnce; n == findAtOnce; {
		n = 0
		rows, _ := s.cfg.Pool.Query(ctx, `SELECT id, session_id, sealed FROM personal_keys WHERE id > $1 ORDER BY id LIMIT $2`, after, findAtOnce) // the rows return its error
		var sessionID string
		var row []byte
		_, err := pgx.ForEachRow(rows, []any{&after, &sessionID, &row}, func() error {
			n++
			switch _, has, err := s.dataKey(after, row); {
			case err != nil:
				locked++
			case has == want:
				found[sessionID] = true
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("searching personal data: %w", err)
		}
	}
	ids = slices.Sorted(maps.Keys(found))
	if locked > 0 {
		return ids, fmt.Errorf("%w: %d", ErrLocked, locked)
	}
	return ids, nil
}

// Processor decides commands.
type Processor interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Request says who asks to erase and why.
type Request struct {
	Actor operation.Actor
	// At is the time of the service.
	At time.Time
	// By is what selected it: session, phone, line or account.
	By string
	// Reason is recorded, for example the number of the citizen's request. It holds no
	// personal data.
	Reason string
	// Forget deletes what else is known of an erased line, in the transaction of its erasure; nil for nothing.
	Forget func(ctx context.Context, tx pgx.Tx, lineID string) error
}

// Result is what Erase did with a session.
type Result string

// The results.
const (
	ResultErased  Result = "erased"
	ResultNothing Result = "nothing_left" // it was erased or archived before
	ResultOpen    Result = "open"         // it has not ended: its payment still needs the data
	ResultUnknown Result = "unknown"      // no such session, and no data of one
)

// createdWithin is the time in which a session is created after its data were sealed.
const createdWithin = time.Hour

// Erase erases the personal data of an ended session: the processor removes what its state
// and the read model show, then one transaction deletes the data keys and records who asked.
//
// It may be interrupted and repeated. After the processor's part, which is an event with
// the actor's name, the sink readmodel deletes the keys even if nobody repeats it.
//
// The id may be that of a message or of a line, which Find also returns: then it is its key
// that is deleted, and no processor is asked. processor may be nil if all ids are such.
func (s *Store) Erase(ctx context.Context, processor Processor, sessionID string, q Request) (Result, error) {
	if strings.HasPrefix(sessionID, MessagePrefix) {
		return s.deleteKeys(ctx, []string{sessionID}, q, nil, ResultNothing)
	}
	if strings.HasPrefix(sessionID, LinePrefix) {
		return s.eraseLine(ctx, sessionID, q)
	}
	a, err := processor.Ask(ctx, checkout.Command{At: q.At, SessionID: sessionID, Do: checkout.Erase{By: q.Actor.Name}})
	switch {
	case errors.Is(err, checkout.ErrMalformedID):
		a.Code = checkout.CodeSessionNotFound
	case err != nil:
		return "", fmt.Errorf("erasing a session: %w", err)
	}
	switch a.Code {
	case checkout.CodeOK, checkout.CodeSessionNotFound:
	case checkout.CodeSessionOpen:
		return ResultOpen, nil
	default:
		return "", fmt.Errorf("erasing a session: the processor answered %s", a.Code)
	}
	if a.Code != checkout.CodeOK {
		// The session of fresh data may be on its way to the processor.
		before := q.At.Add(-createdWithin)
		return s.deleteKeys(ctx, []string{sessionID}, q, &before, ResultUnknown)
	}
	without := ResultErased
	if a.Replayed {
		without = ResultNothing
	}
	return s.deleteKeys(ctx, []string{sessionID, a.Session.ContactID()}, q, nil, without) // the keys may not be adopted yet
}

// Erased reports whether Erase removed personal data of a session on request.
func (s *Store) Erased(ctx context.Context, sessionID string) (erased bool, err error) {
	err = s.cfg.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM audit WHERE subject = $1 AND action = $2 AND detail->>'result' = $3)`,
		sessionID, actionErase, string(ResultErased)).Scan(&erased)
	if err != nil {
		return false, fmt.Errorf("reading whether personal data was erased: %w", err)
	}
	return erased, nil
}

// actionErase is the action of an erasure in the audit table.
const actionErase = "personal.erase"

// deleteKeys deletes the data keys of the ids, those made before a time if it is not nil, and records who
// asked, for the first id. Without such a key the result is another one; if it is
// ResultUnknown, nothing is recorded.
func (s *Store) deleteKeys(ctx context.Context, ids []string, q Request, before *time.Time, without Result) (result Result, err error) {
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM personal_keys WHERE session_id = ANY($1) AND ($2::timestamptz IS NULL OR created_at < $2)`, ids, before)
		if err != nil {
			return fmt.Errorf("deleting keys of personal data: %w", err)
		}
		result = ResultErased
		if tag.RowsAffected() == 0 {
			result = without
		}
		if result == ResultUnknown {
			return nil
		}
		return recordErasure(ctx, tx, ids[0], q, result)
	})
	if err != nil {
		return "", err
	}
	return result, nil
}

// recordErasure records who asked to erase.
func recordErasure(ctx context.Context, tx pgx.Tx, id string, q Request, result Result) error {
	detail := map[string]any{"by": q.By, "result": string(result)}
	if q.Reason != "" {
		detail["reason"] = q.Reason
	}
	return operation.Record(ctx, tx, q.Actor, q.At, operation.Entry{Action: actionErase, Subject: id, Detail: detail})
}
