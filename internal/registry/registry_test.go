package registry_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/all"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/test/servers"
)

const (
	agencyA = "018f0000-0000-7000-8000-000000000001"
	agencyB = "018f0000-0000-7000-8000-000000000002"
	appA    = "018f0000-0000-7000-8000-00000000000a"
	appB    = "018f0000-0000-7000-8000-00000000000b"
	keyTest = "sk_test_aaaaaaaaaaaaaaaaaaaaaaaa"
	keyLive = "sk_live_aaaaaaaaaaaaaaaaaaaaaaaa"
	keyPlat = "sk_test_pppppppppppppppppppppppp"
	whsec   = "whsec_ssssssssssssssssssssssss"
)

// full uses every field of the format.
const full = `
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
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 10, minimum: 100, maximum: 5000}, {channel: CARD, ratio: "0.5"}]
    erp:
      test:
        base_url: http://127.0.0.1:8081/erp/impots
        auth: {type: bearer, token: erp-token-very-private}
        conflict_is_done: true
        networks: [127.0.0.0/8]
      live:
        base_url: https://10.20.0.7:8443/api/
        auth: {type: basic, username: quittance, password: erp-password-very-private}
        networks: [10.20.0.0/16]
    connectors:
      test: {momo: {base_url: https://momo.example.org, target_environment: sandbox, subscription_key: momo-sub-private, api_user: momo-user, api_key: momo-key-private}}
      live: {}
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
        cashin: {api_key: cashin-api-private, secret_key: cashin-secret-private, redirect_origins: [https://partner.example], webhook_url: https://partner.example.org/hook, providers: [mobile_money_a]}
    clerks:
      - {code: c01, name: Guichet 1, counter: Hall, active: true, keys: [{secret: ck_test_aaaaaaaaaaaaaaaaaaaaaaaa}, {secret: ck_live_aaaaaaaaaaaaaaaaaaaaaaaa}]}
      - {code: c02, name: Guichet 2, counter: Annexe, keys: [{secret: ck_test_bbbbbbbbbbbbbbbbbbbbbbbb}]}
`

// plain is every secret of full.
var plain = []string{
	keyTest, keyLive, keyPlat, whsec, "whsec_tttttttttttttttttttttttt", "erp-token-very-private", "erp-password-very-private",
	"momo-sub-private", "momo-key-private", "cashin-api-private", "cashin-secret-private",
	clerkTest, clerkLive, clerkTwo,
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type house struct {
	dsn  string
	pool *pgxpool.Pool
	keys *secret.Keys
}

func setUp(t *testing.T) house {
	t.Helper()
	dsn, pool := servers.Database(t)
	return house{dsn, pool, secret.GenerateKeys()}
}

func (h house) trySeed(t *testing.T, text string) (registry.Report, error) {
	t.Helper()
	return registry.Seed(t.Context(), h.pool, []byte(text), registry.SeedOptions{Keys: h.keys, Developer: true, Operators: all.Operators(), Now: func() time.Time { return epoch }})
}

func (h house) seed(t *testing.T, text string) registry.Report {
	t.Helper()
	report, err := h.trySeed(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (h house) config(t *testing.T) registry.Config {
	t.Helper()
	return registry.Config{
		Pool: h.pool, Keys: h.keys, Log: servers.Logger(t), Now: func() time.Time { return epoch },
		Simulators: "http://127.0.0.1:9001", Operators: all.Operators(),
	}
}

func (h house) open(t *testing.T) *registry.Registry {
	t.Helper()
	r, err := registry.Open(t.Context(), h.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t *testing.T, r *registry.Registry) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	begun := time.Now()
	for !done() {
		if time.Since(begun) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (h house) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := h.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	report := h.seed(t, full)
	if report.Agencies != 1 || report.Applications != 1 || report.Services != 2 || report.Keys != 6 || report.Endpoints != 2 || report.Clerks != 2 || !report.Changed || len(report.Minted) != 0 {
		t.Errorf("report = %+v", report)
	}
	r := h.open(t)

	agency, _ := r.Agency(agencyA)
	if want := (registry.Agency{ID: agencyA, Slug: "impots", Name: "Direction générale des impôts", DefaultService: "patente", CreatedAt: epoch}); agency != want {
		t.Errorf("agency = %+v", agency)
	}
	app, _ := r.Application(appA)
	cashin := app.Cashin
	app.Cashin = nil
	digest := sha256.Sum256([]byte("cashin-api-private"))
	if want := (registry.Application{
		ID: appA, AgencyID: agencyA, Name: "Guichet fiscal", Active: true, Integrator: true, Offers: []string{"momo", "card"},
		EmbedOrigins: []string{"https://guichet.example"}, SessionLifetime: 36 * time.Hour, CreationsPerMinute: 40, ReadsPerMinute: 500, PageSize: 25, CreatedAt: epoch,
	}); !reflect.DeepEqual(app, want) {
		t.Errorf("application = %+v", app)
	}
	if want := (&registry.Cashin{
		APIKeyHash: digest[:], SecretKey: secret.NewText("cashin-secret-private"), RedirectOrigins: []string{"https://partner.example"},
		WebhookURL: "https://partner.example.org/hook", Providers: []string{"mobile_money_a"},
	}); !reflect.DeepEqual(cashin, want) {
		t.Errorf("cash-in = %+v", cashin)
	}
	if found, ok := r.ApplicationByCashinKey("cashin-api-private"); !ok || found.ID != appA {
		t.Errorf("by cash-in key: %v, %v", found.ID, ok)
	}
	if owner, ok := r.AgencyOfApplication(appA); !ok || owner.ID != agencyA {
		t.Errorf("agency of the application: %v, %v", owner.ID, ok)
	}
	if app, ok := r.IntegratorOf(agencyA); !ok || app.ID != appA {
		t.Errorf("integrator: %v, %v", app.ID, ok)
	}
	if s, ok := r.Service(agencyA, "patente"); !ok || s != (registry.Service{ID: "018f0000-0000-7000-8000-000000000101", AgencyID: agencyA, Code: "patente", Label: "Contribution de la patente", Active: true}) {
		t.Errorf("service = %+v, %v", s, ok)
	}
	for code, want := range map[string]string{"4711": "patente", "4712": "patente", "none": "patente"} { // 4712 is mapped to an inactive one
		if s, ok := r.ResolveService(agencyA, code); !ok || s.Code != want {
			t.Errorf("ResolveService(%s) = %v, %v", code, s.Code, ok)
		}
	}
	if f, ok := r.Fee(agencyA, checkout.ChannelMobileMoney, "XAF"); !ok || f != (money.Schedule{RatioPPM: 15_000, Fixed: 10, Minimum: 100, Maximum: 5000, HasMaximum: true}) {
		t.Errorf("fee = %+v, %v", f, ok)
	}
	if f, ok := r.Fee(agencyA, checkout.ChannelCard, "XAF"); !ok || f != (money.Schedule{RatioPPM: 500_000}) {
		t.Errorf("fee of the row with defaults = %+v, %v", f, ok)
	}
	if _, ok := r.Fee(agencyA, checkout.ChannelCard, "EUR"); ok {
		t.Error("there is a fee that the file does not hold")
	}
	if e, ok := r.ERP(agencyA, false); !ok || !reflect.DeepEqual(e, registry.ERPSettings{
		AgencyID: agencyA, BaseURL: "http://127.0.0.1:9001/erp/impots", Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("erp-token-very-private")},
		ConflictIsDone: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxInFlight: 4,
	}) {
		t.Errorf("test ERP = %+v, %v", e, ok)
	}
	if e, ok := r.ERP(agencyA, true); !ok || e.BaseURL != "https://10.20.0.7:8443/api" || e.Auth.Name != "quittance" || e.Auth.Secret.Reveal() != "erp-password-very-private" {
		t.Errorf("live ERP = %+v, %v", e, ok)
	}
	if p := r.Platform(); !slices.Equal(p.EmbedOrigins, []string{"https://portal.example"}) {
		t.Errorf("platform = %+v", p)
	}
	keys := r.Keys()
	if len(keys) != 3 || keys[0].CreatedAt != epoch || !keys[0].RevokedAt.IsZero() || !keys[0].LastUsedAt.IsZero() {
		t.Errorf("keys = %+v", keys)
	}
}

func TestAuthenticateKey(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	p, err := r.AuthenticateKey(keyTest)
	if err != nil || p.Live || p.Platform || p.ApplicationID != appA || !p.Grants(agencyA) || p.Grants(agencyB) || p.ReadsPerMinute != 500 || p.KeyID == "" {
		t.Errorf("test key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(keyLive); err != nil || !p.Live {
		t.Errorf("live key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(keyPlat); err != nil || !p.Platform || p.ApplicationID != "" || !p.Grants(agencyA) || p.ReadsPerMinute != 700 {
		t.Errorf("platform key: %+v, %v", p, err)
	}
	for _, key := range []string{"", "sk_test_", "sk_test_bbbbbbbbbbbbbbbbbbbbbbbb", "pk_test_aaaaaaaaaaaaaaaaaaaaaaaa", strings.ToUpper(keyTest), keyTest + " ", whsec} {
		if p, err := r.AuthenticateKey(key); !errors.Is(err, registry.ErrKeyUnknown) || !errors.Is(err, registry.ErrUnauthorized) {
			t.Errorf("AuthenticateKey(%q) = %+v, %v", key, p, err)
		}
	}
	h.seed(t, "agencies: [{id: "+agencyA+", slug: impots, name: X, applications: [{id: "+appA+", name: Y, active: false}]}]")
	if p, err := h.open(t).AuthenticateKey(keyTest); !errors.Is(err, registry.ErrApplicationInactive) {
		t.Errorf("key of an inactive application: %+v, %v", p, err)
	}
}

func TestEndpointsByScopeModeAndEvent(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	urls := func(platform, live bool, event string) string {
		var out []string
		for _, e := range r.Endpoints(appA, platform, live, event) {
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
	e := r.Endpoints(appA, false, false, "checkout.completed")[0]
	if e.MaxInFlight != 3 || e.MaxPerSecond != 50 || e.Secrets[0].Reveal() != whsec || !e.Test || e.Live {
		t.Errorf("endpoint = %+v", e)
	}
}

func TestConnectorsAndSimulators(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	own, ok := r.MerchantAccount(agencyA, false, checkout.OfferMomo)
	want := mtn.Account{
		BaseURL: "https://momo.example.org", TargetEnvironment: "sandbox", SubscriptionKey: "momo-sub-private", APIUser: "momo-user", APIKey: "momo-key-private",
	}
	if !ok || own.Simulated || own.Account != want {
		t.Errorf("own account = %+v, %v", own, ok)
	}
	simulated := airtel.Account{BaseURL: "http://127.0.0.1:9001/airtel", ClientID: agencyA, ClientSecret: "simulator"}
	if c, ok := r.MerchantAccount(agencyA, false, checkout.OfferMomoB); !ok || !c.Simulated || c.Account != simulated {
		t.Errorf("missing test account = %+v, %v", c, ok)
	}
	if c, ok := r.MerchantAccount(agencyA, true, checkout.OfferMomoB); ok {
		t.Errorf("something stands in for a live account: %+v", c)
	}
	if c, ok := r.MerchantAccount(agencyB, false, checkout.OfferMomo); ok {
		t.Errorf("an unknown agency has an account: %+v", c)
	}
	if c, ok := r.MerchantAccount(agencyA, false, checkout.OfferCashAgency); ok {
		t.Errorf("cash has an account: %+v", c)
	}
	cfg := h.config(t)
	cfg.Simulators = ""
	production, err := registry.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := production.MerchantAccount(agencyA, false, checkout.OfferMomoB); ok {
		t.Errorf("outside developer mode the simulators stand in: %+v", c)
	}
}

// XAF is no card currency of the contract's: an acquirer takes it where the
// agency's account of that mode says so.
func TestTakes(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
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
			if !r.Takes(agencyA, false, c.offer, code) || !r.Takes(agencyA, true, c.offer, code) { // no account is needed
				t.Errorf("%s does not take %s", c.offer, code)
			}
		}
		for _, code := range append(strings.Fields(c.refuses), "") {
			if r.Takes(agencyA, false, c.offer, code) {
				t.Errorf("%s takes %q", c.offer, code)
			}
		}
	}

	account := func(xaf string) string {
		return "agencies: [{id: " + agencyA + ", slug: impots, name: X, connectors: {test: {card: {base_url: https://card.example.org, merchant: m, secret: card-secret-private" + xaf + "}}}}]"
	}
	for _, c := range []struct {
		xaf   string
		takes bool
	}{{"", false}, {", xaf: true", true}, {", xaf: false", false}, {", xaf: true", true}, {"", false}} {
		if report := h.seed(t, account(c.xaf)); !report.Changed && c.xaf != "" {
			t.Errorf("%q is no change", c.xaf)
		}
		if report := h.seed(t, account(c.xaf)); report.Changed {
			t.Errorf("%q again is a change", c.xaf)
		}
		r = h.open(t)
		if got := r.Takes(agencyA, false, checkout.OfferCard, "XAF"); got != c.takes {
			t.Errorf("with %q the acquirer takes XAF: %v", c.xaf, got)
		}
		if !r.Takes(agencyA, false, checkout.OfferCard, "EUR") || r.Takes(agencyA, true, checkout.OfferCard, "XAF") || r.Takes(agencyB, false, checkout.OfferCard, "XAF") {
			t.Errorf("%q changes another currency, mode or agency", c.xaf)
		}
	}

	// Without the master key the account cannot be used, but what it takes is known.
	h.seed(t, account(", xaf: true"))
	cfg := h.config(t)
	cfg.Keys = secret.GenerateKeys()
	r, err := registry.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := r.MerchantAccount(agencyA, false, checkout.OfferCard); !ok || !c.Locked || c.Account != (card.Account{BaseURL: "https://card.example.org", XAF: true}) {
		t.Errorf("locked account: %+v, %v", c, ok)
	}
}

// A row of an earlier release, sealed then and with a column for the one flag that
// there was, is the same account after the migration.
func TestAccountOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	sealed, err := h.keys.Seal("connector accounts", []byte(`{"merchant":"impots","secret":"s3cret-of-card"}`), []byte(agencyA+"/live/card"))
	if err != nil {
		t.Fatal(err)
	}
	h.exec(t, `DELETE FROM goose_db_version WHERE version_id = 20`)
	h.exec(t, `ALTER TABLE connector_accounts DROP COLUMN flags`)
	h.exec(t, `ALTER TABLE connector_accounts ADD COLUMN xaf boolean NOT NULL DEFAULT false`)
	h.exec(t, `INSERT INTO connector_accounts VALUES ($1, true, 'card', 'https://acquirer.example.org', $2, true)`, agencyA, sealed)
	if err := postgres.Migrate(t.Context(), h.dsn); err != nil {
		t.Fatal(err)
	}
	want := card.Account{BaseURL: "https://acquirer.example.org", Merchant: "impots", Secret: "s3cret-of-card", XAF: true}
	if a, ok := h.open(t).MerchantAccount(agencyA, true, checkout.OfferCard); !ok || a.Locked || a.Account != want {
		t.Errorf("account = %+v, %v", a, ok)
	}
}

// Backups, logs of statements and curious eyes see tables: no secret may stand
// in any of them as it is.
func TestNoSecretIsPlainInAnyTable(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	rows, err := h.pool.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if rows.Err() != nil || len(tables) < 10 {
		t.Fatalf("tables: %v, %v", tables, rows.Err())
	}
	var dump strings.Builder
	for _, table := range tables {
		var text *string
		// bytea prints as hexadecimal: also decoded, byte by byte.
		if err := h.pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT string_agg(x::text, E'\n') FROM %q x`, table)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if text != nil {
			dump.WriteString(*text)
		}
	}
	if !strings.Contains(dump.String(), "impots") || !strings.Contains(dump.String(), `\\x`) {
		t.Fatal("the dump is empty")
	}
	for _, s := range plain {
		for _, form := range []string{s, fmt.Sprintf("%x", s), strings.TrimPrefix(s, "whsec_")} {
			if strings.Contains(dump.String(), form) {
				t.Errorf("%q is in a table", s)
			}
		}
	}
}

func TestSeedingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	if report := h.seed(t, full); report.Changed {
		t.Errorf("the second seeding changed something: %+v", report)
	}
	if report := h.seed(t, ""); report.Changed {
		t.Errorf("an empty file changed something: %+v", report)
	}
	if report := h.seed(t, strings.Replace(full, "page_size: 25", "page_size: 26", 1)); !report.Changed {
		t.Error("a change is not reported")
	}
}

// What the file omits stays: whole objects and single fields.
func TestWhatTheFileOmitsStays(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	h.seed(t, `
agencies:
  - id: 018f0000-0000-7000-8000-000000000001
    slug: impots
    name: Nouveau nom
    fees: [{channel: CARD, ratio: "0.25"}]
    applications:
      - {id: 018f0000-0000-7000-8000-00000000000a, name: Guichet, keys: [{secret: sk_test_bbbbbbbbbbbbbbbbbbbbbbbb}]}
`)
	r := h.open(t)
	app, _ := r.Application(appA)
	if app.Name != "Guichet" || !app.Integrator || app.PageSize != 25 || len(app.Offers) != 2 || app.Cashin == nil || app.SessionLifetime != 36*time.Hour {
		t.Errorf("application = %+v", app)
	}
	if a, _ := r.Agency(agencyA); a.Name != "Nouveau nom" || a.DefaultService != "patente" {
		t.Errorf("agency = %+v", a)
	}
	if f, _ := r.Fee(agencyA, checkout.ChannelCard, "XAF"); f.RatioPPM != 250_000 {
		t.Errorf("fee = %+v", f)
	}
	if _, ok := r.Fee(agencyA, checkout.ChannelMobileMoney, "XAF"); !ok {
		t.Error("an omitted fee is gone")
	}
	for _, key := range []string{keyTest, keyLive, keyPlat, "sk_test_bbbbbbbbbbbbbbbbbbbbbbbb"} {
		if _, err := r.AuthenticateKey(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, ok := r.ERP(agencyA, true); !ok || len(r.Endpoints(appA, true, false, "checkout.completed")) != 2 {
		t.Error("an omitted ERP or endpoint is gone")
	}
}

// An operator revokes, suspends and rotates; the next start of a developer's
// stack seeds the old file again.
func TestSeedingNeverUndoes(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	digest := sha256.Sum256([]byte(keyTest))
	h.exec(t, `UPDATE api_keys SET revoked_at = $1 WHERE hash = $2`, epoch, digest[:])
	h.exec(t, `INSERT INTO delivery_destinations (kind, destination_id, suspended_at, suspended_reason)
		SELECT 'webhook', id::text, $1, 'gone' FROM webhook_endpoints WHERE application_id = $2`, epoch, appA)
	rotated := registry.MintWebhookSecret()
	newDigest := sha256.Sum256([]byte(rotated.Reveal()))
	var endpoint string
	if err := h.pool.QueryRow(t.Context(), `SELECT id FROM webhook_endpoints WHERE application_id = $1`, appA).Scan(&endpoint); err != nil {
		t.Fatal(err)
	}
	sealed, err := h.keys.Seal("webhook secrets", []byte(rotated.Reveal()), []byte(endpoint))
	if err != nil {
		t.Fatal(err)
	}
	h.exec(t, `UPDATE webhook_secrets SET expires_at = $1 WHERE endpoint_id = $2`, epoch.Add(24*time.Hour), endpoint)
	h.exec(t, `INSERT INTO webhook_secrets VALUES ($1, $2, $3, $4)`, endpoint, newDigest[:], sealed, epoch.Add(time.Second))

	report := h.seed(t, full)
	if report.Changed || len(report.Notes) != 3 {
		t.Errorf("report = %+v", report)
	}
	r := h.open(t)
	if _, err := r.AuthenticateKey(keyTest); !errors.Is(err, registry.ErrKeyRevoked) {
		t.Errorf("revoked key: %v", err)
	}
	e := r.Endpoints(appA, false, false, "checkout.completed")[0]
	if len(e.Secrets) != 2 || !e.Secrets[0].Equal(rotated) || e.Secrets[1].Reveal() != whsec {
		t.Errorf("during the overlap there are %d secrets", len(e.Secrets))
	}
	cfg := h.config(t)
	cfg.Now = func() time.Time { return epoch.Add(24 * time.Hour) }
	later, err := registry.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := later.Endpoint(endpoint); len(e.Secrets) != 1 || !e.Secrets[0].Equal(rotated) {
		t.Errorf("after the overlap there are %d secrets", len(e.Secrets))
	}
	// A secret that the endpoint never had is an edit of the file, not an undoing.
	h.seed(t, strings.Replace(full, whsec, "whsec_uuuuuuuuuuuuuuuuuuuuuuuu", 1))
	if e, _ := h.open(t).Endpoint(endpoint); len(e.Secrets) != 1 || e.Secrets[0].Reveal() != "whsec_uuuuuuuuuuuuuuuuuuuuuuuu" {
		t.Errorf("after the edit there are %d secrets", len(e.Secrets))
	}
}

func TestEndpointWithoutSecretGetsOne(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	text := strings.Replace(full, ", secret: "+whsec, "", 1)
	report := h.seed(t, text)
	if len(report.Minted) != 1 || report.Minted[0].Path != "agencies[0].applications[0].webhook_endpoints[0]" {
		t.Fatalf("report = %+v", report)
	}
	e := h.open(t).Endpoints(appA, false, false, "checkout.completed")[0]
	if len(e.Secrets) != 1 || !e.Secrets[0].Equal(report.Minted[0].Secret) {
		t.Error("the endpoint signs with another secret than was shown")
	}
	if report := h.seed(t, text); len(report.Minted) != 0 || report.Changed {
		t.Errorf("seeding again minted again: %+v", report)
	}
}

func TestDemoRegistry(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	text, err := os.ReadFile("../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h.seed(t, string(text))
	if report := h.seed(t, string(text)); report.Changed || len(report.Notes) != 0 {
		t.Errorf("report = %+v", report)
	}
	r := h.open(t)
	for _, a := range r.Applications() {
		for _, e := range r.Endpoints(a.ID, true, false, "checkout.completed") {
			if !strings.HasPrefix(e.URL, "http://127.0.0.1:9001/inbox/") {
				t.Errorf("%s does not lie at the simulators", e.URL)
			}
		}
	}
}

func TestIntegratorMoves(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	// Whatever the order in the file.
	h.seed(t, `
agencies:
  - {id: 018f0000-0000-7000-8000-000000000001, slug: impots, name: X, applications: [
      {id: 018f0000-0000-7000-8000-00000000000b, name: New, integrator: true},
      {id: 018f0000-0000-7000-8000-00000000000a, name: Old, integrator: false}]}`)
	if app, ok := h.open(t).IntegratorOf(agencyA); !ok || app.ID != appB {
		t.Errorf("integrator = %v, %v", app.ID, ok)
	}
}

func TestChangeIsSeenWithinASecond(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	run(t, r)
	digest := sha256.Sum256([]byte(keyTest))
	h.exec(t, `UPDATE api_keys SET revoked_at = now() WHERE hash = $1`, digest[:])
	within(t, time.Second, "revocation", func() bool {
		_, err := r.AuthenticateKey(keyTest)
		return errors.Is(err, registry.ErrKeyRevoked)
	})
	// A notification that is lost must not matter.
	h.exec(t, `ALTER TABLE webhook_endpoints DISABLE TRIGGER USER`)
	h.exec(t, `UPDATE webhook_endpoints SET max_in_flight = 5 WHERE application_id = $1`, appA)
	h.exec(t, `UPDATE registry_revision SET revision = revision + 1`)
	within(t, time.Second, "cap", func() bool {
		return r.Endpoints(appA, false, false, "checkout.completed")[0].MaxInFlight == 5
	})
	// Use of a key is no change.
	var before, after int64
	revision := func(to *int64) {
		if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(to); err != nil {
			t.Fatal(err)
		}
	}
	revision(&before)
	h.exec(t, `UPDATE api_keys SET last_used_at = now()`)
	if revision(&after); after != before {
		t.Error("the use of a key counts as a change of the registry")
	}
}

// gate is a way to Postgres that can be shut.
type gate struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	shut     bool
	conns    []net.Conn
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: l, target: target}
	t.Cleanup(func() { g.set(true); _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			g.mu.Lock()
			if g.shut || err != nil {
				_ = in.Close()
				g.mu.Unlock()
				continue
			}
			g.conns = append(g.conns, in, out)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		}
	}()
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			_ = c.Close()
		}
		g.conns = nil
	}
}

func TestPostgresAway(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	u, err := url.Parse(h.dsn)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, u.Host)
	u.Host = g.listener.Addr().String()
	pool, err := postgres.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cfg := h.config(t)
	cfg.Pool = pool
	r, err := registry.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, r)
	g.set(true)
	within(t, 5*time.Second, "noticing", func() bool { return r.Age() > time.Second })
	if _, err := r.AuthenticateKey(keyTest); err != nil {
		t.Errorf("while Postgres is away: %v", err)
	}
	if _, ok := r.MerchantAccount(agencyA, false, checkout.OfferMomo); !ok {
		t.Error("while Postgres is away an account is missing")
	}
	digest := sha256.Sum256([]byte(keyTest))
	h.exec(t, `UPDATE api_keys SET revoked_at = now() WHERE hash = $1`, digest[:]) // by another way
	g.set(false)
	within(t, 2*time.Second, "catching up", func() bool {
		_, err := r.AuthenticateKey(keyTest)
		return errors.Is(err, registry.ErrKeyRevoked)
	})
}

// One row sealed with a key that this process lacks keeps nobody else waiting.
func TestMissingMasterKeyLocksItsRowsOnly(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	cfg := h.config(t)
	cfg.Keys = secret.GenerateKeys()
	r, err := registry.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AuthenticateKey(keyTest); err != nil {
		t.Error(err)
	}
	if e, ok := r.ERP(agencyA, false); !ok || !e.Locked || !e.Auth.Secret.Empty() {
		t.Errorf("ERP = %+v, %v", e, ok)
	}
	if c, ok := r.MerchantAccount(agencyA, false, checkout.OfferMomo); !ok || !c.Locked || c.Simulated {
		t.Errorf("account = %+v, %v", c, ok)
	}
	if e := r.Endpoints(appA, false, false, "checkout.completed"); len(e) != 1 || !e[0].Locked || len(e[0].Secrets) != 0 {
		t.Errorf("endpoints = %+v", e)
	}
}
