// Package registries gives tests a registry: a database, a registry file that uses every
// field, and instances that read the registry.
package registries

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/bcrypt"

	"quittance/internal/connector/all"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/test/await"
	"quittance/test/servers"
)

// Ids, keys and secrets of Full.
const (
	AgencyA       = "018f0000-0000-7000-8000-000000000001"
	AgencyB       = "018f0000-0000-7000-8000-000000000002" // not in Full
	AppA          = "018f0000-0000-7000-8000-00000000000a"
	AppB          = "018f0000-0000-7000-8000-00000000000b" // not in Full
	KeyTest       = "sk_test_aaaaaaaaaaaaaaaaaaaaaaaa"
	KeyLive       = "sk_live_aaaaaaaaaaaaaaaaaaaaaaaa"
	KeyPlatform   = "sk_test_pppppppppppppppppppppppp"
	WebhookSecret = "whsec_ssssssssssssssssssssssss"
	ClerkTest     = "ck_test_aaaaaaaaaaaaaaaaaaaaaaaa"
	ClerkLive     = "ck_live_aaaaaaaaaaaaaaaaaaaaaaaa"
	ClerkTwo      = "ck_test_bbbbbbbbbbbbbbbbbbbbbbbb"
)

// Full is a registry file that uses every field.
//
//nolint:gosec // secrets of tests
const Full = `
platform:
  keys:
    - {secret: sk_test_pppppppppppppppppppppppp, agencies: [018f0000-0000-7000-8000-000000000001], reads_per_minute: 700}
  embed_origins: ["https://portal.example"]
  webhook_endpoints: [{url: https://portal.example.org/hooks, secret: whsec_tttttttttttttttttttttttt, events: [checkout.completed]}]
agencies:
  - id: 018F0000-0000-7000-8000-000000000001
    slug: impots
    name: Direction générale des impôts
    services:
      - {id: 018f0000-0000-7000-8000-000000000101, code: patente, label: "Contribution de la patente", active: true}
      - {code: foncier, label: "Foncier", active: false}
    service_mappings: [{erp_code: "4711", service: patente}, {erp_code: "4712", service: foncier}]
    default_service: patente
    late_payments: honour
    single_approval_below: 5000
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 10, minimum: 100, maximum: 5000}, {channel: CARD, ratio: "0.5", step: 5}]
    erp:
      test:
        base_url: http://127.0.0.1:8081/erp/impots
        auth: {type: bearer, token: erp-token-very-private}
        conflict_is_done: true
        channels: {SWITCH: MOBILE_MONEY}
        networks: [127.0.0.0/8]
      live:
        base_url: https://10.20.0.7:8443/api/
        auth: {type: basic, username: quittance, password: erp-password-very-private}
        networks: [10.20.0.0/16]
    connectors:
      test: {momo: {base_url: https://momo.example.org, target_environment: sandbox, subscription_key: momo-sub-private, api_user: momo-user, api_key: momo-key-private, callback_networks: [41.202.16.0/20, "2c0f:f000::/32"]}}
      live: {}
    payouts: {live: {}, test: {mtn_payout: {modes: [salaries, mobile_money], base_url: https://payout.example.org, target_environment: sandbox, subscription_key: payout-sub-private, api_user: payout-user, api_key: payout-key-private}}}
    applications:
      - id: 018f0000-0000-7000-8000-00000000000a
        name: Guichet fiscal
        active: true
        integrator: true
        offers: [momo, card]
        embed_origins: ["https://guichet.example"]
        keys: [{secret: sk_test_aaaaaaaaaaaaaaaaaaaaaaaa}, {secret: sk_live_aaaaaaaaaaaaaaaaaaaaaaaa}]
        webhook_endpoints: [{url: http://127.0.0.1:8081/inbox/guichet, secret: whsec_ssssssssssssssssssssssss, events: [checkout.completed, checkout.failed], modes: [test], max_in_flight: 3, max_per_second: 50}]
        session_lifetime: 36h
        creations_per_minute: 40
        reads_per_minute: 500
        page_size: 25
        cashin: {mode: test, api_key: cashin-api-private, secret_key: cashin-secret-private, redirect_origins: [https://partner.example], webhook_url: https://partner.example.org/hook, providers: [mobile_money_a]}
    portal:
      active: true
      offers: [momo, cash_agency]
      session_lifetime: 3h
      success_origins: ["https://www.impots.example"]
      webhook_endpoints: [{url: https://www.impots.example/hooks, secret: whsec_rrrrrrrrrrrrrrrrrrrrrrrr, events: [checkout.completed]}]
    clerks:
      - {code: c01, name: Guichet 1, counter: Hall, payment_limit: 500000, day_limit: 2000000, active: true, keys: [{secret: ck_test_aaaaaaaaaaaaaaaaaaaaaaaa}, {secret: ck_live_aaaaaaaaaaaaaaaaaaaaaaaa}]}
      - {code: c02, name: Guichet 2, counter: Annexe, keys: [{secret: ck_test_bbbbbbbbbbbbbbbbbbbbbbbb}]}
    accounts:
      test:
        - {code: mtn, kind: operator, offer: momo, number: "46733123454", profile: mtn, zone: Africa/Brazzaville, cutoff: "17:00", grace_days: 3, settles_to: banque}
        - {code: mtn-old, kind: operator, offer: momo, fingerprint: 0123456789abcdef, number: "46733123455", profile: mtn, settles_to: banque}
        - {code: guichets, kind: cash, profile: cash-slip, settles_to: banque}
        - {code: banque, kind: bank, iban: CG39 3001 1000 1010 1345 1300 019, profile: camt.053, batch_pattern: '\bMTN-\d{8}\b'}
        - {code: card, kind: acquirer, offer: card, currency: EUR, profile: card-settlement}
      live:
        - code: bourse
          kind: bank
          number: 30012-00105-00012345678-90
          currency: EUR
          profile: csv
          zone: Europe/Paris
          columns: {separators: ";", width: 6, header: [Date, "", "", "", "", ""], id: [2, 3], time: 1, amount: 4, currency: 5, account: 6, time_formats: [02/01/2006], decimal: ",", group: " ."}
`

// Edit returns Full with the first occurrence of a text replaced by another.
func Edit(t *testing.T, old, with string) string {
	t.Helper()
	if !strings.Contains(Full, old) {
		t.Fatalf("%q is not in the file", old)
	}
	return strings.Replace(Full, old, with, 1)
}

// Plain lists every secret of Full.
var Plain = []string{
	KeyTest, KeyLive, KeyPlatform, WebhookSecret, "whsec_tttttttttttttttttttttttt", "whsec_rrrrrrrrrrrrrrrrrrrrrrrr", "erp-token-very-private", "erp-password-very-private",
	"momo-sub-private", "momo-key-private", "payout-sub-private", "payout-key-private", "cashin-api-private", "cashin-secret-private",
	ClerkTest, ClerkLive, ClerkTwo,
}

// Epoch is the time of the service's clock unless a test sets another.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Actor is the actor of operations in tests.
var Actor = operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}

// House has its own database for a registry.
type House struct {
	DSN  string
	Pool *pgxpool.Pool
	Keys *secret.Keys
}

// SetUp makes a House with an empty registry.
func SetUp(t *testing.T) House {
	t.Helper()
	keys := secret.GenerateKeys()
	dsn, pool := servers.Database(t, operation.SignedBy(func() operation.Signer { return keys }))
	return House{dsn, pool, keys}
}

// TrySeed applies a registry file in developer mode, at Epoch.
func (h House) TrySeed(t *testing.T, text string) (registryfile.Report, error) {
	t.Helper()
	return registryfile.Apply(t.Context(), h.Pool, Actor, []byte(text), registryfile.Options{Keys: h.Keys, Developer: true, Operators: all.Operators(), Now: func() time.Time { return Epoch }})
}

// Seed applies a registry file that has no faults.
func (h House) Seed(t *testing.T, text string) registryfile.Report {
	t.Helper()
	report, err := h.TrySeed(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Config of an instance.
type Config struct {
	registry.Config
	UsesEvery, MaxAge time.Duration
	PINCost           int
	Demo              bool
}

// Instance is the registry and the identities of one process.
type Instance struct {
	*registry.Registry
	*identity.Identities
}

// Open opens an instance with the simulators' address on port 9001. It hashes PINs with the least cost.
func (h House) Open(t *testing.T, with ...func(*Config)) Instance {
	t.Helper()
	cfg := Config{PINCost: bcrypt.MinCost, Config: registry.Config{
		Pool: h.Pool, Keys: h.Keys, Log: servers.Logger(t), Now: func() time.Time { return Epoch }, Simulators: "http://127.0.0.1:9001", Operators: all.Operators(),
	}}
	for _, w := range with {
		w(&cfg)
	}
	reg, err := registry.Open(t.Context(), cfg.Config)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := identity.Open(t.Context(), identity.Config{Registry: reg, Pool: cfg.Pool, Keys: cfg.Keys, Log: cfg.Log, Now: cfg.Now, UsesEvery: cfg.UsesEvery, MaxAge: cfg.MaxAge, PINCost: cfg.PINCost, Demo: cfg.Demo})
	if err != nil {
		t.Fatal(err)
	}
	return Instance{reg, ids}
}

// Start runs an instance until stop is called, which waits for its end.
func Start(t *testing.T, i Instance) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for _, part := range []func(context.Context) error{i.Registry.Run, i.Identities.Run} {
		wg.Go(func() {
			if err := part(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// Run runs an instance until the test ends.
func Run(t *testing.T, i Instance) {
	t.Helper()
	t.Cleanup(Start(t, i))
}

// Within waits until done returns true. It fails the test after the limit.
func Within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	if !await.Within(limit, done) {
		t.Fatalf("%s: not within %v", what, limit)
	}
}

// Exec runs SQL.
func (h House) Exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := h.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Write runs SQL as the service itself does: what it changes is signed.
func (h House) Write(t *testing.T, sql string, args ...any) {
	t.Helper()
	err := registry.Change(t.Context(), h.Pool, h.Keys, Epoch, func(tx *registry.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// GivePasskeys gives people two passkeys each, which approve from Epoch on. Nobody has their devices.
func (h House) GivePasskeys(t *testing.T, staffIDs ...string) {
	t.Helper()
	for _, id := range staffIDs {
		h.Write(t, `INSERT INTO staff_passkeys (id, staff_id, host, name, credential_id, spki_hash, credential, created_at, approves_from)
			SELECT gen_random_uuid(), $1, 'staff.example', 'Key', uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), '{}', $2, $2 FROM generate_series(1, 2)`, id, Epoch)
	}
}

// SignForged signs all rows that do not verify, as an operator does who has looked at them.
func (h House) SignForged(t *testing.T) {
	t.Helper()
	f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.SignRows(t.Context(), h.Pool, h.Keys, Actor, f.Rows, Epoch); err != nil {
		t.Fatal(err)
	}
}

// Revision counts the changes of the registry.
func (h House) Revision(t *testing.T) (revision int64) {
	t.Helper()
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&revision); err != nil {
		t.Fatal(err)
	}
	return revision
}

// KeyID returns the id of a key.
func (h House) KeyID(t *testing.T, key string) (id string) {
	t.Helper()
	digest := sha256.Sum256([]byte(key))
	if err := h.Pool.QueryRow(t.Context(), `SELECT id FROM api_keys WHERE hash = $1`, digest[:]).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// Audited lists the recorded actions, the oldest first.
func (h House) Audited(t *testing.T) (actions []string) {
	t.Helper()
	if err := h.Pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(action ORDER BY id), '{}') FROM audit`).Scan(&actions); err != nil {
		t.Fatal(err)
	}
	return actions
}

// Watch is a clock that a test moves.
type Watch struct{ offset atomic.Int64 }

// Now returns Epoch plus the set duration.
func (w *Watch) Now() time.Time { return Epoch.Add(time.Duration(w.offset.Load())) }

// Set sets the clock to a duration after Epoch.
func (w *Watch) Set(d time.Duration) { w.offset.Store(int64(d)) }

// Wear makes an instance use the clock.
func (w *Watch) Wear(cfg *Config) { cfg.Now = w.Now }
