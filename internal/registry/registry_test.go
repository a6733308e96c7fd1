package registry_test

import (
	"crypto/sha256"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/test/registries"
)

func TestEndpointsByScopeModeAndEvent(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	urls := func(platform, live bool, event string) string {
		var out []string
		for _, e := range r.Endpoints(registries.AppA, platform, live, event) {
			out = append(out, e.URL)
			if len(e.Secrets) != 1 || e.Locked {
				t.Errorf("%s has %d secrets, locked %v", e.URL, len(e.Secrets), e.Locked)
			}
			if again, ok := r.Endpoint(e.ID); !ok || !reflect.DeepEqual(again, e) {
				t.Errorf("Endpoint(%s) = %+v, %v", e.ID, again, ok)
			}
		}
		return strings.Join(out, " ")
	}
	const own, platform = "http://127.0.0.1:9001/inbox/guichet", "https://portal.example.org/hooks"
	for _, c := range []struct {
		platform, live bool
		event, want    string
	}{
		{false, false, "checkout.completed", own},
		{true, false, "checkout.completed", own + " " + platform},
		{true, false, "checkout.failed", own},
		{true, true, "checkout.completed", platform}, // the application's is for test only
		{false, true, "checkout.completed", ""},
		{true, false, "checkout.expired", ""},
	} {
		if got := urls(c.platform, c.live, c.event); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	if got := r.Endpoints("", false, false, "checkout.completed"); got != nil {
		t.Errorf("no application, no platform: %v", got)
	}
	e := r.Endpoints(registries.AppA, false, false, "checkout.completed")[0]
	if e.MaxInFlight != 3 || e.MaxPerSecond != 50 || e.Secrets[0].Reveal() != registries.WebhookSecret || !e.Test || e.Live {
		t.Errorf("endpoint = %+v", e)
	}
}

func TestConnectorsAndSimulators(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	own, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo)
	want := mtn.Account{
		BaseURL: "https://momo.example.org", TargetEnvironment: "sandbox", SubscriptionKey: "momo-sub-private", APIUser: "momo-user", APIKey: "momo-key-private",
	}
	if !ok || own.Simulated || own.Account != want {
		t.Errorf("own account = %+v, %v", own, ok)
	}
	simulated := airtel.Account{BaseURL: "http://127.0.0.1:9001/airtel", ClientID: registries.AgencyA, ClientSecret: "simulator"}
	if c, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomoB); !ok || !c.Simulated || c.Account != simulated {
		t.Errorf("missing test account = %+v, %v", c, ok)
	}
	if c, ok := r.MerchantAccount(registries.AgencyA, true, checkout.OfferMomoB); ok {
		t.Errorf("something stands in for a live account: %+v", c)
	}
	if c, ok := r.MerchantAccount(registries.AgencyB, false, checkout.OfferMomo); ok {
		t.Errorf("an unknown agency has an account: %+v", c)
	}
	if c, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferCashAgency); ok {
		t.Errorf("cash has an account: %+v", c)
	}
	production := h.Open(t, func(cfg *registries.Config) { cfg.Simulators = "" })
	if c, ok := production.MerchantAccount(registries.AgencyA, false, checkout.OfferMomoB); ok {
		t.Errorf("outside developer mode the simulators stand in: %+v", c)
	}
}

// A collection finds its account after the account's address or secret was corrected, and
// after the agency has another account. Collections of the first release name an account in
// another form, which contains the address.
func TestAccountOfCollection(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	present := func() mtn.Account {
		t.Helper()
		a, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo)
		if !ok {
			t.Fatal("no account")
		}
		return a.Account.(mtn.Account)
	}
	finds := func(fingerprint string, want mtn.Account, replaced bool) {
		t.Helper()
		a, ok := r.AccountOfCollection(registries.AgencyA, false, checkout.OfferMomo, fingerprint)
		if !ok || a.Account != want || a.Replaced != replaced {
			t.Errorf("%s: account %#v with user %v, replaced %v, found %v", fingerprint, a.Account, want.APIUser, a.Replaced, ok)
		}
	}
	first := present()
	if a, _ := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo); !slices.Equal(a.CallbackNetworks, []netip.Prefix{netip.MustParsePrefix("41.202.16.0/20"), netip.MustParsePrefix("2c0f:f000::/32")}) {
		t.Errorf("callback networks %v", a.CallbackNetworks)
	}
	finds("", first, false)
	finds(first.Fingerprint(), first, false)
	finds(first.EarlierFingerprint(), first, false)

	replaced := func() (n int) {
		t.Helper()
		if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM replaced_accounts`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	h.Seed(t, registries.Edit(t, "momo-key-private", "momo-key-rotated"))
	h.Seed(t, registries.Edit(t, "momo-key-private", "momo-key-rotated")) // changes nothing
	if r = h.Open(t); replaced() != 0 {
		t.Error("a rotated secret is kept")
	}
	rotated := present()
	finds(first.Fingerprint(), rotated, false)
	finds(first.EarlierFingerprint(), rotated, false)

	h.Seed(t, registries.Edit(t, "https://momo.example.org", "https://momo.example.com"))
	r = h.Open(t)
	moved := present()
	if moved.BaseURL != "https://momo.example.com" {
		t.Fatalf("%+v", moved)
	}
	finds(first.Fingerprint(), moved, false)
	finds(first.EarlierFingerprint(), moved, false)
	finds(moved.EarlierFingerprint(), moved, false)

	h.Seed(t, registries.Edit(t, "api_user: momo-user", "api_user: momo-other"))
	r = h.Open(t)
	other := present()
	finds(other.Fingerprint(), other, false)
	for _, fingerprint := range []string{first.Fingerprint(), first.EarlierFingerprint(), moved.EarlierFingerprint()} {
		finds(fingerprint, moved, true)
	}
	if a, ok := r.AccountOfCollection(registries.AgencyA, false, checkout.OfferMomo, "0123456789abcdef"); ok {
		t.Errorf("an unknown fingerprint finds %#v", a.Account)
	}
	if a, ok := r.AccountOfCollection(registries.AgencyA, true, checkout.OfferMomo, first.Fingerprint()); ok {
		t.Errorf("the other mode finds %#v", a.Account)
	}
}

// The contract's list of card currencies lacks XAF. An acquirer takes it when the agency's
// account of that mode says so.
func TestTakes(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	for _, c := range []struct {
		offer, takes, refuses string
	}{
		{checkout.OfferMomo, "XAF", "EUR XOF xaf"},
		{checkout.OfferMomoB, "XAF", "EUR"},
		{checkout.OfferCashAgency, "XAF", "EUR"},
		{checkout.OfferCard, "EUR USD JPY", "XAF XOF"}, // of the simulators, in developer mode
		{"bank", "", "XAF EUR"},
	} {
		for _, code := range strings.Fields(c.takes) {
			if !r.Takes(registries.AgencyA, false, c.offer, code) || !r.Takes(registries.AgencyA, true, c.offer, code) { // no account is needed
				t.Errorf("%s does not take %s", c.offer, code)
			}
		}
		for _, code := range append(strings.Fields(c.refuses), "") {
			if r.Takes(registries.AgencyA, false, c.offer, code) {
				t.Errorf("%s takes %q", c.offer, code)
			}
		}
	}

	account := func(xaf string) string {
		return "agencies: [{id: " + registries.AgencyA + ", slug: impots, name: X, connectors: {test: {card: {base_url: https://card.example.org, merchant: m, secret: card-secret-private" + xaf + "}}}}]"
	}
	for _, c := range []struct {
		xaf   string
		takes bool
	}{{"", false}, {", xaf: true", true}, {", xaf: false", false}, {", xaf: true", true}, {"", false}} {
		if report := h.Seed(t, account(c.xaf)); !report.Changed && c.xaf != "" {
			t.Errorf("%q is no change", c.xaf)
		}
		if report := h.Seed(t, account(c.xaf)); report.Changed {
			t.Errorf("%q again is a change", c.xaf)
		}
		r = h.Open(t)
		if got := r.Takes(registries.AgencyA, false, checkout.OfferCard, "XAF"); got != c.takes {
			t.Errorf("with %q the acquirer takes XAF: %v", c.xaf, got)
		}
		if !r.Takes(registries.AgencyA, false, checkout.OfferCard, "EUR") || r.Takes(registries.AgencyA, true, checkout.OfferCard, "XAF") || r.Takes(registries.AgencyB, false, checkout.OfferCard, "XAF") {
			t.Errorf("%q changes another currency, mode or agency", c.xaf)
		}
	}

	// Without the master key the account cannot be used, but its currencies are known.
	h.Seed(t, account(", xaf: true"))
	r = h.Open(t, withoutTheOldKey(t, h))
	if c, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferCard); !ok || !c.Locked || c.Account != (card.Account{BaseURL: "https://card.example.org", XAF: true}) {
		t.Errorf("locked account: %+v, %v", c, ok)
	}
}

// An earlier release stored the flag xaf in a column of its own. After the migration its
// row is the same account.
func TestAccountOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	sealed, err := h.Keys.Seal("connector accounts", []byte(`{"merchant":"impots","secret":"s3cret-of-card"}`), []byte(registries.AgencyA+"/live/card"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../postgres/migrations/0014_account_flags.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	h.Exec(t, down)
	h.Exec(t, `INSERT INTO connector_accounts (agency_id, live, offer, base_url, sealed, xaf) VALUES ($1, true, 'card', 'https://acquirer.example.org', $2, true)`, registries.AgencyA, sealed)
	h.Exec(t, up)
	h.SignForged(t)
	want := card.Account{BaseURL: "https://acquirer.example.org", Merchant: "impots", Secret: "s3cret-of-card", XAF: true}
	if a, ok := h.Open(t).MerchantAccount(registries.AgencyA, true, checkout.OfferCard); !ok || a.Locked || a.Account != want {
		t.Errorf("account = %+v, %v", a, ok)
	}
}

func TestChangeIsSeenWithinASecond(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	digest := sha256.Sum256([]byte(registries.KeyTest))
	h.Write(t, `UPDATE api_keys SET revoked_at = now() WHERE hash = $1`, digest[:])
	registries.Within(t, 5*time.Second, "revocation", func() bool {
		_, err := r.AuthenticateKey(registries.KeyTest)
		return errors.Is(err, identity.ErrKeyRevoked)
	})
	// The change is seen although its notification is lost.
	h.Exec(t, `ALTER TABLE webhook_endpoints DISABLE TRIGGER USER`)
	h.Exec(t, `UPDATE webhook_endpoints SET max_in_flight = 5 WHERE application_id = $1`, registries.AppA)
	h.Exec(t, `UPDATE registry_revision SET revision = revision + 1`)
	registries.Within(t, 5*time.Second, "cap", func() bool {
		return r.Endpoints(registries.AppA, false, false, "checkout.completed")[0].MaxInFlight == 5
	})
	// The use of a key is not a change.
	var before, after int64
	revision := func(to *int64) {
		if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(to); err != nil {
			t.Fatal(err)
		}
	}
	revision(&before)
	h.Exec(t, `UPDATE api_keys SET last_used_at = now()`)
	if revision(&after); after != before {
		t.Error("the use of a key counts as a change of the registry")
	}
}

func TestPostgresAway(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	pool, g := h.Gate(t)
	r := h.Open(t, func(cfg *registries.Config) { cfg.Pool = pool })
	registries.Run(t, r)
	g.Shut(true)
	registries.Within(t, 5*time.Second, "noticing", func() bool { return r.Age() > time.Second })
	if _, err := r.AuthenticateKey(registries.KeyTest); err != nil {
		t.Errorf("while Postgres is away: %v", err)
	}
	if _, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo); !ok {
		t.Error("while Postgres is away an account is missing")
	}
	digest := sha256.Sum256([]byte(registries.KeyTest))
	h.Write(t, `UPDATE api_keys SET revoked_at = now() WHERE hash = $1`, digest[:]) // with another connection
	g.Shut(false)
	registries.Within(t, 2*time.Second, "catching up", func() bool {
		_, err := r.AuthenticateKey(registries.KeyTest)
		return errors.Is(err, identity.ErrKeyRevoked)
	})
}

// An instance that is cut off from Postgres does not hear of revocations. It took revoked
// keys for as long as it was cut off.
func TestCutOffFromPostgres(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	pool, g := h.Gate(t)
	r := h.Open(t, func(cfg *registries.Config) { cfg.Pool, cfg.MaxAge = pool, 2*time.Second })
	registries.Run(t, r)
	clerk, err := r.AuthenticateClerk(registries.ClerkTest)
	if err != nil || r.Fresh() != nil {
		t.Fatal(err, r.Fresh())
	}
	stale := func() bool {
		_, key := r.AuthenticateKey(registries.KeyTest)
		_, unknown := r.AuthenticateKey("sk_test_0123456789ABCDEFGHIJ")
		_, presented := r.AuthenticateClerk(registries.ClerkTest)
		_, signedIn := r.ClerkByKey(clerk.KeyID)
		for _, err := range []error{key, unknown, presented, signedIn, r.Fresh()} {
			if !errors.Is(err, identity.ErrStale) || errors.Is(err, identity.ErrUnauthorized) {
				return false
			}
		}
		return true
	}
	for _, cut := range []func(bool){g.Shut, g.Hold} {
		cut(true)
		if _, err := r.AuthenticateKey(registries.KeyTest); err != nil {
			t.Errorf("at once: %v", err)
		}
		registries.Within(t, 15*time.Second, "no news", stale)
		cut(false)
		registries.Within(t, 10*time.Second, "news again", func() bool {
			_, err := r.AuthenticateKey(registries.KeyTest)
			return err == nil && r.Fresh() == nil
		})
	}
}

// withoutTheOldKey signs all rows with a new master key, and makes an instance that has that key alone:
// what the old one sealed does not open.
func withoutTheOldKey(t *testing.T, h registries.House) func(*registries.Config) {
	t.Helper()
	both, newest := lists(t, h)
	err := registry.Change(t.Context(), h.Pool, both, registries.Epoch, func(tx *registry.Tx) error {
		if _, _, _, _, err := tx.Rows().Again(t.Context(), tx, 1000); err != nil {
			return err
		}
		return tx.Rows().Conclude(t.Context(), tx, false, registries.Epoch)
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg *registries.Config) { cfg.Keys = newest }
}

// One row is sealed with a key that this process lacks. The rest of the registry works.
func TestMissingMasterKeyLocksItsRowsOnly(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t, withoutTheOldKey(t, h))
	if _, err := r.AuthenticateKey(registries.KeyTest); err != nil {
		t.Error(err)
	}
	if e, ok := r.ERP(registries.AgencyA, false); !ok || !e.Locked || !e.Auth.Secret.Empty() {
		t.Errorf("ERP = %+v, %v", e, ok)
	}
	if c, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo); !ok || !c.Locked || c.Simulated {
		t.Errorf("account = %+v, %v", c, ok)
	}
	if e := r.Endpoints(registries.AppA, false, false, "checkout.completed"); len(e) != 1 || !e[0].Locked || len(e[0].Secrets) != 0 {
		t.Errorf("endpoints = %+v", e)
	}
}
