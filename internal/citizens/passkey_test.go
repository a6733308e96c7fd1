package citizens_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/google/uuid"

	"quittance/internal/citizens"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
)

// device is a phone or a key with passkeys.
type device struct {
	t     *testing.T
	keys  *citizens.Passkeys
	party virtualwebauthn.RelyingParty
	virtualwebauthn.Authenticator
	key virtualwebauthn.Credential
}

func (o *office) passkeys() *citizens.Passkeys {
	o.t.Helper()
	k, err := citizens.NewPasskeys(o.Store, "https://pay.example")
	if err != nil {
		o.t.Fatal(err)
	}
	return k
}

// newCredential makes a key of a device. The library writes the coordinates of a point without
// leading zeros, and such a key is malformed (RFC 8152, section 13.1.1): another one is made.
func newCredential() virtualwebauthn.Credential {
	const whole = 77 // bytes, with two coordinates of 32
	for {
		if c := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(c.Key.AttestationData()) == whole {
			return c
		}
	}
}

func newDevice(t *testing.T, k *citizens.Passkeys) *device {
	t.Helper()
	return &device{
		t: t, keys: k, party: virtualwebauthn.RelyingParty{Name: "pay.example", ID: "pay.example", Origin: "https://pay.example"},
		Authenticator: virtualwebauthn.NewAuthenticator(), key: newCredential(),
	}
}

// make answers the options of a registration.
func (d *device) make(options json.RawMessage) []byte {
	d.t.Helper()
	parsed, err := virtualwebauthn.ParseAttestationOptions(string(options))
	if err != nil {
		d.t.Fatal(err)
	}
	response := virtualwebauthn.CreateAttestationResponse(d.party, d.Authenticator, d.key, *parsed)
	var made struct {
		PublicKey struct{ User struct{ ID string } }
	}
	err = json.Unmarshal(options, &made)
	if err == nil {
		d.Options.UserHandle, err = base64.RawURLEncoding.DecodeString(made.PublicKey.User.ID)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return []byte(response)
}

// prove answers the options of a sign-in.
func (d *device) prove(options json.RawMessage) []byte {
	d.t.Helper()
	parsed, err := virtualwebauthn.ParseAssertionOptions(string(options))
	if err != nil {
		d.t.Fatal(err)
	}
	d.key.Counter++
	return []byte(virtualwebauthn.CreateAssertionResponse(d.party, d.Authenticator, d.key, *parsed))
}

// add adds the device's passkey to the account of a session.
func (d *device) add(session secret.Text) citizens.Passkey {
	d.t.Helper()
	options, err := d.keys.BeginRegistration(d.t.Context(), session)
	if err != nil {
		d.t.Fatal(err)
	}
	p, err := d.keys.FinishRegistration(d.t.Context(), session, d.make(options))
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// challenge begins a sign-in in a browser.
func (d *device) challenge(browser secret.Text) json.RawMessage {
	d.t.Helper()
	options, err := d.keys.BeginSignIn(d.t.Context(), browser)
	if err != nil {
		d.t.Fatal(err)
	}
	return options
}

func (d *device) signIn() (secret.Text, citizens.Citizen, error) {
	d.t.Helper()
	b := secret.NewText(uuid.NewString())
	return d.keys.FinishSignIn(d.t.Context(), b, d.prove(d.challenge(b)))
}

func TestPasskeys(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	d := newDevice(t, o.passkeys())
	session, c := o.signIn(phone(t, 1))
	options, err := d.keys.BeginRegistration(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"userVerification":"required"`, `"residentKey":"required"`, `"attestation":"none"`, `"id":"pay.example"`, "•••"} {
		if !strings.Contains(string(options), want) {
			t.Errorf("the options have no %s: %s", want, options)
		}
	}
	if strings.Contains(string(options), "6600000") {
		t.Errorf("the options hold the number: %s", options)
	}
	p, err := d.keys.FinishRegistration(ctx, session, d.make(options))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.told(); got[phone(t, 1).Text()] != "new_passkey   fr;" {
		t.Errorf("told %v", got)
	}
	list, err := d.keys.List(ctx, c.ID)
	if err != nil || len(list) != 1 || list[0] != p {
		t.Errorf("%+v, %v", list, err)
	}
	if err := o.SignOut(ctx, session); err != nil {
		t.Fatal(err)
	}
	o.wait(time.Hour)
	token, again, err := d.signIn()
	if err != nil || again.ID != c.ID || again.First || !slices.Equal(again.Addresses, []string{phone(t, 1).Masked()}) {
		t.Fatalf("%+v, %v", again, err)
	}
	if got, err := o.Session(ctx, token); err != nil || got.ID != c.ID {
		t.Errorf("%+v, %v", got, err)
	}
	if list, _ := d.keys.List(ctx, c.ID); !list[0].UsedAt.Equal(o.cfg.Now()) {
		t.Errorf("%+v", list)
	}
	// The count of signatures is kept: a copy of the key that is behind is refused.
	d.key.Counter = 0
	if _, _, err := d.signIn(); !errors.Is(err, passkeys.ErrRefused) {
		t.Errorf("a copy of the key: %v", err)
	}
	// Only its owner removes it, shortly after signing in. Other sessions end, and the owner is told.
	o.signedOut(token, false)
	if _, err := d.keys.Remove(ctx, secret.NewText("nobody"), p.ID); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("nobody removes it: %v", err)
	}
	stranger, _ := o.signIn(phone(t, 2))
	if ok, err := d.keys.Remove(ctx, stranger, p.ID); ok || err != nil {
		t.Errorf("another account removes it: %v, %v", ok, err)
	}
	o.wait(citizens.RecentForRemoval - time.Second)
	d.key.Counter = 20
	here, _, err := d.signIn()
	if err != nil {
		t.Fatal(err)
	}
	o.wait(time.Second)
	if _, err := d.keys.Remove(ctx, token, p.ID); !errors.Is(err, citizens.ErrSignInAgain) {
		t.Errorf("a sign-in of 10 minutes ago: %v", err)
	}
	_ = o.told()
	o.wait(citizens.RecentForRemoval - 2*time.Second)
	for _, id := range []string{"", uuid.NewString()} {
		if ok, err := d.keys.Remove(ctx, here, id); ok || err != nil {
			t.Errorf("%q: %v, %v", id, ok, err)
		}
	}
	if ok, err := d.keys.Remove(ctx, here, p.ID); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	o.signedOut(here, false)
	o.signedOut(token, true)
	o.signedOut(stranger, false)
	if got := o.told(); len(got) != 1 || got[phone(t, 1).Text()] != "passkey_removed   fr;" {
		t.Errorf("told %v", got)
	}
	d.key.Counter = 40
	if _, _, err := d.signIn(); !errors.Is(err, passkeys.ErrRefused) {
		t.Errorf("a removed passkey: %v", err)
	}
	var records []string
	if err := o.pool.QueryRow(ctx, `SELECT array_agg(action ORDER BY id) FROM audit WHERE subject = $1`, c.ID).Scan(&records); err != nil || !slices.Equal(records, []string{"passkey.add", "passkey.remove"}) {
		t.Errorf("recorded %v, %v", records, err)
	}
}

// A phone made a passkey that stayed on it. Months later its maker began to sync passkeys: the
// key may be on other devices now, and its count went back to 0. Its owner was refused for ever.
// Whoever copies a key that stays on one device is refused as before.
func TestPasskeyThatIsSyncedLater(t *testing.T) {
	t.Parallel()
	o := open(t)
	d := newDevice(t, o.passkeys())
	session, c := o.signIn(phone(t, 1))
	d.add(session)
	signIn := func(what string, count uint32, synced bool, want error) {
		t.Helper()
		d.key.Counter, d.Options.BackupEligible, d.Options.BackupState = count-1, synced, synced
		if _, _, err := d.signIn(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		list, err := d.keys.List(t.Context(), c.ID)
		if stored := synced && want == nil; err != nil || len(list) != 1 || list[0].Synced != stored {
			t.Errorf("%s: %+v, %v, want synced %v", what, list, err, stored)
		}
	}
	signIn("on one device", 5, false, nil)
	key := d.key.Key
	d.key.Key = newCredential().Key
	signIn("another key that says it is synced", 6, true, passkeys.ErrRefused)
	d.key.Key = key
	signIn("a copy that is behind", 4, false, passkeys.ErrRefused)
	signIn("synced now", 6, true, nil)
	signIn("the other device does not count", 0, true, nil)
	signIn("again", 0, true, nil)
	signIn("a device that counts", 3, true, nil)
	signIn("a device that is behind", 2, true, nil)
	signIn("no longer synced", 9, false, nil)
	signIn("a copy of it that is behind", 9, false, passkeys.ErrRefused)
	var records int
	if err := o.pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'passkey.count_fell' AND subject = $1`, c.ID).Scan(&records); err != nil || records != 2 {
		t.Errorf("%d records of falling counts, want 2: %v", records, err)
	}
}

func (o *office) signedOut(session secret.Text, want bool) {
	o.t.Helper()
	if _, err := o.Session(o.t.Context(), session); errors.Is(err, citizens.ErrSignedOut) != want {
		o.t.Errorf("the session: %v", err)
	}
}

// Signing out everywhere ends all sessions of the account, and nobody else's.
func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	one, c := o.signIn(phone(t, 1))
	o.wait(time.Minute)
	two, _ := o.signIn(phone(t, 1))
	stranger, other := o.signIn(phone(t, 2))
	for n, account := range []citizens.Citizen{c, other} {
		if _, err := o.Remember(ctx, account.ID, phone(t, n+1), secret.Text{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.SignOutEverywhere(ctx, one); err != nil {
		t.Fatal(err)
	}
	o.signedOut(one, true)
	o.signedOut(two, true)
	o.signedOut(stranger, false)
	if err := o.SignOutEverywhere(ctx, one); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("again: %v", err)
	}
	var known string
	if err := o.pool.QueryRow(ctx, `SELECT string_agg(citizen_id::text, ',') FROM known_browsers`).Scan(&known); err != nil || known != other.ID {
		t.Errorf("known browsers of %q, want those of the other account; %v", known, err)
	}
	var records int
	if err := o.pool.QueryRow(ctx, `SELECT count(*) FROM audit WHERE action = 'citizen.sign_out_everywhere' AND subject = $1`, c.ID).Scan(&records); err != nil || records != 1 {
		t.Errorf("%d records, %v", records, err)
	}
}

// A passkey is offered to an account without one, shortly after its sign-in.
func TestPasskeyIsOffered(t *testing.T) {
	t.Parallel()
	o := open(t)
	d := newDevice(t, o.passkeys())
	session, _ := o.signIn(phone(t, 1))
	offered := func(want bool) {
		t.Helper()
		if got, err := d.keys.Offered(t.Context(), session); err != nil || got != want {
			t.Errorf("offered: %v, %v", got, err)
		}
	}
	offered(true)
	o.wait(citizens.RecentSignIn)
	offered(false)
	session, _ = o.signIn(phone(t, 1))
	d.add(session)
	offered(false)
}

func TestPasskeyAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	d := newDevice(t, o.passkeys())
	session, _ := o.signIn(phone(t, 1))
	other, _ := o.signIn(phone(t, 2))
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, passkeys.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	register := func(in, out secret.Text, change func(d *device)) error {
		t.Helper()
		options, err := d.keys.BeginRegistration(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		changed := *d
		change(&changed)
		_, err = d.keys.FinishRegistration(ctx, out, changed.make(options))
		return err
	}
	refused("another session's challenge", register(session, other, func(*device) {}))
	refused("another origin", register(session, session, func(d *device) { d.party.Origin = "https://pay.example.evil.example" }))
	refused("another party", register(session, session, func(d *device) { d.party.ID = "evil.example" }))
	refused("no verification of the user", register(session, session, func(d *device) { d.Options.UserNotVerified = true }))
	refused("late", register(session, session, func(*device) { o.wait(passkeys.ChallengeLifetime) }))
	_, err := d.keys.FinishRegistration(ctx, session, []byte("{}"))
	refused("no challenge", err)
	d.add(session)
	refused("the same passkey for another account", register(other, other, func(*device) {}))
	o.wait(citizens.RecentSignIn)
	if _, err := d.keys.BeginRegistration(ctx, session); !errors.Is(err, citizens.ErrSignInAgain) {
		t.Errorf("an old sign-in: %v", err)
	}
	if _, err := d.keys.BeginRegistration(ctx, secret.NewText("nobody")); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("nobody: %v", err)
	}

	finish := func(change func(d *device)) error {
		t.Helper()
		b := secret.NewText(uuid.NewString())
		options := d.challenge(b)
		changed := *d
		change(&changed)
		d.key.Counter = changed.key.Counter + 1
		_, _, err := d.keys.FinishSignIn(ctx, b, changed.prove(options))
		return err
	}
	refused("another origin", finish(func(d *device) { d.party.Origin = "http://pay.example" }))
	refused("no verification of the user", finish(func(d *device) { d.Options.UserNotVerified = true }))
	refused("another account", finish(func(d *device) { id := uuid.New(); d.Options.UserHandle = id[:] }))
	refused("an unknown passkey", finish(func(d *device) { d.key = newCredential() }))
	refused("another key", finish(func(d *device) { d.key.Key = newCredential().Key }))
	refused("late", finish(func(*device) { o.wait(passkeys.ChallengeLifetime) }))

	// A challenge is for one browser, and used once, also by an answer that is refused.
	one, two := secret.NewText("one"), secret.NewText("two")
	options := d.challenge(one)
	d.challenge(two)
	_, _, err = d.keys.FinishSignIn(ctx, two, d.prove(options))
	refused("another browser's challenge", err)
	_, _, err = d.keys.FinishSignIn(ctx, one, []byte("{"))
	refused("malformed", err)
	_, _, err = d.keys.FinishSignIn(ctx, one, d.prove(options))
	refused("a used challenge", err)
	options = d.challenge(one)
	answer := d.prove(options)
	if _, _, err := d.keys.FinishSignIn(ctx, one, answer); err != nil {
		t.Errorf("a good answer: %v", err)
	}
	_, _, err = d.keys.FinishSignIn(ctx, one, answer)
	refused("a repeated answer", err)
	var left int
	d.challenge(one)
	o.wait(passkeys.ChallengeLifetime)
	if err := citizens.Sweep(ctx, o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	if err := o.pool.QueryRow(ctx, `SELECT count(*) FROM passkey_challenges`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d challenges are left, %v", left, err)
	}
}

func TestManyPasskeys(t *testing.T) {
	t.Parallel()
	o := open(t)
	k := o.passkeys()
	session, _ := o.signIn(phone(t, 1))
	for range citizens.MaxPasskeys {
		newDevice(t, k).add(session)
	}
	full := func(when string) {
		t.Helper()
		if _, err := k.BeginRegistration(t.Context(), session); !errors.Is(err, citizens.ErrTooManyPasskeys) {
			t.Errorf("%s: %v", when, err)
		}
	}
	full("one more")
	// Removing them does not help on the same day: each costs a message.
	if _, err := o.pool.Exec(t.Context(), `DELETE FROM citizen_passkeys`); err != nil {
		t.Fatal(err)
	}
	full("after a removal, also when its message was sent")
	_ = o.told()
	full("after the messages")
}

// Ten passkeys are added a day, also when two browsers add the last one at the same moment: the
// count was made before the lock.
func TestLastPasskeyOfTheDay(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	k := o.passkeys()
	session, c := o.signIn(phone(t, 1))
	for range citizens.MaxPasskeys - 1 {
		newDevice(t, k).add(session)
	}
	if _, err := o.pool.Exec(ctx, `DELETE FROM citizen_passkeys`); err != nil {
		t.Fatal(err)
	}
	o.wait(time.Minute)
	another, _ := o.signIn(phone(t, 1))
	// Both have counted before either holds the lock.
	id := uuid.MustParse(c.ID)
	sum := sha256.Sum256(append([]byte("citizens|passkeys|"), id[:]...))
	holder, err := o.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(sum[:]))); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	for _, in := range []secret.Text{session, another} {
		d := newDevice(t, k)
		options, err := k.BeginRegistration(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		made := d.make(options)
		go func() {
			_, err := k.FinishRegistration(ctx, in, made)
			ended <- err
		}()
	}
	for waiting := 0; waiting < 2; {
		if err := o.pool.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid = $1 AND objid = $2`, binary.BigEndian.Uint32(sum[:4]), binary.BigEndian.Uint32(sum[4:8])).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := holder.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	one, two := <-ended, <-ended
	if one != nil {
		one, two = two, one
	}
	if one != nil || !errors.Is(two, citizens.ErrTooManyPasskeys) {
		t.Errorf("the last passkey of the day: %v, %v", one, two)
	}
}

// Whoever gets a recycled number does not get into the account that signs in with a passkey,
// and its owner not into the new one. Without a sign-in of 90 days a passkey's account proves
// its links again as every other.
func TestPasskeysAndRecycledNumbers(t *testing.T) {
	t.Parallel()
	o := open(t)
	d := newDevice(t, o.passkeys())
	session, c := o.signIn(phone(t, 1))
	d.add(session)
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-1"}
	o.prove(c, subject)
	o.wait(80 * 24 * time.Hour)
	if _, _, err := d.signIn(); err != nil {
		t.Fatal(err)
	}
	o.wait(20 * 24 * time.Hour)
	if _, stranger := o.signIn(phone(t, 1)); stranger.ID == c.ID || !stranger.First || len(o.links(stranger)) != 0 {
		t.Errorf("the next owner of the number gets %+v", stranger)
	}
	if _, again, err := d.signIn(); err != nil || again.ID != c.ID || len(o.links(c)) != 1 || len(again.Addresses) != 0 {
		t.Errorf("the owner gets %+v with %v, %v", again, o.links(c), err)
	}
	o.wait(90 * 24 * time.Hour)
	if _, _, err := d.signIn(); err != nil || len(o.links(c)) != 0 {
		t.Errorf("after 90 days: %v, %v", o.links(c), err)
	}
}

func TestPasskeysOfAddresses(t *testing.T) {
	t.Parallel()
	o := open(t)
	for address, want := range map[string]string{"https://pay.example": "pay.example", "https://pay.example:8443/": "pay.example", "http://127.0.0.1:8080": "localhost", "http://localhost:8080": "localhost"} {
		k, err := citizens.NewPasskeys(o.Store, address)
		if err != nil || !k.Available() {
			t.Fatalf("%s: %v", address, err)
		}
		if options, err := k.BeginSignIn(t.Context(), browser); err != nil || !bytes.Contains(options, []byte(`"rpId":"`+want+`"`)) {
			t.Errorf("%s: %s, %v", address, options, err)
		}
	}
	k, err := citizens.NewPasskeys(o.Store, "http://192.0.2.1")
	if err != nil || k.Available() {
		t.Errorf("%v", err)
	}
	if _, err := k.BeginSignIn(t.Context(), browser); !errors.Is(err, passkeys.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := citizens.NewPasskeys(o.Store, "pay.example"); err == nil {
		t.Error("an address without a scheme")
	}
}
