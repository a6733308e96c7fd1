package citizens

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/operation"
	"quittance/internal/signed"
	"quittance/money"
)

// remindedMonths is after how many months Sweep forgets that an account was reminded of a due.
const remindedMonths = 24

// ErrNoAddress says that an account has no address of a kind that it has proven in the last 90
// days.
var ErrNoAddress = errors.New("the account has no proven address of this kind")

// ReminderChoice is whether an account gets reminders of dues, and where.
type ReminderChoice struct {
	// Kind is the kind of the address that gets them; empty: the account gets none.
	Kind contact.Kind
	// Addresses are the addresses that may be chosen, one of each kind.
	Addresses []contact.Address
}

// reminderAddresses returns the addresses of an account that reminders may go to: the one of each kind
// that was proven last, in the last 90 days, because numbers are recycled; phones first.
func (s *Store) reminderAddresses(ctx context.Context, db signed.Querier, citizenID string) ([]storedAddress, error) {
	all, err := s.stored(ctx, db, citizenID)
	var out []storedAddress
	for _, kind := range []contact.Kind{contact.Phone, contact.Email} {
		for _, a := range slices.Backward(all) { // the one proven last comes first
			if a.Kind == kind && s.recent(a) {
				out = append(out, a)
				break
			}
		}
	}
	return out, err
}

// Reminders returns what an account has chosen. The default is no reminders.
func (s *Store) Reminders(ctx context.Context, citizenID string) (c ReminderChoice, err error) {
	const what = "reading the reminders of a citizen"
	usable, err := s.reminderAddresses(ctx, s.cfg.Pool, citizenID)
	if err != nil {
		return c, failed(what, err)
	}
	var chosen uuid.UUID
	err = s.cfg.Pool.QueryRow(ctx, `SELECT address_id FROM citizen_reminders WHERE citizen_id = $1`, citizenID).Scan(&chosen)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return c, failed(what, err)
	}
	all, err := s.stored(ctx, s.cfg.Pool, citizenID)
	for _, a := range all {
		if a.id == chosen && s.recent(a) {
			c.Kind = a.Kind
		}
	}
	for _, a := range usable {
		c.Addresses = append(c.Addresses, a.Address)
	}
	return c, failed(what, err)
}

func (s *Store) openAddress(kind contact.Kind, id uuid.UUID, sealed []byte) (contact.Address, error) {
	text, err := s.cfg.Keys.Open(SealedAddresses.Label, sealed, id[:])
	if err != nil {
		return contact.Address{}, err
	}
	return contact.Parse(kind, string(text))
}

// ChooseReminders makes an account get reminders at its address of a kind, from now on; an empty
// kind ends them. A message that is on its way is still delivered. The error is ErrNoAddress if
// the account has no such address.
func (s *Store) ChooseReminders(ctx context.Context, citizenID string, kind contact.Kind) error {
	now := s.cfg.Now().UTC()
	return failed("choosing reminders", pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if kind == "" {
			tag, err := tx.Exec(ctx, `DELETE FROM citizen_reminders WHERE citizen_id = $1`, citizenID)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
		} else {
			usable, err := s.reminderAddresses(ctx, tx, citizenID)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(usable, func(a storedAddress) bool { return a.Kind == kind })
			if i < 0 {
				return ErrNoAddress
			}
			tag, err := tx.Exec(ctx, `
				INSERT INTO citizen_reminders AS r (citizen_id, address_id, chosen_at, next_at) VALUES ($1, $2, $3, $3)
				ON CONFLICT (citizen_id) DO UPDATE SET address_id = excluded.address_id, chosen_at = excluded.chosen_at, next_at = excluded.next_at WHERE r.address_id <> excluded.address_id`,
				citizenID, usable[i].id, now)
			if err != nil || tag.RowsAffected() == 0 { // it is chosen already
				return err
			}
		}
		// A message that may be on its way to the address of before is not made again for another.
		if _, err := tx.Exec(ctx, `UPDATE citizen_reminded SET sent_at = $2 WHERE citizen_id = $1 AND sent_at IS NULL`, citizenID, now); err != nil {
			return err
		}
		channel := string(kind)
		if channel == "" {
			channel = "none"
		}
		return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorPerson, Name: citizenID}, now, operation.Entry{Action: "citizen.reminders", Detail: map[string]any{"by": channel}})
	}))
}

// remindSoon makes an account with reminders be looked at now, because it has a new link.
func remindSoon(ctx context.Context, tx pgx.Tx, citizenID string, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE citizen_reminders SET next_at = $2 WHERE citizen_id = $1 AND next_at > $2`, citizenID, now)
	return err
}

// endReminders ends the reminders of accounts that have not signed in, or not proven the address,
// since $1: the number may be somebody else's.
const endReminders = `DELETE FROM citizen_reminders r USING citizens c, citizen_addresses a
	WHERE c.id = r.citizen_id AND a.id = r.address_id AND (c.signed_in_at <= $1 OR a.proven_at <= $1)`

// Reminded is an account whose dues an instance looks at. Its lease ends at Until.
type Reminded struct {
	CitizenID string
	Address   contact.Address
	Locale    money.Language
	// Links are those of the account in the mode that was asked for.
	Links []Link
	Until time.Time

	address uuid.UUID
}

// Remind takes the accounts with reminders that are to be looked at, those that wait longest
// first, at most the given number, with a lease. The caller ends each lease with Rest; after
// its end another call takes the account again. live is the mode of the links. With an error about
// accounts whose addresses do not open, it returns the others.
func (s *Store) Remind(ctx context.Context, live bool, most int, lease time.Duration) ([]Reminded, error) {
	now := s.cfg.Now().UTC()
	rows, _ := s.cfg.Pool.Query(ctx, `
		WITH due AS (SELECT r.citizen_id, r.address_id FROM citizen_reminders r JOIN citizens c ON c.id = r.citizen_id JOIN citizen_addresses a ON a.id = r.address_id
			WHERE r.next_at <= $1 AND c.signed_in_at > $4 AND a.proven_at > $4 ORDER BY r.next_at, r.citizen_id LIMIT $2 FOR UPDATE OF r SKIP LOCKED)
		UPDATE citizen_reminders r SET next_at = $3 FROM due JOIN citizens c ON c.id = due.citizen_id JOIN citizen_addresses a ON a.id = due.address_id
		WHERE r.citizen_id = due.citizen_id RETURNING r.citizen_id::text, c.locale, a.id, a.hash, a.kind, a.sealed, coalesce(a.mac_at, a.proven_at), a.mac, r.next_at`,
		now, most, now.Add(lease), now.Add(-proveAgainAfter)) // the rows return its error
	var out []Reminded
	var r Reminded
	var kind, locale string
	var hash, sealed, mac []byte
	var provenAt time.Time
	var closed []error
	_, err := pgx.ForEachRow(rows, []any{&r.CitizenID, &locale, &r.address, &hash, &kind, &sealed, &provenAt, &mac, &r.Until}, func() (err error) {
		// The proof is also of whose address it is: nobody has the reminders of another's account sent to the own one.
		if !s.believesAddress(ctx, mac, r.address, hash, r.CitizenID, kind, provenAt) || !s.recent(storedAddress{provenAt: provenAt}) {
			return nil
		}
		r.Locale = money.Language(locale)
		if r.Address, err = s.openAddress(contact.Kind(kind), r.address, sealed); err != nil {
			closed = append(closed, err)
			return nil
		}
		out = append(out, r)
		return nil
	})
	if err != nil {
		return nil, failed("taking reminders", err)
	}
	for i := range out {
		out[i].Links, err = s.linksOf(ctx, s.cfg.Pool, out[i].CitizenID, `livemode = $2 AND used_at >= $3`, live, now.AddDate(0, -unusedMonths, 0))
		if err != nil {
			return nil, failed("reading the links of a citizen", err)
		}
	}
	return out, failed("taking reminders", errors.Join(closed...))
}

// Rest ends the lease of an account, which is looked at again at next. It changes nothing when
// the lease is another's by now, or the choice has changed.
func (s *Store) Rest(ctx context.Context, r Reminded, next time.Time) error {
	_, err := s.cfg.Pool.Exec(ctx, `UPDATE citizen_reminders SET next_at = $3 WHERE citizen_id = $1 AND next_at = $2`, r.CitizenID, r.Until, next.UTC())
	return failed("ending the lease of a reminder", err)
}

// Stage says how long before its due date an account is reminded of a due, in days.
type Stage int

// The stages.
const (
	StageWeek Stage = 7
	StageDay  Stage = 1
)

// ReminderDue is a due of which an account may be reminded.
type ReminderDue struct {
	Link  Link
	Ref   string // erp_due_ref
	Stage Stage
	// From is when the stage begins, by the due date. A reminder of a day or more before that was of
	// an earlier due date, which the ERP has postponed. A date that moves by one day is not told
	// again: an ERP may move it every day.
	From time.Time
}

// postponed reports whether a reminder was of an earlier due date.
func (d ReminderDue) postponed(reminded time.Time) bool {
	return reminded.Before(d.From.Add(-24 * time.Hour))
}

// ReminderMessage is a message to make of dues.
type ReminderMessage struct {
	// Key makes the message unique. It is the same when the message is made again.
	Key string
	// Dues are the positions of its dues in the list that was given.
	Dues []int
}

// ErrLease says that the account is another instance's by now, or that it has no reminders any
// more.
var ErrLease = errors.New("the account is not this caller's any more")

// Write records that an account is reminded of dues, and returns the messages to make. A due and
// stage that has a message of this due date already is left out, now and for ever. The caller
// sends each message and then calls Wrote; a message of which Kafka may not have heard, because a
// process died in between, is returned again with its Key. Dues whose link has ended are left out.
// The error is ErrLease if the account is not the caller's any more.
func (s *Store) Write(ctx context.Context, r Reminded, dues []ReminderDue) (messages []ReminderMessage, err error) {
	if len(dues) == 0 {
		return nil, nil
	}
	macs := make([][]byte, len(dues))
	for i, d := range dues {
		h := s.reminded("due|" + d.Link.Subject.AgencyID + "|" + strconv.FormatBool(d.Link.Subject.Live) + "|" + d.Ref)
		macs[i] = h[:seenMAC]
	}
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		messages = nil
		var held bool
		err := tx.QueryRow(ctx, `SELECT true FROM citizen_reminders WHERE citizen_id = $1 AND next_at = $2 AND address_id = $3 FOR UPDATE`, r.CitizenID, r.Until, r.address).Scan(&held)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLease
		}
		if err != nil {
			return err
		}
		links, err := linksHeld(ctx, tx, r.CitizenID)
		if err != nil {
			return err
		}
		known, err := remindedOf(ctx, tx, r.CitizenID, macs)
		if err != nil {
			return err
		}
		var m ReminderMessage
		var fresh bool
		if messages, m, fresh = remindedNow(r.CitizenID, dues, macs, links, known); !fresh {
			return nil
		}
		messages = append(messages, m)
		for _, i := range m.Dues {
			if _, err := tx.Exec(ctx, `INSERT INTO citizen_reminded (citizen_id, due, stage, message, at) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (citizen_id, due, stage) DO UPDATE SET message = excluded.message, at = excluded.at, sent_at = NULL`,
				r.CitizenID, macs[i], int(dues[i].Stage), m.Key, s.cfg.Now().UTC()); err != nil {
				return err
			}
		}
		return nil
	})
	return messages, failed("recording reminders", err)
}

// remindedNow returns the messages that were recorded and of which Kafka may not have heard, and the
// one of the dues that have no message of this due date yet; fresh is false if there are no such dues.
func remindedNow(citizenID string, dues []ReminderDue, macs [][]byte, links map[string]bool, known map[remindedKey]remindedRow) (unsent []ReminderMessage, m ReminderMessage, fresh bool) {
	sum := sha256.New()
	sum.Write([]byte(citizenID))
	for i, d := range dues {
		key := remindedKey{string(macs[i]), d.Stage}
		if !links[d.Link.ID] {
			continue
		}
		row, is := known[key]
		switch {
		case !is || d.postponed(row.at):
			known[key] = remindedRow{sent: true, at: d.From} // once in a list
			m.Dues = append(m.Dues, i)
			sum.Write(macs[i])
			sum.Write([]byte(strconv.Itoa(int(d.Stage))))
			sum.Write([]byte(d.From.UTC().Format(time.RFC3339)))
		case row.sent:
		default:
			at := slices.IndexFunc(unsent, func(m ReminderMessage) bool { return m.Key == row.message })
			if at < 0 {
				at, unsent = len(unsent), append(unsent, ReminderMessage{Key: row.message})
			}
			unsent[at].Dues = append(unsent[at].Dues, i)
		}
	}
	m.Key = hex.EncodeToString(sum.Sum(nil)[:16])
	return unsent, m, len(m.Dues) > 0
}

// linksHeld returns the ids of the links of an account.
func linksHeld(ctx context.Context, tx pgx.Tx, citizenID string) (map[string]bool, error) {
	rows, _ := tx.Query(ctx, `SELECT id::text FROM citizen_links WHERE citizen_id = $1`, citizenID) // the rows return its error
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	held := map[string]bool{}
	for _, id := range ids {
		held[id] = true
	}
	return held, err
}

type remindedKey struct {
	due   string // MAC
	stage Stage
}

type remindedRow struct {
	message string
	sent    bool
	at      time.Time
}

func remindedOf(ctx context.Context, tx pgx.Tx, citizenID string, macs [][]byte) (map[remindedKey]remindedRow, error) {
	rows, _ := tx.Query(ctx, `SELECT due, stage, message, sent_at IS NOT NULL, at FROM citizen_reminded WHERE citizen_id = $1 AND due = ANY($2)`, citizenID, macs) // the rows return its error
	out := map[remindedKey]remindedRow{}
	var due []byte
	var stage int
	var row remindedRow
	_, err := pgx.ForEachRow(rows, []any{&due, &stage, &row.message, &row.sent, &row.at}, func() error {
		out[remindedKey{string(due), Stage(stage)}] = row
		return nil
	})
	return out, err
}

// Wrote records that Kafka has a message of Write.
func (s *Store) Wrote(ctx context.Context, r Reminded, key string) error {
	_, err := s.cfg.Pool.Exec(ctx, `UPDATE citizen_reminded SET sent_at = $3 WHERE citizen_id = $1 AND message = $2 AND sent_at IS NULL`, r.CitizenID, key, s.cfg.Now().UTC())
	return failed("recording that reminders were sent", err)
}

// AskPace reserves a question about reminders to an agency's ERP, so that all instances together
// ask it at most once in every gap. It returns the time to wait before asking. ok is false, and
// nothing is reserved, if that is longer than most. The clock is that of Postgres.
func (s *Store) AskPace(ctx context.Context, agencyID string, gap, most time.Duration) (wait time.Duration, ok bool, err error) {
	var seconds float64
	err = s.cfg.Pool.QueryRow(ctx, `
		INSERT INTO reminder_pace AS p (agency_id, next_at) VALUES ($1, clock_timestamp() + $2::interval)
		ON CONFLICT (agency_id) DO UPDATE SET next_at = greatest(p.next_at, clock_timestamp()) + $2::interval WHERE p.next_at <= clock_timestamp() + $3::interval
		RETURNING extract(epoch FROM next_at - $2::interval - clock_timestamp())::float8`, agencyID, gap, most).Scan(&seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return max(0, time.Duration(seconds*float64(time.Second))), err == nil, failed("pacing questions about reminders", err)
}

// RemindersWait returns the age of the oldest account with reminders that was to be looked at and
// was not; zero without one.
func (s *Store) RemindersWait(ctx context.Context) (time.Duration, error) {
	now := s.cfg.Now().UTC()
	var oldest *time.Time
	err := s.cfg.Pool.QueryRow(ctx, `SELECT min(next_at) FROM citizen_reminders WHERE next_at <= $1`, now).Scan(&oldest)
	return age(oldest, now), failed("reading how long reminders wait", err)
}
