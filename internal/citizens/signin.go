package citizens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/network"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/money"
)

// CodeLifetime is how long a code can be entered. A message with it is worthless afterwards.
const CodeLifetime = 10 * time.Minute

// The limits of signing in.
//
// An e-mail address has no prefix. Codes by e-mail have a limit of their own (mail.go), because
// people must be able to sign in when SMS has stopped. Guesses at codes by e-mail
// are bounded by their address: 30 a day find one of a million codes once in 90 years. Over many
// addresses they are bounded by the client's networks: 60 codes an hour with 5 tries each open
// one account in 139 days of asking without a pause. What raises these limits are codes that were
// entered, and each of those opens an account that its owner has already. A limit of wrong codes of all clients together would
// let strangers stop everybody's sign-in.
const (
	triesOfCode    = 5  // of one code
	triesOfAddress = 30 // wrong codes of an address in a day, over all browsers
	addressHour    = 5
	addressDay     = 10
	knownDay       = 30 // all known browsers of an address together; each has the limits of an address
	prefixHour     = 20
	prefixSample   = 20 // codes to a prefix from which on it may be closed
	prefixEntered  = 5  // one in so many must be entered
	serviceLeast   = 200
	networkCeiling = 10 // times the least of a network, however many codes its people enter
	provenMultiple = 3  // of the codes that people entered in the busiest hour of the last seven days
)

// sharedHour and subscriberHour are the requests an hour of the networks of an IPv4 address, which
// many people may share, and of IPv6. provenMultiple raises them.
var (
	sharedHour     = [network.Widths]int{network.Subscriber: 60, network.Site: 240, network.Provider: 960}
	subscriberHour = [network.Widths]int{network.Subscriber: 10, network.Site: 40, network.Provider: 960}
)

// resendAfter is the wait before the next code to an address: after the first code of a day
// that nobody entered, the second, and so on.
var resendAfter = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}

// Verdict says what Begin decided, for metrics. Only Sent comes with a code. Whoever asks
// learns only of ErrTooManyRequests and ErrMailLimited.
type Verdict string

// The verdicts.
const (
	Sent          Verdict = "sent"
	TooSoon       Verdict = "too_soon" // the wait before the next code is not over
	AddressLimit  Verdict = "address_limit"
	PrefixLimit   Verdict = "prefix_limit"
	PrefixClosed  Verdict = "prefix_closed" // too few codes to the prefix are entered
	ServiceLimit  Verdict = "service_limit" // of the whole service by SMS; e-mail goes on
	ClientLimited Verdict = "client_limit"  // with ErrTooManyRequests
	// The limits of codes by e-mail, with ErrMailLimited: of the whole service, to a domain, and from
	// a network.
	MailLimit        Verdict = "mail_limit"
	MailDomainLimit  Verdict = "mail_domain_limit"
	MailNetworkLimit Verdict = "mail_network_limit"
)

// Verdicts has all verdicts.
func Verdicts() []Verdict {
	return []Verdict{Sent, TooSoon, AddressLimit, PrefixLimit, PrefixClosed, ServiceLimit, ClientLimited, MailLimit, MailDomainLimit, MailNetworkLimit}
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
	// Known is the value of the cookie that Remember gave the browser; empty for none.
	Known secret.Text
}

// Begin decides about a request for a code. With the verdict Sent it returns the code to
// send; an earlier code of the address in that browser is void. Whether the address has an
// account changes nothing. The error is ErrTooManyRequests, ErrMailLimited or ErrBusy for
// a call that may be repeated later.
//
// Its locks are taken from the narrow to the wide, each when the limits before it allow the
// code: a client above its limit waits for none, and the lock of the whole service is taken
// only for a code that will be sent, so at most as often as its limit allows.
func (s *Store) Begin(ctx context.Context, q Request) (code secret.Text, v Verdict, err error) {
	done, err := s.admit(ctx)
	if err != nil {
		return secret.Text{}, "", failed(decidingCode, err)
	}
	defer done()
	a := &asked{Request: q, now: s.cfg.Now().UTC(), address: s.hash(q.Address), prefix: s.prefixHash(q.Address), domain: s.domainHash(q.Address)}
	if id := s.browserID(q.Known, a.now); id != nil {
		a.known = knownKey(a.address, id)
	}
	if code, err = newCode(); err != nil {
		return secret.Text{}, "", err
	}
	err = s.locked(ctx, decidingCode, nil, func(tx pgx.Tx) error {
		if v, err = s.verdict(ctx, tx, a); err != nil || v == ClientLimited {
			return err
		}
		const request = `INSERT INTO sign_in_requests (at, client, site, provider, address, prefix, sent, known, domain) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
		n := network.Of(q.Client)
		row := []any{a.now, n[network.Subscriber], n[network.Site], n[network.Provider], a.address, a.prefix, v == Sent, a.known, a.domain}
		if v != Sent {
			_, err := tx.Exec(ctx, request, row...)
			return err
		}
		_, err := tx.Exec(ctx, `WITH request AS (`+request+` RETURNING id)
			INSERT INTO sign_in_codes (address, browser, mac, tries, sent_at, request, known) SELECT $5, $10, $11, 0, $1, id, $8 FROM request
			ON CONFLICT (address, browser) DO UPDATE SET mac = excluded.mac, tries = 0, sent_at = excluded.sent_at, request = excluded.request, known = excluded.known`,
			append(row, browserHash(q.Browser), s.codeMAC(a.address, q.Browser, code.Reveal()))...)
		return err
	})
	switch {
	case err != nil:
		return secret.Text{}, "", err
	case v == ClientLimited:
		return secret.Text{}, v, ErrTooManyRequests
	case v == MailLimit || v == MailDomainLimit || v == MailNetworkLimit:
		return secret.Text{}, v, ErrMailLimited
	case v != Sent:
		return secret.Text{}, v, nil
	}
	return code, Sent, nil
}

const decidingCode = "deciding about a sign-in code"

// asked is a request for a code with what the limits count it by.
type asked struct {
	Request

	now             time.Time
	address, prefix []byte // prefix is nil for an e-mail address
	domain          []byte // nil for a phone number
	known           []byte // the key of the browser, if it is known; its limits are its own
}

// verdict decides in a transaction, which then holds the locks of what was counted.
func (s *Store) verdict(ctx context.Context, tx pgx.Tx, a *asked) (Verdict, error) {
	// Requests are only added: what is too many without the lock, is so under it.
	limited, err := a.clientLimited(ctx, tx)
	if err == nil && !limited {
		if err = lock(ctx, tx, []byte("client|"+a.Client)); err == nil {
			limited, err = a.clientLimited(ctx, tx)
		}
	}
	switch {
	case err != nil:
		return "", err
	case limited:
		return ClientLimited, nil
	}
	most := 0
	if a.prefix != nil {
		if most, err = s.smsLimit(ctx, tx, a.now); err != nil {
			return "", err
		}
	}
	if err := lock(ctx, tx, addressLock(a.address)); err != nil {
		return "", err
	}
	if a.known != nil {
		switch known, err := a.isKnown(ctx, tx); {
		case err != nil:
			return "", err
		case !known:
			a.known = nil
		}
	}
	switch v, err := a.addressVerdict(ctx, tx); {
	case err != nil || v != Sent:
		return v, err
	case a.domain != nil:
		return s.mailVerdict(ctx, tx, a)
	}
	if a.known != nil {
		// Strangers reach the limit of the service, not its ceiling.
		return a.serviceVerdict(ctx, tx, s.cfg.SMSPerHour)
	}
	if err := lock(ctx, tx, append([]byte("prefix|"), a.prefix...)); err != nil {
		return "", err
	}
	if v, err := a.prefixVerdict(ctx, tx); err != nil || v != Sent {
		return v, err
	}
	return a.serviceVerdict(ctx, tx, most)
}

func addressLock(address []byte) []byte { return append([]byte("address|"), address...) }

// networkColumns are the columns of sign_in_requests with the networks of a client.
var networkColumns = [network.Widths]string{network.Subscriber: "client", network.Site: "site", network.Provider: "provider"}

// clientLimited reports whether a network of the client has asked for as many codes as it may in
// an hour. A network whose people enter their codes may ask for more: operators have many
// subscribers behind one address. Only the narrowest network is counted under a lock; requests at
// the same time may together exceed the limits of the others by their number.
func (a *asked) clientLimited(ctx context.Context, db querier) (bool, error) {
	least := subscriberHour
	if network.Shared(a.Client) {
		least = sharedHour
	}
	for width, name := range network.Of(a.Client) {
		of := networkColumns[width]
		var n int
		if err := db.QueryRow(ctx, `SELECT count(*) FROM sign_in_requests WHERE `+of+` = $1 AND at > $2`, name, a.now.Add(-time.Hour)).Scan(&n); err != nil {
			return false, err
		}
		if n < least[width] {
			continue
		}
		busiest, err := busiestHour(ctx, db, of+` = $3`, a.now, name)
		if err != nil || n >= min(provenMultiple*busiest, networkCeiling*least[width]) {
			return err == nil, err
		}
	}
	return false, nil
}

// busiestHour counts the codes that people have entered in the busiest of the hours of the last
// seven days before this one. where chooses codes; its arguments begin at $3.
func busiestHour(ctx context.Context, db querier, where string, now time.Time, args ...any) (n int, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM sign_in_requests
		WHERE entered AND at > $2::timestamptz AND at <= $1::timestamptz AND `+where+` GROUP BY date_trunc('hour', at)) h`,
		append([]any{now.Add(-time.Hour), now.Add(-7 * 24 * time.Hour)}, args...)...).Scan(&n)
	return n, err
}

func (a *asked) addressVerdict(ctx context.Context, tx pgx.Tx) (Verdict, error) {
	var inHour, inDay, unanswered, ofKnown int
	var last *time.Time
	// The waits begin again after a code that was entered.
	err := tx.QueryRow(ctx, `
		WITH day AS (SELECT id, at, entered, known FROM sign_in_requests WHERE address = $1 AND at > $3 AND sent),
			own AS (SELECT * FROM day WHERE known IS NOT DISTINCT FROM $4)
		SELECT count(*) FILTER (WHERE at > $2), count(*), count(*) FILTER (WHERE id > (SELECT coalesce(max(id), 0) FROM own WHERE entered)), max(at),
			(SELECT count(*) FROM day WHERE known IS NOT NULL) FROM own`,
		a.address, a.now.Add(-time.Hour), a.now.Add(-24*time.Hour), a.known).Scan(&inHour, &inDay, &unanswered, &last, &ofKnown)
	switch {
	case err != nil:
		return "", err
	case inHour >= addressHour, inDay >= addressDay, a.known != nil && ofKnown >= knownDay:
		return AddressLimit, nil
	case last != nil && unanswered > 0 && a.now.Before(last.Add(resendAfter[min(unanswered, len(resendAfter))-1])):
		return TooSoon, nil
	}
	return Sent, nil
}

// prefixVerdict counts what protects against messages to a block of numbers that are caused
// to be paid for.
func (a *asked) prefixVerdict(ctx context.Context, tx pgx.Tx) (Verdict, error) {
	var inHour, decided, entered int
	var last *time.Time
	err := tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE at > $2), count(*) FILTER (WHERE entered OR at <= $4), count(*) FILTER (WHERE entered), max(at) FILTER (WHERE NOT entered)
		FROM sign_in_requests WHERE prefix = $1 AND at > $3 AND sent AND known IS NULL`,
		a.prefix, a.now.Add(-time.Hour), a.now.Add(-24*time.Hour), a.now.Add(-CodeLifetime)).Scan(&inHour, &decided, &entered, &last)
	switch {
	case err != nil:
		return "", err
	case inHour >= prefixHour:
		return PrefixLimit, nil
	case decided >= prefixSample && entered*prefixEntered < decided && last != nil && a.now.Before(last.Add(time.Hour)):
		// The hour begins with the last code that nobody entered. So one code an hour is sent,
		// and more as soon as people enter theirs.
		return PrefixClosed, nil
	}
	return Sent, nil
}

// serviceVerdict counts the codes by SMS of the whole service. The count without the lock is
// never too high, so that a flood above the limit does not take the lock.
func (a *asked) serviceVerdict(ctx context.Context, tx pgx.Tx, most int) (Verdict, error) {
	n, err := smsSent(ctx, tx, a.now)
	if err == nil && n < most {
		if err = lock(ctx, tx, []byte("service")); err == nil {
			n, err = smsSent(ctx, tx, a.now)
		}
	}
	switch {
	case err != nil:
		return "", err
	case n >= most:
		return ServiceLimit, nil
	}
	return Sent, nil
}

// smsSent counts the codes by SMS of the last hour.
func smsSent(ctx context.Context, db querier, now time.Time) (n int, err error) {
	err = db.QueryRow(ctx, `SELECT count(*) FROM sign_in_requests WHERE prefix IS NOT NULL AND sent AND at > $1`, now.Add(-time.Hour)).Scan(&n)
	return n, err
}

// reference is the limit of the whole service, which changes slowly and costs more to read.
type reference struct {
	mu   sync.Mutex
	at   time.Time // when it was read; zero for never
	most int
}

// referenceFor is how long a limit of the whole service is used before it is read again.
const referenceFor = time.Minute

// limit returns the limit, and reads it again when it is old.
func (r *reference) limit(now time.Time, read func() (int, error)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := now.Sub(r.at); !r.at.IsZero() && since >= 0 && since < referenceFor {
		return r.most, nil
	}
	most, err := read()
	if err == nil {
		r.at, r.most = now, most
	}
	return most, err
}

// smsLimit returns how many codes by SMS the whole service may send in this hour.
func (s *Store) smsLimit(ctx context.Context, db querier, now time.Time) (int, error) {
	return s.sms.limit(now, func() (int, error) { return smsLimit(ctx, db, now, s.cfg.SMSPerHour) })
}

// smsLimit is a multiple of the busiest hour. It counts codes that people have entered: who
// only causes messages to be paid for does not raise the limit by them. Whoever enters codes,
// too, reaches the ceiling at most.
func smsLimit(ctx context.Context, db querier, now time.Time, ceiling int) (int, error) {
	busiest, err := busiestHour(ctx, db, `prefix IS NOT NULL`, now)
	return min(ceiling, max(serviceLeast, provenMultiple*busiest)), err
}

// Citizen is an account.
type Citizen struct {
	ID     string
	Locale money.Language
	// Addresses are masked, for their owner.
	Addresses []string
	// Unproven are those of them that get no messages, because nobody has proven them for 90 days.
	// They are known after Session and the sign-in with a passkey.
	Unproven []string
	// First is true at the sign-in that made the account.
	First bool
}

// Enter signs in with a code, and returns the session's secret. Sessions that the browser had
// before end with it, or the code stays valid. The first sign-in of an address makes the
// account. The error of a code that does not fit is ErrCodeInvalid.
func (s *Store) Enter(ctx context.Context, a contact.Address, browser secret.Text, code string, locale money.Language, before ...secret.Text) (token secret.Text, c Citizen, err error) {
	now := s.cfg.Now().UTC()
	address := s.hash(a)
	valid := false
	done, err := s.admit(ctx)
	if err != nil {
		return secret.Text{}, Citizen{}, failed("signing in", err)
	}
	defer done()
	err = s.locked(ctx, "signing in", [][]byte{addressLock(address)}, func(tx pgx.Tx) error {
		if valid, err = s.enterCode(ctx, tx, address, browser, code, now); err != nil || !valid {
			return err // a wrong try commits too
		}
		if c, err = s.account(ctx, tx, a, address, locale, now, before); err != nil {
			return err
		}
		if err := s.linkContacts(ctx, tx, c.ID, address, now); err != nil {
			return err
		}
		token, err = s.open(ctx, tx, c.ID, now, before)
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
	var request *int64
	var known []byte
	err := tx.QueryRow(ctx, `
		SELECT mac, tries, sent_at, request, known, (SELECT count(*) FROM sign_in_failures f WHERE f.address = $1 AND f.at > $3 AND f.known IS NOT DISTINCT FROM c.known)
		FROM sign_in_codes c WHERE address = $1 AND browser = $2`, address, browserHash(browser), now.Add(-24*time.Hour)).Scan(&mac, &tries, &sentAt, &request, &known, &failures)
	want := s.codeMAC(address, browser, code) // made also for a browser without a code, so that it takes as long
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case tries >= triesOfCode || failures >= triesOfAddress || !now.Before(sentAt.Add(CodeLifetime)):
		return false, nil
	case s.wrong.tooMany(address, now):
		s.cfg.Refused(ctx, "sign_in_failures", "more wrong codes of an address than the rows say")
		return false, nil
	case subtle.ConstantTimeCompare(mac, want) != 1:
		s.wrong.add(address, now)
		if _, err := tx.Exec(ctx, `UPDATE sign_in_codes SET tries = tries + 1 WHERE address = $1 AND browser = $2`, address, browserHash(browser)); err != nil {
			return false, err
		}
		_, err := tx.Exec(ctx, `INSERT INTO sign_in_failures (address, at, known) VALUES ($1, $2, $3)`, address, now, known)
		return false, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM sign_in_codes WHERE address = $1 AND browser = $2`, address, browserHash(browser)); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE sign_in_requests SET entered = true WHERE id = $1`, request) // the others of the address count as not entered
	return true, err
}

// account returns the account of a proven address, and makes it if there is none. An address
// that was not proven for 90 days may belong to somebody else by now: it opens a new account,
// which sees neither the links nor the payments of the old one. Whoever is signed in to the old
// one, with a passkey or another address, proves the address again.
func (s *Store) account(ctx context.Context, tx pgx.Tx, a contact.Address, address []byte, locale money.Language, now time.Time, before []secret.Text) (c Citizen, err error) {
	var signedIn, proven time.Time
	var id uuid.UUID
	var kind string
	var mac []byte
	err = tx.QueryRow(ctx, `SELECT a.id, a.kind, coalesce(a.mac_at, a.proven_at), a.mac, c.id::text, c.signed_in_at
		FROM citizen_addresses a JOIN citizens c ON c.id = a.citizen_id WHERE a.hash = $1`, address).Scan(&id, &kind, &proven, &mac, &c.ID, &signedIn)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.register(ctx, tx, a, address, locale, now)
	case err != nil:
		return Citizen{}, err
	case !s.believesAddress(ctx, mac, id, address, c.ID, kind, proven):
		// The account stays, so that an operator can see what somebody wrote: it may be the owner's, or a stranger's.
		if err := forget(ctx, tx, address); err != nil {
			return Citizen{}, err
		}
		if err := s.record(ctx, tx, c.ID, "citizen.address_refused"); err != nil {
			return Citizen{}, err
		}
		return s.register(ctx, tx, a, address, locale, now)
	}
	own := now.Before(proven.Add(proveAgainAfter))
	if !own {
		if own, err = s.signedInTo(ctx, tx, c.ID, before, now); err != nil {
			return Citizen{}, err
		}
	}
	if !own {
		if err := detach(ctx, tx, c.ID, address); err != nil {
			return Citizen{}, err
		}
		return s.register(ctx, tx, a, address, locale, now)
	}
	if _, err := tx.Exec(ctx, `UPDATE citizen_addresses SET proven_at = $2, mac_at = $2, mac = $3 WHERE hash = $1`, address, now, s.addressMAC(id, address, c.ID, kind, now)); err != nil {
		return Citizen{}, err
	}
	c.Locale, c.Addresses = locale, []string{a.Masked()}
	return c, signedInAgain(ctx, tx, c, signedIn, now)
}

// signedInTo reports whether one of the sessions is in use by an account.
func (s *Store) signedInTo(ctx context.Context, tx pgx.Tx, citizenID string, sessions []secret.Text, now time.Time) (bool, error) {
	for _, token := range sessions {
		switch of, _, err := s.begun(ctx, tx, token, now); {
		case err == nil && of == citizenID:
			return true, nil
		case err != nil && !errors.Is(err, ErrSignedOut):
			return false, err
		}
	}
	return false, nil
}

// detach takes an address from an account. An account that nothing opens any more is deleted.
func detach(ctx context.Context, tx pgx.Tx, citizenID string, address []byte) error {
	if err := forget(ctx, tx, address); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM citizens c WHERE id = $1
		AND NOT EXISTS (SELECT FROM citizen_addresses a WHERE a.citizen_id = c.id) AND NOT EXISTS (SELECT FROM citizen_passkeys p WHERE p.citizen_id = c.id)`, citizenID)
	return err
}

// forget deletes the row of an address and the browsers that are known for it.
func forget(ctx context.Context, tx pgx.Tx, address []byte) error {
	for _, statement := range []string{`DELETE FROM citizen_addresses WHERE hash = $1`, `DELETE FROM known_browsers WHERE address = $1`} {
		if _, err := tx.Exec(ctx, statement, address); err != nil {
			return err
		}
	}
	return nil
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
	if _, err := tx.Exec(ctx, `INSERT INTO citizen_addresses (id, hash, citizen_id, kind, sealed, proven_at, mac_at, mac) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)`,
		row, address, id, string(a.Kind), sealed, now, s.addressMAC(row, address, id.String(), string(a.Kind), now)); err != nil {
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
