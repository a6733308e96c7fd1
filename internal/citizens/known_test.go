package citizens_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/secret"
	"quittance/money"
)

// known signs in and returns the cookie of the browser.
func (o *office) known(a contact.Address, cookie secret.Text) (secret.Text, citizens.Citizen) {
	o.t.Helper()
	_, c := o.signIn(a)
	cookie, err := o.Remember(o.t.Context(), c.ID, a, cookie)
	if err != nil || cookie.Empty() {
		o.t.Fatal(cookie, err)
	}
	return cookie, c
}

// ask asks for a code in a browser with a cookie, as a client of its own.
func (o *office) ask(a contact.Address, b, cookie secret.Text) (secret.Text, citizens.Verdict) {
	o.t.Helper()
	code, v, err := o.Begin(o.t.Context(), citizens.Request{Address: a, Browser: b, Client: uuid.NewString(), Known: cookie})
	if err != nil {
		o.t.Fatal(err)
	}
	return code, v
}

// strangers ask for as many codes of an address as they get in a day, and enter wrong ones.
func (o *office) strangers(a contact.Address) {
	o.t.Helper()
	sent := 0
	for n := range 14 {
		b := secret.NewText(fmt.Sprint("stranger", n))
		code, v := o.begin(a, b)
		if v == citizens.Sent {
			sent++
			for range 5 {
				_ = o.enter(a, b, wrong(code))
			}
		}
		o.wait(31 * time.Minute)
	}
	if _, v := o.begin(a, secret.NewText("another stranger")); v != citizens.AddressLimit || sent < 9 {
		o.t.Fatalf("strangers have got %d codes, then %s", sent, v)
	}
}

// Whoever knows a number could ask for all its codes of a day, or enter wrong ones, and lock
// out its owner.
func TestStrangersDoNotLockOutAKnownBrowser(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := phone(t, 1)
	cookie, _ := o.known(a, secret.Text{})
	o.wait(31 * time.Minute)
	o.strangers(a)
	code, v := o.ask(a, browser, cookie)
	if v != citizens.Sent {
		t.Fatalf("the owner's browser: %s", v)
	}
	if _, _, err := o.Enter(t.Context(), a, browser, code.Reveal(), money.French); err != nil {
		t.Errorf("after 30 wrong codes of strangers: %v", err)
	}
	// The owner's browser has the limits of an address, counted for itself.
	for range 4 {
		if _, v := o.ask(a, browser, cookie); v != citizens.Sent {
			t.Errorf("verdict %s", v)
		}
		o.wait(6 * time.Minute)
	}
	if _, v := o.ask(a, browser, cookie); v != citizens.AddressLimit {
		t.Errorf("the sixth code of an hour: %s", v)
	}
	o.wait(time.Hour)
	for n := range 5 {
		if _, v := o.ask(a, browser, cookie); v != citizens.Sent {
			t.Errorf("code %d: %s", 5+n, v)
		}
		o.wait(31 * time.Minute)
	}
	if _, v := o.ask(a, browser, cookie); v != citizens.AddressLimit {
		t.Errorf("the eleventh code of a day: %s", v)
	}
}

// Twenty codes that nobody enters close the prefix of a number, and 200 stop SMS of the
// service. Both stay open for a browser that has signed in with the number before, up to the
// ceiling of the service.
func TestAKnownBrowserOfAClosedPrefix(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.cfg.SMSPerHour = 202
	o.Store = o.instance(o.pool)
	a := phone(t, 1)
	cookie, _ := o.known(a, secret.Text{})
	o.wait(2 * time.Hour)
	for n := range 20 {
		o.want(phone(t, 100+n), citizens.Sent)
	}
	o.want(a, citizens.PrefixLimit)
	if _, v := o.ask(a, browser, cookie); v != citizens.Sent {
		t.Errorf("above the limit of the prefix: %s", v)
	}
	o.wait(20 * time.Minute)
	for n := range 179 {
		o.want(phone(t, (1+n)*10_000), citizens.Sent)
	}
	o.want(phone(t, 250*10_000), citizens.ServiceLimit)
	if _, v := o.ask(a, browser, cookie); v != citizens.Sent {
		t.Errorf("above the limit of the service: %s", v)
	}
	o.wait(2 * time.Minute)
	if _, v := o.ask(a, browser, cookie); v != citizens.Sent {
		t.Errorf("the last one below the ceiling: %s", v)
	}
	o.wait(5 * time.Minute)
	if _, v := o.ask(a, browser, cookie); v != citizens.ServiceLimit {
		t.Errorf("above the ceiling: %s", v)
	}
}

// What a cookie is good for: its own addresses, for 180 days, until the account is erased or
// has lost the address.
func TestKnownBrowsers(t *testing.T) {
	t.Parallel()
	o := open(t)
	a, other := email(t, 1), email(t, 2)
	isKnown := func(a contact.Address, cookie secret.Text) bool {
		t.Helper()
		known := 0
		if _, v := o.ask(a, secret.NewText(uuid.NewString()), cookie); v != citizens.Sent {
			t.Fatalf("verdict %s", v)
		}
		if err := o.pool.QueryRow(t.Context(), `SELECT count(known) FROM (SELECT known FROM sign_in_requests ORDER BY id DESC LIMIT 1) r`).Scan(&known); err != nil {
			t.Fatal(err)
		}
		o.wait(25 * time.Hour)
		return known == 1
	}
	cookie, c := o.known(a, secret.Text{})
	if _, err := o.Session(t.Context(), cookie); err == nil {
		t.Error("the cookie opens a session")
	}
	if !isKnown(a, cookie) || isKnown(other, cookie) {
		t.Error("a browser is known for its address alone")
	}
	for name, bad := range map[string]string{"changed": cookie.Reveal()[1:], "none": "", "no base64": "%%%"} {
		if isKnown(a, secret.NewText(bad)) {
			t.Errorf("%s: a known browser", name)
		}
	}
	// One browser of two people: the cookie is good for both.
	shared, _ := o.known(other, cookie)
	if !isKnown(a, shared) || !isKnown(other, shared) {
		t.Error("a browser forgets its first person")
	}
	// The sixth browser of an address replaces the first one.
	for range 5 {
		o.wait(time.Minute)
		if _, err := o.Remember(t.Context(), c.ID, a, secret.Text{}); err != nil {
			t.Fatal(err)
		}
	}
	if isKnown(a, cookie) || !isKnown(other, shared) {
		t.Error("an address has more than five browsers")
	}
	if erased, err := o.Erase(t.Context(), actor, other, ""); err != nil || !erased {
		t.Fatal(erased, err)
	}
	if isKnown(other, shared) {
		t.Error("a browser is known after the erasure")
	}
	var left int
	if err := o.pool.QueryRow(t.Context(), `SELECT count(*) FROM known_browsers`).Scan(&left); err != nil || left != 5 {
		t.Errorf("%d browsers are left, %v", left, err)
	}
	old, _ := o.known(email(t, 3), secret.Text{})
	o.wait(citizens.KnownFor)
	if isKnown(email(t, 3), old) {
		t.Error("a browser is known for ever")
	}
	if err := citizens.Sweep(t.Context(), o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	if err := o.pool.QueryRow(t.Context(), `SELECT count(*) FROM known_browsers`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d browsers are left after their time, %v", left, err)
	}
	// The next owner of a recycled number has none of the browsers of the one before.
	recycled := email(t, 4)
	before, _ := o.known(recycled, secret.Text{})
	o.wait(91 * 24 * time.Hour)
	o.signIn(recycled)
	if isKnown(recycled, before) {
		t.Error("a browser of the owner before is known")
	}
}
