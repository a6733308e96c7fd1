package citizens_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/servers"
)

var start = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// office is a Store with a clock that the test moves.
type office struct {
	*citizens.Store
	t    *testing.T
	dsn  string
	pool *pgxpool.Pool
	cfg  citizens.Config

	mu  sync.Mutex
	now time.Time
}

func open(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, now: start}
	o.dsn, o.pool = servers.Database(t)
	o.cfg = citizens.Config{Pool: o.pool, Keys: secret.GenerateKeys(), Reference: secret.GenerateReferenceKey(), Now: func() time.Time {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.now
	}}
	o.Store = o.instance(o.pool)
	return o
}

// instance is the Store of another instance of the service.
func (o *office) instance(pool *pgxpool.Pool) *citizens.Store {
	o.t.Helper()
	cfg := o.cfg
	cfg.Pool = pool
	s, err := citizens.New(cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func (o *office) wait(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = o.now.Add(d)
}

func phone(t testing.TB, n int) contact.Address {
	t.Helper()
	a, err := contact.ParsePhone(fmt.Sprintf("06 %03d %04d", 600+n/10_000, n%10_000))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func email(t testing.TB, n int) contact.Address {
	t.Helper()
	a, err := contact.ParseEmail(fmt.Sprintf("citizen%d@example.org", n))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var browser = secret.NewText("browser one")

// begin asks for a code, as a client of its own.
func (o *office) begin(a contact.Address, b secret.Text) (secret.Text, citizens.Verdict) {
	o.t.Helper()
	code, v, err := o.Begin(o.t.Context(), citizens.Request{Address: a, Browser: b, Client: uuid.NewString()})
	if err != nil || (v == citizens.Sent) == code.Empty() {
		o.t.Fatalf("verdict %s, code %s, %v", v, code, err)
	}
	return code, v
}

func (o *office) want(a contact.Address, want citizens.Verdict) (code secret.Text) {
	o.t.Helper()
	code, v := o.begin(a, browser)
	if v != want {
		o.t.Errorf("verdict %s, want %s", v, want)
	}
	return code
}

func (o *office) enter(a contact.Address, b secret.Text, code string) error {
	_, _, err := o.Enter(o.t.Context(), a, b, code, money.French)
	return err
}

func (o *office) signIn(a contact.Address) (secret.Text, citizens.Citizen) {
	o.t.Helper()
	token, c, err := o.Enter(o.t.Context(), a, browser, o.want(a, citizens.Sent).Reveal(), money.French)
	if err != nil {
		o.t.Fatal(err)
	}
	return token, c
}

func wrong(code secret.Text) string {
	if code.Reveal() == "000000" {
		return "000001"
	}
	return "000000"
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := phone(t, 1)
	code := o.want(a, citizens.Sent)
	if err := o.enter(a, secret.NewText("another browser"), code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("another browser: %v", err)
	}
	if err := o.enter(phone(t, 2), browser, code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("another address: %v", err)
	}
	token, c, err := o.Enter(t.Context(), a, browser, code.Reveal(), money.French)
	if err != nil || !c.First || c.ID == "" {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := o.enter(a, browser, code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("a used code: %v", err)
	}
	got, err := o.Session(t.Context(), token)
	if err != nil || got.ID != c.ID || !slices.Equal(got.Addresses, []string{a.Masked()}) {
		t.Errorf("%+v, %v", got, err)
	}
	// A newer master key seals the address again.
	newest := secret.GenerateKeys()
	both, err := secret.ParseKeys(newest.Reveal() + "," + o.cfg.Keys.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if done, err := citizens.SealedAddresses.Reseal(t.Context(), o.pool, both, actor, start, 10, func(int) {}); err != nil || done.Sealed != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := citizens.ProveAgain(t.Context(), o.pool, both, actor, start); err != nil {
		t.Fatal(err)
	}
	o.cfg.Keys = newest
	o.Store = o.instance(o.pool)
	if got, err := o.Session(t.Context(), token); err != nil || !slices.Equal(got.Addresses, []string{a.Masked()}) {
		t.Errorf("with the newest key alone: %+v, %v", got, err)
	}
	again, c2 := o.signIn(a)
	if c2.ID != c.ID || c2.First || again.Equal(token) {
		t.Errorf("the second sign-in is %+v", c2)
	}
	if err := o.SignOut(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Session(t.Context(), token); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("after the sign-out: %v", err)
	}
	if _, err := o.Session(t.Context(), again); err != nil {
		t.Errorf("the other session: %v", err)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	o := open(t)
	idle, _ := o.signIn(phone(t, 1))
	o.wait(citizens.SessionIdle)
	if _, err := o.Session(t.Context(), idle); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("an idle session: %v", err)
	}
	busy, _ := o.signIn(phone(t, 2))
	for begun := o.cfg.Now(); o.cfg.Now().Sub(begun) < citizens.SessionLifetime; o.wait(20 * time.Minute) {
		if _, err := o.Session(t.Context(), busy); err != nil {
			t.Fatalf("after %v: %v", o.cfg.Now().Sub(begun), err)
		}
	}
	if _, err := o.Session(t.Context(), busy); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("after twelve hours: %v", err)
	}
	if err := citizens.Sweep(t.Context(), o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := o.pool.QueryRow(t.Context(), `SELECT count(*) FROM citizen_sessions`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d sessions are left, %v", left, err)
	}
}

func TestCodesEnd(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := phone(t, 1)
	old := o.want(a, citizens.Sent)
	o.wait(citizens.CodeLifetime)
	if err := o.enter(a, browser, old.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("an old code: %v", err)
	}
	replaced := o.want(a, citizens.Sent)
	o.wait(time.Hour)
	code := o.want(a, citizens.Sent)
	if err := o.enter(a, browser, replaced.Reveal()); !replaced.Equal(code) && !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("a replaced code: %v", err)
	}
	// One of its five tries is used.
	for range 4 {
		if err := o.enter(a, browser, wrong(code)); !errors.Is(err, citizens.ErrCodeInvalid) {
			t.Errorf("a wrong code: %v", err)
		}
	}
	if err := o.enter(a, browser, code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("the sixth try: %v", err)
	}
}

// Strangers cannot use up the tries of another browser's code. The limit of a day holds over
// all browsers, and a new code does not end it.
func TestTriesOfADay(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := email(t, 1)
	tries := 0
	for n := 0; tries < 25; n++ {
		stranger := secret.NewText(fmt.Sprint("stranger", n))
		code, v := o.begin(a, stranger)
		if v != citizens.Sent {
			t.Fatalf("verdict %s", v)
		}
		for range 5 {
			tries++
			_ = o.enter(a, stranger, wrong(code))
		}
		o.wait(31 * time.Minute)
	}
	if err := o.enter(a, browser, o.want(a, citizens.Sent).Reveal()); err != nil {
		t.Errorf("after 25 wrong codes of strangers: %v", err)
	}
	code := o.want(a, citizens.Sent)
	for range 5 {
		_ = o.enter(a, browser, wrong(code))
	}
	o.wait(31 * time.Minute)
	code = o.want(a, citizens.Sent)
	if err := o.enter(a, browser, code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("after 30 wrong codes: %v", err)
	}
	o.wait(24 * time.Hour)
	if err := o.enter(a, browser, o.want(a, citizens.Sent).Reveal()); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

func TestResend(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := phone(t, 1)
	o.want(a, citizens.Sent)
	for _, wait := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute} {
		o.wait(wait - time.Second)
		o.want(a, citizens.TooSoon)
		o.wait(time.Second)
		o.want(a, citizens.Sent)
	}
	o.wait(30 * time.Minute)
	o.want(a, citizens.AddressLimit) // five in an hour
	o.wait(time.Hour)
	for range 5 {
		o.want(a, citizens.Sent)
		o.wait(31 * time.Minute)
	}
	o.wait(time.Hour)
	o.want(a, citizens.AddressLimit) // ten in a day
	o.wait(24 * time.Hour)
	o.want(a, citizens.Sent)
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	o := open(t)
	for n := range 20 {
		o.want(phone(t, n), citizens.Sent)
	}
	o.want(phone(t, 20), citizens.PrefixLimit)
	o.want(phone(t, 10_000), citizens.Sent) // another prefix
	o.want(email(t, 1), citizens.Sent)
	o.wait(time.Hour)
	// Nobody has entered one of twenty: the prefix stays closed for an hour after the last one.
	// That hour is over.
	code := o.want(phone(t, 21), citizens.Sent)
	o.wait(citizens.CodeLifetime)
	o.want(phone(t, 22), citizens.PrefixClosed)
	_ = code
	o.wait(time.Hour)
	for n := range 6 {
		a := phone(t, 30+n)
		if err := o.enter(a, browser, o.want(a, citizens.Sent).Reveal()); err != nil {
			t.Fatal(err)
		}
	}
	o.wait(citizens.CodeLifetime)
	o.want(phone(t, 50), citizens.Sent) // six of 27 are entered
}

// sms asks for codes for numbers with a prefix each, and returns how many are sent. The rest
// must be refused by the limit of the service.
func (o *office) sms(s *citizens.Store, n int) (sent int) {
	o.t.Helper()
	for i := range n {
		switch _, v, err := s.Begin(o.t.Context(), citizens.Request{Address: phone(o.t, i*10_000), Browser: browser, Client: uuid.NewString()}); {
		case err != nil:
			o.t.Fatal(err)
		case v == citizens.Sent:
			sent++
		case v != citizens.ServiceLimit:
			o.t.Fatalf("verdict %s", v)
		}
	}
	return sent
}

// longAgo moves all requests to an hour of their own, days ago.
func (o *office) longAgo(days int) {
	o.t.Helper()
	if _, err := o.pool.Exec(o.t.Context(), `UPDATE sign_in_requests SET at = date_trunc('hour', $2::timestamptz) - make_interval(days => $1) WHERE at > $2::timestamptz - interval '2 hours'`, days, o.cfg.Now()); err != nil {
		o.t.Fatal(err)
	}
	o.wait(2 * time.Minute)
}

// At least 200 messages an hour, and three times the codes that were entered in the busiest
// hour of a week. An attack that caused 200 messages an hour raised the limit to 600, then to
// 1800, because messages that were sent counted.
func TestLimitOfTheService(t *testing.T) {
	t.Parallel()
	o := open(t)
	if got := o.sms(o.Store, 201); got != 200 {
		t.Errorf("%d messages in the first hour, want 200", got)
	}
	stopped := func(after time.Duration) bool {
		t.Helper()
		s, err := citizens.ReadState(t.Context(), o.pool, o.cfg.Now().Add(after), citizens.DefaultSMSPerHour, citizens.DefaultMailPerHour)
		if err != nil {
			t.Fatal(err)
		}
		return s.SMSStopped
	}
	if !stopped(0) || stopped(time.Hour) {
		t.Errorf("the alert is %v now and %v an hour later", stopped(0), stopped(time.Hour))
	}
	o.want(email(t, 1), citizens.Sent)
	o.longAgo(6)
	if got := o.sms(o.Store, 201); got != 200 {
		t.Errorf("%d messages after 200 that nobody entered, want 200", got)
	}
	o.longAgo(5)
	if _, err := o.pool.Exec(t.Context(), `UPDATE sign_in_requests SET entered = true WHERE id IN (SELECT id FROM sign_in_requests WHERE sent AND prefix IS NOT NULL ORDER BY id LIMIT 70)`); err != nil {
		t.Fatal(err)
	}
	if got := o.sms(o.Store, 211); got != 210 {
		t.Errorf("%d messages after an hour with 70 entered codes, want 210", got)
	}
	o.longAgo(4)
	o.cfg.SMSPerHour = 205
	if got := o.sms(o.instance(o.pool), 206); got != 205 {
		t.Errorf("%d messages with a ceiling of 205", got)
	}
	o.cfg.SMSPerHour = -1
	if _, err := citizens.New(o.cfg); err == nil {
		t.Error("a ceiling below 0 is accepted")
	}
}

// One code of several is entered: the others were paid for and led to nothing. All codes of
// the address counted as entered, so that one of ten kept a prefix open.
func TestOnlyTheEnteredCodeCounts(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := phone(t, 1)
	for n := range 3 {
		if _, v := o.begin(a, secret.NewText(fmt.Sprint("stranger", n))); v != citizens.Sent {
			t.Fatalf("verdict %s", v)
		}
		o.wait(3 * time.Minute)
	}
	if err := o.enter(a, browser, o.want(a, citizens.Sent).Reveal()); err != nil {
		t.Fatal(err)
	}
	rows, _ := o.pool.Query(t.Context(), `SELECT entered FROM sign_in_requests ORDER BY id`)
	entered, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil || !slices.Equal(entered, []bool{false, false, false, true}) {
		t.Errorf("entered: %v, %v", entered, err)
	}
	o.want(a, citizens.Sent) // the waits begin again
}

// hold takes locks of the service until the test ends, or release is called.
func (o *office) hold(names ...string) (release func()) {
	o.t.Helper()
	tx, err := o.pool.Begin(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.Background()) }
	o.t.Cleanup(release)
	for _, name := range names {
		if _, err := tx.Exec(o.t.Context(), `SELECT pg_advisory_xact_lock($1)`, citizens.LockKey(name)); err != nil {
			o.t.Fatal(err)
		}
	}
	return release
}

// A client above its limit waits for no lock, and only a code that will be sent waits for that
// of the whole service. Every request waited for it, and for as long as it took.
func TestWhoWaitsForTheService(t *testing.T) {
	t.Parallel()
	o := open(t)
	ask := func(a contact.Address, client string) (citizens.Verdict, error) {
		_, v, err := o.Begin(t.Context(), citizens.Request{Address: a, Browser: browser, Client: client})
		return v, err
	}
	for n := range 60 {
		if v, err := ask(email(t, n), "192.0.2.7"); v != citizens.Sent {
			t.Fatal(v, err)
		}
	}
	release := o.hold("service", "client|192.0.2.7")
	if v, err := ask(email(t, 70), "192.0.2.7"); !errors.Is(err, citizens.ErrTooManyRequests) {
		t.Errorf("a client above its limit: %s, %v", v, err)
	}
	if v, err := ask(email(t, 71), "192.0.3.8"); v != citizens.Sent {
		t.Errorf("a code by e-mail: %s, %v", v, err)
	}
	if v, err := ask(phone(t, 1), "192.0.4.9"); !errors.Is(err, citizens.ErrBusy) {
		t.Errorf("a code by SMS while the lock is held: %s, %v", v, err)
	}
	release()
	if got := o.sms(o.Store, 201); got != 200 {
		t.Fatalf("%d messages", got)
	}
	o.hold("service")
	if v, err := ask(phone(t, 250*10_000), "192.0.5.10"); v != citizens.ServiceLimit {
		t.Errorf("above the limit of the service: %s, %v", v, err)
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	o := open(t)
	for client, most := range map[string]int{"192.0.2.7": 60, "2001:db8:1:2::/64": 10} {
		for n := range most + 2 {
			_, v, err := o.Begin(t.Context(), citizens.Request{Address: email(t, n), Browser: browser, Client: client})
			if (n >= most) != (errors.Is(err, citizens.ErrTooManyRequests) && v == citizens.ClientLimited) {
				t.Errorf("request %d of %s: %s, %v", n, client, v, err)
			}
		}
		o.wait(2 * time.Hour)
	}
}

// A subscriber's /48 has 65,536 clients, and a provider's network more. Who enters codes raises
// the limits of the network, so that the phones behind one address of an operator sign in.
func TestNetworks(t *testing.T) {
	t.Parallel()
	o := open(t)
	ask := func(n int, client string) (contact.Address, secret.Text, bool) {
		t.Helper()
		code, v, err := o.Begin(t.Context(), citizens.Request{Address: email(t, n), Browser: browser, Client: client})
		if err != nil && v != citizens.ClientLimited {
			t.Fatal(err)
		}
		return email(t, n), code, v != citizens.ClientLimited // a request counts, whether a code is sent or not
	}
	for name, c := range map[string]struct {
		client func(n int) string
		most   int
		other  string
	}{
		"a /48": {func(n int) string { return fmt.Sprintf("2001:db8:1:%x::/64", n) }, 40, "2001:db8:2::/64"},
		"a /24": {func(n int) string { return fmt.Sprintf("198.51.100.%d", n%250) }, 240, "198.51.101.1"},
		"a /32": {func(n int) string { return fmt.Sprintf("2001:db9:%x:1::/64", n) }, 960, "2001:dba::/64"},
	} {
		sent := 0
		for i := range c.most + 5 {
			if _, _, ok := ask(1, c.client(i)); ok {
				sent++
			}
		}
		if _, _, ok := ask(1, c.other); sent != c.most || !ok {
			t.Errorf("%s may ask for %d codes, want %d; another network for one: %t", name, sent, c.most, ok)
		}
	}
	o.wait(2 * time.Hour)
	for n := range 50 {
		a, code, _ := ask(n, "203.0.113.7")
		if _, _, err := o.Enter(t.Context(), a, browser, code.Reveal(), money.French); err != nil {
			t.Fatal(err)
		}
	}
	o.wait(2 * time.Hour)
	sent := 0
	for range 160 {
		if _, _, ok := ask(1, "203.0.113.7"); ok {
			sent++
		}
	}
	if sent != 150 {
		t.Errorf("after an hour with 50 codes that were entered, an address may ask for %d codes in an hour, want 150", sent)
	}
}

// A flood over three instances gets exactly what the limits allow.
func TestLimitsAreExactOverInstances(t *testing.T) {
	t.Parallel()
	o := open(t)
	var instances []*citizens.Store
	for range 3 {
		pool, err := postgres.Open(t.Context(), o.dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		instances = append(instances, o.instance(pool))
	}
	flood := func(n int, do func(ctx context.Context, s *citizens.Store, i int) bool) (allowed int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for worker := range 9 {
			wg.Go(func() {
				for i := worker; i < n; i += 9 {
					if do(t.Context(), instances[worker%3], i) {
						mu.Lock()
						allowed++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		return allowed
	}
	ask := func(ctx context.Context, s *citizens.Store, a contact.Address, client string) bool {
		_, v, err := s.Begin(ctx, citizens.Request{Address: a, Browser: browser, Client: client})
		if err != nil && !errors.Is(err, citizens.ErrTooManyRequests) {
			t.Error(err)
		}
		return v == citizens.Sent
	}
	got := map[string][2]int{
		"address": {flood(60, func(ctx context.Context, s *citizens.Store, i int) bool {
			return ask(ctx, s, email(t, 1), fmt.Sprint("client", i))
		}), 1},
		"prefix": {flood(90, func(ctx context.Context, s *citizens.Store, i int) bool {
			return ask(ctx, s, phone(t, i), fmt.Sprint("client", i))
		}), 20},
		"IPv4": {flood(150, func(ctx context.Context, s *citizens.Store, i int) bool {
			return ask(ctx, s, email(t, 100+i), "192.0.2.7")
		}), 60},
		"IPv6": {flood(60, func(ctx context.Context, s *citizens.Store, i int) bool {
			return ask(ctx, s, email(t, 500+i), "2001:db8::/64")
		}), 10},
	}
	// Guesses at one code, from three instances at once.
	a := email(t, 9000)
	code := o.want(a, citizens.Sent)
	flood(60, func(ctx context.Context, s *citizens.Store, _ int) bool {
		_, _, err := s.Enter(ctx, a, browser, wrong(code), money.French)
		return err == nil
	})
	var counted int
	if err := o.pool.QueryRow(t.Context(), `SELECT count(*) FROM sign_in_failures`).Scan(&counted); err != nil {
		t.Fatal(err)
	}
	got["tries of a code"] = [2]int{counted, 5}
	for name, n := range got {
		t.Logf("%s: allowed %d, limit %d", name, n[0], n[1])
		if n[0] != n[1] {
			t.Errorf("%s: %d were allowed, want %d", name, n[0], n[1])
		}
	}
}

const agency = "018f0000-0000-7000-8000-000000000001"

var actor = operation.Actor{Kind: operation.ActorCommandLine, Name: "operator"}

// All link codes are renewed at once. Printed ones end at once, or are accepted for a time; those of two renewals ago are
// not. Links stay. Whoever has the reference key and not the database cannot make the new codes.
func TestAllLinkCodesAreRenewed(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	_, c := o.signIn(phone(t, 1))
	subject, linked := citizens.Subject{AgencyID: agency, Ref: "NIU-1"}, citizens.Subject{AgencyID: agency, Live: true, Ref: "NIU-2"}
	code := func(s citizens.Subject) string {
		t.Helper()
		codes, err := o.LinkCodes(ctx, s.AgencyID, s.Live, []string{s.Ref})
		one, other := o.LinkCode(ctx, s)
		if err != nil || other != nil || codes[0] != one {
			t.Fatalf("%q, %q, %v, %v", codes, one, err, other)
		}
		return one
	}
	proves := func(s citizens.Subject, code string) bool {
		t.Helper()
		_, err := o.Prove(ctx, c.ID, s, code)
		if err != nil && !errors.Is(err, citizens.ErrLinkRefused) {
			t.Fatal(err)
		}
		return err == nil
	}
	renew := func(overlap time.Duration, number int) {
		t.Helper()
		if e, err := o.RenewCodes(ctx, actor, overlap); err != nil || e.Number != number || e.FormerUntil.IsZero() != (overlap == 0) {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if e, err := o.CodeEpoch(ctx); err != nil || e.Number != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	var refused *operation.Error
	if _, err := o.AcceptFormer(ctx, actor, time.Hour); !errors.As(err, &refused) || refused.Code != "links.first_epoch" {
		t.Errorf("former codes of the first epoch: %v", err)
	}
	first := code(subject)
	if !proves(linked, code(linked)) {
		t.Fatal("the first code does not prove")
	}
	renew(0, 1)
	second := code(subject)
	if second == first || proves(subject, first) {
		t.Errorf("the printed code still proves, or did not change: %s, %s", first, second)
	}
	if links, err := o.Links(ctx, c.ID); err != nil || len(links) != 1 {
		t.Errorf("the links that there were: %+v, %v", links, err)
	}
	if _, err := o.AcceptFormer(ctx, actor, time.Hour); err != nil || !proves(subject, first) { // it was a mistake
		t.Errorf("the former code is not accepted again: %v", err)
	}
	renew(48*time.Hour, 2)
	third := code(subject)
	if !proves(subject, second) || !proves(subject, third) || proves(subject, first) {
		t.Error("during the overlap the codes of the last two epochs prove, and no others")
	}
	o.wait(48 * time.Hour)
	if proves(subject, second) || !proves(subject, third) {
		t.Error("after the overlap the present codes prove alone")
	}
	if _, err := o.AcceptFormer(ctx, actor, citizens.MaxOverlap+1); !errors.As(err, &refused) || refused.Code != "links.overlap_range" {
		t.Errorf("an overlap without end: %v", err)
	}
	if r, err := o.Renew(ctx, actor, subject); err != nil || r.Code == third || r.Code != code(subject) {
		t.Errorf("%+v, %v", r, err)
	}
	// The same reference key and the same numbers of epochs in another database.
	_, pool := servers.Database(t)
	other := o.instance(pool)
	for range 2 {
		if _, err := other.RenewCodes(ctx, actor, 0); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := other.LinkCode(ctx, linked); err != nil || again == code(linked) {
		t.Errorf("%s, %v", again, err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	_, c := o.signIn(phone(t, 1))
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-1"}
	code, err := o.LinkCode(ctx, subject)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]citizens.Subject{
		"another reference": {AgencyID: agency, Ref: "NIU-2"}, "live": {AgencyID: agency, Live: true, Ref: "NIU-1"},
		"another agency": {AgencyID: "018f0000-0000-7000-8000-000000000002", Ref: "NIU-1"},
	} {
		if _, err := o.Prove(ctx, c.ID, try, code); !errors.Is(err, citizens.ErrLinkRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	spelt := strings.ToLower(code[:5]) + "-" + strings.NewReplacer("0", "o", "1", "l").Replace(code[5:])
	p, err := o.Prove(ctx, c.ID, subject, spelt)
	if err != nil || !p.New || p.Link.Subject != subject || p.Link.Proof != "code" {
		t.Fatalf("%+v, %v", p, err)
	}
	if again, err := o.Prove(ctx, c.ID, subject, code); err != nil || again.New || again.Link.ID != p.Link.ID {
		t.Errorf("%+v, %v", again, err)
	}
	links, err := o.Links(ctx, c.ID)
	if err != nil || len(links) != 1 || links[0].ID != p.Link.ID {
		t.Errorf("%+v, %v", links, err)
	}
	if holders, err := o.Holders(ctx, subject); err != nil || len(holders) != 1 || holders[0].CitizenID != c.ID || !slices.Equal(holders[0].Addresses, []string{phone(t, 1).Masked()}) {
		t.Errorf("%v, %v", holders, err)
	}
	// A renewed code ends the old one and its links.
	r, err := o.Renew(ctx, actor, subject)
	renewed := r.Code
	if err != nil || r.Links != 1 || renewed == code {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := o.Prove(ctx, c.ID, subject, code); !errors.Is(err, citizens.ErrLinkRefused) {
		t.Errorf("the old code: %v", err)
	}
	if _, err := o.Prove(ctx, c.ID, subject, renewed); err != nil {
		t.Errorf("the new code: %v", err)
	}
	// Five failures a day: three above, one of the old code, one now.
	if _, err := o.Prove(ctx, c.ID, subject, "0000000000"); !errors.Is(err, citizens.ErrLinkRefused) {
		t.Errorf("the fifth failure: %v", err)
	}
	if _, err := o.Prove(ctx, c.ID, subject, renewed); !errors.Is(err, citizens.ErrLinkLimit) {
		t.Errorf("after five failures: %v", err)
	}
	o.wait(24 * time.Hour)
	if _, err := o.Prove(ctx, c.ID, subject, renewed); err != nil {
		t.Errorf("a day later: %v", err)
	}
	links, _ = o.Links(ctx, c.ID)
	if ok, err := o.Unlink(ctx, uuid.NewString(), links[0].ID); ok || err != nil {
		t.Errorf("another account ends the link: %v, %v", ok, err)
	}
	if ok, err := o.Unlink(ctx, c.ID, links[0].ID); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// A phone writes tp-1001, the agency TP-1001: the code was refused. What the code proves is
// linked, as typed first. Each try is one guess, and counts for the reference in either case.
func TestReferenceInAnotherCase(t *testing.T) {
	t.Parallel()
	o := open(t)
	_, c := o.signIn(email(t, 1))
	upper, lower := citizens.Subject{AgencyID: agency, Ref: "NIU-ÉA-1"}, citizens.Subject{AgencyID: agency, Ref: "niu-éa-1"}
	ofUpper, _ := o.LinkCode(t.Context(), upper)
	ofLower, _ := o.LinkCode(t.Context(), lower)
	for n := range 4 {
		if p, err := o.Prove(t.Context(), c.ID, lower, "0000000000"); !errors.Is(err, citizens.ErrLinkRefused) || p.Failures != n+1 {
			t.Fatalf("guess %d: %d are counted, %v", n+1, p.Failures, err)
		}
	}
	if p, err := o.Prove(t.Context(), c.ID, upper, ofLower); !errors.Is(err, citizens.ErrLinkRefused) || p.Failures != 5 {
		t.Errorf("the code of the small letters proves the capitals: %+v, %v", p, err)
	}
	_, other := o.signIn(email(t, 2))
	if p, err := o.Prove(t.Context(), other.ID, lower, ofUpper); err != nil || p.Link.Subject != upper {
		t.Errorf("the code of the capitals: %+v, %v", p, err)
	}
	if p, err := o.Prove(t.Context(), other.ID, lower, ofLower); err != nil || p.Link.Subject != lower {
		t.Errorf("the code of the small letters: %+v, %v", p, err)
	}
}

// Wrong codes of many accounts never lock out the owner of a reference. They are counted.
func TestNobodyLocksOutTheOwner(t *testing.T) {
	t.Parallel()
	o := open(t)
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-1"}
	var p citizens.Proof
	for n := range 25 {
		_, c := o.signIn(email(t, n))
		for range 4 {
			p, _ = o.Prove(t.Context(), c.ID, subject, "0000000000")
		}
	}
	if p.Failures != citizens.FailuresOfSubject {
		t.Errorf("%d failures are counted", p.Failures)
	}
	if s, err := citizens.ReadState(t.Context(), o.pool, o.cfg.Now(), citizens.DefaultSMSPerHour, citizens.DefaultMailPerHour); err != nil || s.Guessed != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if list, err := o.Attentions(t.Context(), agency, false); err != nil || len(list) != 1 || list[0].Failures != citizens.FailuresOfSubject || !list[0].AskedAt.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
	_, owner := o.signIn(email(t, 1000))
	code, _ := o.LinkCode(t.Context(), subject)
	if p, err := o.Prove(t.Context(), owner.ID, subject, code); err != nil || !p.New {
		t.Errorf("%+v, %v", p, err)
	}
}

// The check characters find every wrong character and every two that changed places.
func TestMistypedLinkCodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := citizens.CheckedCode(rapid.SliceOfN(rapid.ByteRange(0, 31), 8, 8).Draw(t, "code"))
		if !citizens.Typed(code) {
			t.Fatalf("%s is refused", code)
		}
		wrong := []byte(code)
		i := rapid.IntRange(0, 9).Draw(t, "place")
		if j := rapid.IntRange(0, 9).Draw(t, "other"); rapid.Bool().Draw(t, "swap") {
			wrong[i], wrong[j] = wrong[j], wrong[i]
		} else {
			wrong[i] = citizens.Alphabet[rapid.IntRange(0, 31).Draw(t, "character")]
		}
		if string(wrong) != code && citizens.Typed(string(wrong)) && (i < 8) {
			t.Fatalf("%s passes for %s", wrong, code)
		}
	})
}

// What a session saw last of a subject counts, in that session alone, until it ends.
func TestSeenDues(t *testing.T) {
	t.Parallel()
	o := open(t)
	token, _ := o.signIn(phone(t, 1))
	stranger, _ := o.signIn(phone(t, 2))
	subject := citizens.Subject{AgencyID: uuid.NewString(), Ref: "TP-1001"}
	due := citizens.Due{Ref: "A", Outstanding: 5000, Currency: "XAF"}
	saw := func(dues ...citizens.Due) {
		t.Helper()
		if err := o.Saw(t.Context(), token, subject, dues); err != nil {
			t.Fatal(err)
		}
	}
	seen := func(token secret.Text, subject citizens.Subject, due citizens.Due) bool {
		t.Helper()
		got, err := o.HasSeen(t.Context(), token, subject, due)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		return got[0]
	}
	saw(citizens.Due{Ref: "B", Outstanding: 1, Currency: "XAF"}, due)
	if !seen(token, subject, due) || seen(stranger, subject, due) {
		t.Error("only the session that saw the due has seen it")
	}
	for _, another := range []citizens.Due{{"A", 5001, "XAF"}, {"A", 5000, "EUR"}, {"C", 5000, "XAF"}, {"A", 0, "XAF"}} {
		if seen(token, subject, another) {
			t.Errorf("%+v was never shown", another)
		}
	}
	elsewhere := subject
	elsewhere.Live = true
	if seen(token, elsewhere, due) {
		t.Error("a due of another mode counts")
	}
	saw(citizens.Due{Ref: "A", Outstanding: 4000, Currency: "XAF"})
	if seen(token, subject, due) {
		t.Error("what was seen before the last time counts")
	}
	if err := o.SignOut(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	saw(due)
	if seen(token, subject, due) {
		t.Error("an ended session sees")
	}
}
