package citizens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/checkout/money"
	"quittance/internal/contact"
	"quittance/internal/personal"
	"quittance/internal/secret"
)

// CodeLifetime is how long a code can be entered. A message with it is worthless afterwards.
const CodeLifetime = 10 * time.Minute

// The limits of signing in.
const (
	triesOfCode     = 5  // of one code
	triesOfAddress  = 30 // wrong codes of an address in a day, over all browsers
	addressHour     = 5
	addressDay      = 10
	client4Hour     = 60 // an IPv4 address, which many people may share
	client6Hour     = 10 // an IPv6 /64
	prefixHour      = 20
	prefixSample    = 20 // codes to a prefix from which on it may be closed
	prefixEntered   = 5  // one in so many must be entered
	serviceLeast    = 200
	serviceMultiple = 3 // of the busiest hour of the last seven days
)

// resendAfter is the wait before the next code to an address: after the first code of a day
// that nobody entered, the second, and so on.
var resendAfter = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}

// Verdict says what Begin decided, for metrics. Only Sent comes with a code. Whoever asks
// learns only of ErrTooManyRequests.
type Verdict string

// The verdicts.
const (
	Sent          Verdict = "sent"
	TooSoon       Verdict = "too_soon" // the wait before the next code is not over
	AddressLimit  Verdict = "address_limit"
	PrefixLimit   Verdict = "prefix_limit"
	PrefixClosed  Verdict = "prefix_closed" // too few codes to the prefix are entered
	ServiceLimit  Verdict = "service_limit" // by SMS; e-mail goes on
	ClientLimited Verdict = "client_limit"  // with ErrTooManyRequests
)

// Verdicts has all verdicts.
func Verdicts() []Verdict {
	return []Verdict{Sent, TooSoon, AddressLimit, PrefixLimit, PrefixClosed, ServiceLimit, ClientLimited}
}

// ErrTooManyRequests says that the client has asked for too many codes.
var ErrTooManyRequests = errors.New("too many requests for codes")

// ErrCodeInvalid says that a code does not open the address in this browser: it is wrong,
// used, replaced, too old or of another browser, or the tries are used up.
var ErrCodeInvalid = errors.New("the code is not valid")

// Request is one for a code.
type Request struct {
	Address contact.Address
	// Browser is the secret of the browser that asks: the code verifies only there.
	Browser secret.Text
	// Client is the network of the client, as web.Client returns it.
	Client string
}

// Begin decides about a request for a code. With the verdict Sent it returns the code to
// send; an earlier code of the address in that browser is void. Whether the address has an
// account changes nothing.
func (s *Store) Begin(ctx context.Context, q Request) (code secret.Text, v Verdict, err error) {
	now := s.cfg.Now().UTC()
	code, err = newCode()
	if err != nil {
		return secret.Text{}, "", err
	}
	address, prefix := s.hash(q.Address), s.prefixHash(q.Address)
	names := [][]byte{append([]byte("address|"), address...), []byte("client|" + q.Client), []byte("service")}
	if prefix != nil {
		names = append(names, append([]byte("prefix|"), prefix...))
	}
	err = s.locked(ctx, "deciding about a sign-in code", names, func(tx pgx.Tx) error {
		if v, err = s.verdict(ctx, tx, q, address, prefix, now); err != nil || v == ClientLimited {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO sign_in_requests (at, client, address, prefix, sent) VALUES ($1, $2, $3, $4, $5)`,
			now, q.Client, address, prefix, v == Sent); err != nil || v != Sent {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO sign_in_codes (address, browser, mac, tries, sent_at) VALUES ($1, $2, $3, 0, $4)
			ON CONFLICT (address, browser) DO UPDATE SET mac = excluded.mac, tries = 0, sent_at = excluded.sent_at`,
			address, browserHash(q.Browser), s.codeMAC(address, q.Browser, code.Reveal()), now)
		return err
	})
	switch {
	case err != nil:
		return secret.Text{}, "", err
	case v == ClientLimited:
		return secret.Text{}, v, ErrTooManyRequests
	case v != Sent:
		return secret.Text{}, v, nil
	}
	return code, Sent, nil
}

// verdict counts under the locks of Begin.
func (s *Store) verdict(ctx context.Context, tx pgx.Tx, q Request, address, prefix []byte, now time.Time) (Verdict, error) {
	hour, day := now.Add(-time.Hour), now.Add(-24*time.Hour)
	clientMost := client4Hour
	if strings.Contains(q.Client, ":") { // an IPv6 network
		clientMost = client6Hour
	}
	var ofClient, inHour, inDay, unanswered int
	var last *time.Time
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM sign_in_requests WHERE client = $1 AND at > $3),
			count(*) FILTER (WHERE at > $3), count(*), count(*) FILTER (WHERE NOT entered), max(at)
		FROM sign_in_requests WHERE address = $2 AND at > $4 AND sent`, q.Client, address, hour, day).Scan(&ofClient, &inHour, &inDay, &unanswered, &last)
	switch {
	case err != nil:
		return "", err
	case ofClient >= clientMost:
		return ClientLimited, nil
	case inHour >= addressHour, inDay >= addressDay:
		return AddressLimit, nil
	case last != nil && unanswered > 0 && now.Before(last.Add(resendAfter[min(unanswered, len(resendAfter))-1])):
		return TooSoon, nil
	}
	if prefix == nil {
		return Sent, nil
	}
	return s.prefixVerdict(ctx, tx, prefix, now)
}

// prefixVerdict counts what protects against messages that are caused to be paid for: those
// to a block of numbers, and all.
func (s *Store) prefixVerdict(ctx context.Context, tx pgx.Tx, prefix []byte, now time.Time) (Verdict, error) {
	var inHour, decided, entered int
	var last *time.Time
	err := tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE at > $2), count(*) FILTER (WHERE entered OR at <= $4), count(*) FILTER (WHERE entered), max(at) FILTER (WHERE NOT entered)
		FROM sign_in_requests WHERE prefix = $1 AND at > $3 AND sent`,
		prefix, now.Add(-time.Hour), now.Add(-24*time.Hour), now.Add(-CodeLifetime)).Scan(&inHour, &decided, &entered, &last)
	switch {
	case err != nil:
		return "", err
	case inHour >= prefixHour:
		return PrefixLimit, nil
	case decided >= prefixSample && entered*prefixEntered < decided && last != nil && now.Before(last.Add(time.Hour)):
		// The hour begins with the last code that nobody entered. So one code an hour is sent,
		// and more as soon as people enter theirs.
		return PrefixClosed, nil
	}
	stopped, err := smsStopped(ctx, tx, now)
	if err == nil && stopped {
		return ServiceLimit, nil
	}
	return Sent, err
}

// smsStopped reports whether the whole service has sent as many codes by SMS in the last hour
// as its limit allows.
func smsStopped(ctx context.Context, db querier, now time.Time) (bool, error) {
	var thisHour, busiest int
	err := db.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM sign_in_requests WHERE prefix IS NOT NULL AND sent AND at > $1::timestamptz),
			coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM sign_in_requests
				WHERE prefix IS NOT NULL AND sent AND at > $2::timestamptz AND at <= $1::timestamptz GROUP BY date_trunc('hour', at)) h), 0)`,
		now.Add(-time.Hour), now.Add(-7*24*time.Hour)).Scan(&thisHour, &busiest)
	return thisHour >= max(serviceLeast, serviceMultiple*busiest), err
}

// Citizen is an account.
type Citizen struct {
	ID     string
	Locale money.Language
	// Addresses are masked, for their owner.
	Addresses []string
	// First is true at the sign-in that made the account.
	First bool
}

// Enter signs in with a code, and returns the session's secret. The first sign-in of an
// address makes the account. The error of a code that does not fit is ErrCodeInvalid.
func (s *Store) Enter(ctx context.Context, a contact.Address, browser secret.Text, code string, locale money.Language) (token secret.Text, c Citizen, err error) {
	now := s.cfg.Now().UTC()
	address := s.hash(a)
	valid := false
	err = s.locked(ctx, "signing in", [][]byte{append([]byte("address|"), address...)}, func(tx pgx.Tx) error {
		if valid, err = s.enterCode(ctx, tx, address, browser, code, now); err != nil || !valid {
			return err // a wrong try commits too
		}
		if c, err = s.account(ctx, tx, a, address, locale, now); err != nil {
			return err
		}
		if err := s.linkContacts(ctx, tx, c.ID, address, now); err != nil {
			return err
		}
		token, err = s.open(ctx, tx, c.ID, now)
		return err
	})
	if err == nil && !valid {
		err = ErrCodeInvalid
	}
	if err != nil {
		return secret.Text{}, Citizen{}, err
	}
	return token, c, nil
}

// enterCode reports whether the code is valid, and uses it up. A wrong one is counted.
func (s *Store) enterCode(ctx context.Context, tx pgx.Tx, address []byte, browser secret.Text, code string, now time.Time) (bool, error) {
	var mac []byte
	var tries, failures int
	var sentAt time.Time
	err := tx.QueryRow(ctx, `
		SELECT mac, tries, sent_at, (SELECT count(*) FROM sign_in_failures f WHERE f.address = $1 AND f.at > $3)
		FROM sign_in_codes WHERE address = $1 AND browser = $2`, address, browserHash(browser), now.Add(-24*time.Hour)).Scan(&mac, &tries, &sentAt, &failures)
	want := s.codeMAC(address, browser, code) // made also for a browser without a code, so that it takes as long
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case tries >= triesOfCode || failures >= triesOfAddress || !now.Before(sentAt.Add(CodeLifetime)):
		return false, nil
	case subtle.ConstantTimeCompare(mac, want) != 1:
		if _, err := tx.Exec(ctx, `UPDATE sign_in_codes SET tries = tries + 1 WHERE address = $1 AND browser = $2`, address, browserHash(browser)); err != nil {
			return false, err
		}
		_, err := tx.Exec(ctx, `INSERT INTO sign_in_failures (address, at) VALUES ($1, $2)`, address, now)
		return false, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM sign_in_codes WHERE address = $1 AND browser = $2`, address, browserHash(browser)); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE sign_in_requests SET entered = true WHERE address = $1 AND sent AND at > $2`, address, now.Add(-24*time.Hour))
	return true, err
}

// account returns the account of a proven address, and makes it if there is none. An address
// that was not proven for 90 days may belong to somebody else by now: it opens a new account,
// which sees neither the links nor the payments of the old one.
func (s *Store) account(ctx context.Context, tx pgx.Tx, a contact.Address, address []byte, locale money.Language, now time.Time) (c Citizen, err error) {
	var signedIn, proven time.Time
	err = tx.QueryRow(ctx, `SELECT c.id, c.signed_in_at, a.proven_at FROM citizen_addresses a JOIN citizens c ON c.id = a.citizen_id WHERE a.hash = $1`, address).Scan(&c.ID, &signedIn, &proven)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.register(ctx, tx, a, address, locale, now)
	case err != nil:
		return Citizen{}, err
	case !now.Before(proven.Add(proveAgainAfter)):
		if err := detach(ctx, tx, c.ID, address); err != nil {
			return Citizen{}, err
		}
		return s.register(ctx, tx, a, address, locale, now)
	}
	if _, err := tx.Exec(ctx, `UPDATE citizen_addresses SET proven_at = $2 WHERE hash = $1`, address, now); err != nil {
		return Citizen{}, err
	}
	c.Locale, c.Addresses = locale, []string{a.Masked()}
	return c, signedInAgain(ctx, tx, c, signedIn, now)
}

// detach takes an address from an account. An account that nothing opens any more is deleted.
func detach(ctx context.Context, tx pgx.Tx, citizenID string, address []byte) error {
	if _, err := tx.Exec(ctx, `DELETE FROM citizen_addresses WHERE hash = $1`, address); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM citizens c WHERE id = $1
		AND NOT EXISTS (SELECT FROM citizen_addresses a WHERE a.citizen_id = c.id) AND NOT EXISTS (SELECT FROM citizen_passkeys p WHERE p.citizen_id = c.id)`, citizenID)
	return err
}

// signedInAgain records a sign-in of an account, whose last one was at a time.
func signedInAgain(ctx context.Context, tx pgx.Tx, c Citizen, last, now time.Time) error {
	if !now.Before(last.Add(proveAgainAfter)) {
		// It signed in with a passkey. It proves its references again, as every other account.
		if _, err := tx.Exec(ctx, `DELETE FROM citizen_links WHERE citizen_id = $1`, c.ID); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE citizens SET signed_in_at = $2, locale = $3 WHERE id = $1`, c.ID, now, string(c.Locale))
	return err
}

func (s *Store) register(ctx context.Context, tx pgx.Tx, a contact.Address, address []byte, locale money.Language, now time.Time) (Citizen, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Citizen{}, err
	}
	row, err := uuid.NewV7()
	if err != nil {
		return Citizen{}, err
	}
	sealed, err := s.cfg.Keys.Seal(SealedAddresses.Label, []byte(a.Text()), row[:])
	if err != nil {
		return Citizen{}, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO citizens (id, locale, created_at, signed_in_at) VALUES ($1, $2, $3, $3)`, id, string(locale), now); err != nil {
		return Citizen{}, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO citizen_addresses (id, hash, citizen_id, kind, sealed, proven_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		row, address, id, string(a.Kind), sealed, now); err != nil {
		return Citizen{}, err
	}
	return Citizen{ID: id.String(), Locale: locale, Addresses: []string{a.Masked()}, First: true}, nil
}

// SealedAddresses are the addresses, for `secrets reseal`.
var SealedAddresses = personal.Sealed{Table: "citizen_addresses", Label: "citizen address"}

// proveAgainAfter is the time without a sign-in after which links must be proven again: numbers
// are recycled.
const proveAgainAfter = 90 * 24 * time.Hour

// newCode returns six random digits.
func newCode() (secret.Text, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return secret.Text{}, fmt.Errorf("making a sign-in code: %w", err)
	}
	return secret.NewText(fmt.Sprintf("%06d", n)), nil
}

func (s *Store) codeMAC(address []byte, browser secret.Text, code string) []byte {
	mac := s.codes(string(address) + "|" + string(browserHash(browser)) + "|" + code)
	return mac[:]
}

func browserHash(browser secret.Text) []byte {
	sum := sha256.Sum256([]byte(browser.Reveal()))
	return sum[:]
}
