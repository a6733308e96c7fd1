package citizens

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore" // weighted and fair; a channel cannot be waited for in order

	"quittance/internal/contact"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// Config of New. All fields are required, unless said otherwise.
type Config struct {
	Pool *pgxpool.Pool
	// Keys seal addresses, prove the rows of accounts (LabelAccounts) and verify the epochs of link codes.
	Keys *secret.Keys
	// Reference makes the hashes by which addresses are found, and link codes. It must stay
	// the same, or accounts are not found and printed codes are void.
	Reference *secret.ReferenceKey
	// Now is the time of the service.
	Now func() time.Time
	// Refused is told of a row of a table of ProvedTables that none of our roles has written, or that somebody else has
	// changed, each time when it opens nothing. row names it for a log: by its id, the account or the agency. Nil: nobody
	// is told.
	Refused func(ctx context.Context, table, row string)
	// SMSPerHour is the most codes by SMS that the whole service sends in an hour, however
	// busy it was before. 0 means DefaultSMSPerHour.
	SMSPerHour int
	// MailPerHour is the most codes by e-mail that the whole service sends in an hour, however
	// busy it was before. 0 means DefaultMailPerHour.
	MailPerHour int
}

// DefaultSMSPerHour is the most codes by SMS of an hour, unless configured.
const DefaultSMSPerHour = 2000

// ErrBusy says that too many sign-ins are under way. Later the same call may succeed.
var ErrBusy = errors.New("too many sign-ins are under way")

// Store holds the accounts. It is safe for concurrent use.
type Store struct {
	cfg                                         Config
	addresses, codes, linkCodes, seen, reminded func(string) [sha256.Size]byte

	macs     *secret.MACs // of rows of accounts
	verifier *signed.Verifier
	wrong    wrongCodes

	slots     *semaphore.Weighted // of sign-ins under way
	sms, mail reference           // limits of the whole service
}

// New makes a Store.
func New(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Reference == nil || cfg.Now == nil {
		return nil, errors.New("citizens: Pool, Keys, Reference and Now are required")
	}
	if cfg.SMSPerHour = cmp.Or(cfg.SMSPerHour, DefaultSMSPerHour); cfg.SMSPerHour < 0 {
		return nil, errors.New("citizens: SMSPerHour is below 0")
	}
	if cfg.MailPerHour = cmp.Or(cfg.MailPerHour, DefaultMailPerHour); cfg.MailPerHour < 0 {
		return nil, errors.New("citizens: MailPerHour is below 0")
	}
	if cfg.Refused == nil {
		cfg.Refused = func(context.Context, string, string) {}
	}
	macs, err := cfg.Keys.MACs(LabelAccounts)
	if err != nil {
		return nil, failed("opening the accounts of citizens", err)
	}
	return &Store{
		cfg: cfg, macs: macs, verifier: signed.NewVerifier(cfg.Keys), addresses: cfg.Reference.MAC("citizen address"), codes: cfg.Reference.MAC("citizen sign-in code"), linkCodes: cfg.Reference.MAC("citizen link code"),
		seen: cfg.Reference.MAC("citizen seen dues"), reminded: cfg.Reference.MAC("citizen reminders"), slots: semaphore.NewWeighted(int64(max(2, cfg.Pool.Config().MaxConns/signInShare))),
	}, nil
}

// hash is the key of an address in all tables.
func (s *Store) hash(a contact.Address) []byte {
	h := s.addresses(a.Key())
	return h[:]
}

// prefixHash is the key of the prefix of a phone number; nil for an e-mail address.
func (s *Store) prefixHash(a contact.Address) []byte {
	if a.Prefix() == "" {
		return nil
	}
	h := s.addresses("prefix|" + a.Prefix())
	return h[:]
}

// domainHash is the key of the domain of an e-mail address; nil for a phone number.
func (s *Store) domainHash(a contact.Address) []byte {
	if a.Domain() == "" {
		return nil
	}
	h := s.addresses("domain|" + a.Domain())
	return h[:]
}

// Sign-ins are open to everybody. They get a share of the connections to Postgres, so that a
// flood of them leaves the others to people who have signed in.
const (
	signInShare = 4 // one connection in so many, at least two
	// admitWait is how long a sign-in waits for its turn. They are served in their order.
	admitWait = 2 * time.Second
	// lockWait and statementTime bound a transaction that waits for others.
	lockWait      = 2 * time.Second
	statementTime = 5 * time.Second
)

// admit waits for the turn of a sign-in. The caller calls done at its end. The error is ErrBusy
// if too many wait.
func (s *Store) admit(ctx context.Context) (done func(), err error) {
	wait, cancel := context.WithTimeout(ctx, admitWait)
	defer cancel()
	if err := s.slots.Acquire(wait, 1); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, ErrBusy
	}
	return func() { s.slots.Release(1) }, nil
}

// locked runs do in a transaction that holds the locks of all names, so that what it counts
// does not change before it commits. Two transactions take their locks in the same order. The
// error is ErrBusy if a lock or a statement takes too long.
func (s *Store) locked(ctx context.Context, what string, names [][]byte, do func(tx pgx.Tx) error) error {
	keys := make([]int64, 0, len(names))
	for _, name := range names {
		keys = append(keys, lockKey(name))
	}
	slices.Sort(keys)
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := bounded(ctx, tx); err != nil {
			return err
		}
		for _, key := range slices.Compact(keys) {
			if _, err := tx.Exec(ctx, lockStatement, key); err != nil {
				return err
			}
		}
		return do(tx)
	})
	return failed(what, busy(err))
}

const lockStatement = `SELECT pg_advisory_xact_lock($1)`

// lock takes one more lock for the rest of a transaction. Transactions that take several in
// this way take them in the order of Begin.
func lock(ctx context.Context, tx pgx.Tx, name []byte) error {
	_, err := tx.Exec(ctx, lockStatement, lockKey(name))
	return err
}

func lockKey(name []byte) int64 {
	sum := sha256.Sum256(append([]byte("citizens|"), name...))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // all bits count
}

// bounded gives a transaction the time that it may wait for others.
func bounded(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
		strconv.FormatInt(lockWait.Milliseconds(), 10), strconv.FormatInt(statementTime.Milliseconds(), 10))
	return err
}

// The codes of Postgres for what bounded ends.
const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
)

// busy returns an error that is also ErrBusy if a transaction has waited too long.
func busy(err error) error {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && (e.Code == lockNotAvailable || e.Code == queryCanceled) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

func failed(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
