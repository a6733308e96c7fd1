package registryfile_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/cashin"
	"quittance/internal/connector/all"
	"quittance/internal/connector/pi"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/registries"
)

func TestEveryFieldIsRead(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	report := h.Seed(t, registries.Full)
	if report.Agencies != 1 || report.Applications != 1 || report.Services != 2 || report.Keys != 6 || report.Endpoints != 3 || report.Clerks != 2 || !report.Changed || len(report.Minted) != 0 {
		t.Errorf("report = %+v", report)
	}
	r := h.Open(t)

	agency, _ := r.Agency(registries.AgencyA)
	if want := (registry.Agency{ID: registries.AgencyA, Slug: "impots", Name: "Direction générale des impôts", DefaultService: "patente", LatePayments: registry.LatePaymentsHonour, SingleApprovalBelow: 5000, CreatedAt: registries.Epoch}); !reflect.DeepEqual(agency, want) {
		t.Errorf("agency = %+v", agency)
	}
	app, _ := r.Application(registries.AppA)
	access := app.Cashin
	app.Cashin = nil
	if want := (registry.Application{
		ID: registries.AppA, AgencyID: registries.AgencyA, Name: "Guichet fiscal", Active: true, Integrator: true, Offers: []string{"momo", "card"}, SuccessOrigins: []string{},
		EmbedOrigins: []string{"https://guichet.example"}, SessionLifetime: 36 * time.Hour, CreationsPerMinute: 40, ReadsPerMinute: 500, PageSize: 25, CreatedAt: registries.Epoch,
	}); !reflect.DeepEqual(app, want) {
		t.Errorf("application = %+v", app)
	}
	if want := (&registry.Cashin{
		RedirectOrigins: []string{"https://partner.example"}, WebhookURL: "https://partner.example.org/hook", Providers: []string{"mobile_money_a"},
	}); !reflect.DeepEqual(access, want) {
		t.Errorf("cash-in = %+v", access)
	}
	if pairs, err := cashin.List(t.Context(), h.Pool); err != nil || len(pairs) != 1 || pairs[0].ApplicationID != registries.AppA || pairs[0].Live || !pairs[0].RevokedAt.IsZero() {
		t.Errorf("cash-in pairs: %+v, %v", pairs, err)
	}
	if app, ok := r.Application(registries.AppA); !ok || app.AgencyID != registries.AgencyA {
		t.Errorf("agency of the application: %v, %v", app.AgencyID, ok)
	}
	if app, ok := r.IntegratorOf(registries.AgencyA); !ok || app.ID != registries.AppA {
		t.Errorf("integrator: %v, %v", app.ID, ok)
	}
	if p, ok := r.PortalOf(registries.AgencyA); !ok || !reflect.DeepEqual(p, registry.Application{
		ID: registry.PortalID(registries.AgencyA), AgencyID: registries.AgencyA, Name: "Portail impots", Active: true, Portal: true, Offers: []string{"momo", "cash_agency"},
		SuccessOrigins: []string{"https://www.impots.example"}, EmbedOrigins: []string{}, SessionLifetime: 3 * time.Hour, PageSize: 20, CreatedAt: registries.Epoch,
	}) {
		t.Errorf("portal = %+v, %v", p, ok)
	}
	if s, ok := r.Service(registries.AgencyA, "patente"); !ok || s != (registry.Service{ID: "018f0000-0000-7000-8000-000000000101", AgencyID: registries.AgencyA, Code: "patente", Label: "Contribution de la patente", Active: true}) {
		t.Errorf("service = %+v, %v", s, ok)
	}
	for code, want := range map[string]string{"4711": "patente", "4712": "patente", "none": "patente"} { // 4712 is mapped to an inactive one
		if s, ok := r.ResolveService(registries.AgencyA, code); !ok || s.Code != want {
			t.Errorf("ResolveService(%s) = %v, %v", code, s.Code, ok)
		}
	}
	if f, ok := r.Fee(registries.AgencyA, checkout.ChannelMobileMoney, "XAF"); !ok || f != (money.Schedule{RatioPPM: 15_000, Fixed: 10, Minimum: 100, Maximum: 5000, HasMaximum: true, Step: 1}) {
		t.Errorf("fee = %+v, %v", f, ok)
	}
	if f, ok := r.Fee(registries.AgencyA, checkout.ChannelCard, "XAF"); !ok || f != (money.Schedule{RatioPPM: 500_000, Step: 5}) {
		t.Errorf("fee of the row with defaults = %+v, %v", f, ok)
	}
	if _, ok := r.Fee(registries.AgencyA, checkout.ChannelCard, "EUR"); ok {
		t.Error("there is a fee that the file does not hold")
	}
	if e, ok := r.ERP(registries.AgencyA, false); !ok || !reflect.DeepEqual(e, registry.ERPSettings{
		AgencyID: registries.AgencyA, BaseURL: "http://127.0.0.1:9001/erp/impots", Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("erp-token-very-private")},
		ConflictIsDone: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxInFlight: 4,
		Channels: map[checkout.Channel]string{checkout.ChannelSwitch: "MOBILE_MONEY"},
	}) {
		t.Errorf("test ERP = %+v, %v", e, ok)
	}
	if e, ok := r.ERP(registries.AgencyA, true); !ok || e.BaseURL != "https://10.20.0.7:8443/api" || e.Auth.Name != "quittance" || e.Auth.Secret.Reveal() != "erp-password-very-private" {
		t.Errorf("live ERP = %+v, %v", e, ok)
	}
	if p := r.Platform(); !slices.Equal(p.EmbedOrigins, []string{"https://portal.example"}) {
		t.Errorf("platform = %+v", p)
	}
	keys, err := identity.ListKeys(t.Context(), h.Pool)
	if err != nil || len(keys) != 3 || keys[0].CreatedAt != registries.Epoch || !keys[0].RevokedAt.IsZero() || !keys[0].LastUsedAt.IsZero() {
		t.Errorf("keys = %+v", keys)
	}
}

// Tables are copied into backups and statements into logs. No table holds a secret in
// plain text.
func TestNoSecretIsPlainInAnyTable(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	rows, err := h.Pool.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
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
		// bytea prints as hexadecimal. Search the decoded bytes too.
		if err := h.Pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT string_agg(x::text, E'\n') FROM %q x`, table)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if text != nil {
			dump.WriteString(*text)
		}
	}
	if !strings.Contains(dump.String(), "impots") || !strings.Contains(dump.String(), `\\x`) {
		t.Fatal("the dump is empty")
	}
	for _, s := range registries.Plain {
		for _, form := range []string{s, fmt.Sprintf("%x", s), strings.TrimPrefix(s, "whsec_")} {
			if strings.Contains(dump.String(), form) {
				t.Errorf("%q is in a table", s)
			}
		}
	}
}

func TestSeedingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	if report := h.Seed(t, registries.Full); report.Changed {
		t.Errorf("the second seeding changed something: %+v", report)
	}
	if report := h.Seed(t, ""); report.Changed {
		t.Errorf("an empty file changed something: %+v", report)
	}
	if report := h.Seed(t, strings.Replace(registries.Full, "page_size: 25", "page_size: 26", 1)); !report.Changed {
		t.Error("a change is not reported")
	}
}

// Objects and fields that a file omits stay as they are.
func TestWhatTheFileOmitsStays(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, `
agencies:
  - id: 018f0000-0000-7000-8000-000000000001
    slug: impots
    name: Nouveau nom
    fees: [{channel: CARD, ratio: "0.25"}]
    applications:
      - {id: 018f0000-0000-7000-8000-00000000000a, name: Guichet, keys: [{secret: sk_test_bbbbbbbbbbbbbbbbbbbbbbbb}]}
`)
	r := h.Open(t)
	app, _ := r.Application(registries.AppA)
	if app.Name != "Guichet" || !app.Integrator || app.PageSize != 25 || len(app.Offers) != 2 || app.Cashin == nil || app.SessionLifetime != 36*time.Hour {
		t.Errorf("application = %+v", app)
	}
	if a, _ := r.Agency(registries.AgencyA); a.Name != "Nouveau nom" || a.DefaultService != "patente" {
		t.Errorf("agency = %+v", a)
	}
	if f, _ := r.Fee(registries.AgencyA, checkout.ChannelCard, "XAF"); f.RatioPPM != 250_000 {
		t.Errorf("fee = %+v", f)
	}
	if _, ok := r.Fee(registries.AgencyA, checkout.ChannelMobileMoney, "XAF"); !ok {
		t.Error("an omitted fee is gone")
	}
	for _, key := range []string{registries.KeyTest, registries.KeyLive, registries.KeyPlatform, "sk_test_bbbbbbbbbbbbbbbbbbbbbbbb"} {
		if _, err := r.AuthenticateKey(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, ok := r.ERP(registries.AgencyA, true); !ok || len(r.Endpoints(registries.AppA, true, false, "checkout.completed")) != 2 {
		t.Error("an omitted ERP or endpoint is gone")
	}
}

// An operator revokes, suspends and rotates. Then a developer's stack starts again and
// applies the old file again.
func TestSeedingNeverUndoes(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	digest := sha256.Sum256([]byte(registries.KeyTest))
	h.Write(t, `UPDATE api_keys SET revoked_at = $1 WHERE hash = $2`, registries.Epoch, digest[:])
	h.Exec(t, `INSERT INTO delivery_destinations (kind, destination_id, suspended_at, suspended_reason)
		SELECT 'webhook', id::text, $1, 'gone' FROM webhook_endpoints WHERE application_id = $2`, registries.Epoch, registries.AppA)
	rotated := registry.MintWebhookSecret()
	newDigest := sha256.Sum256([]byte(rotated.Reveal()))
	var endpoint string
	if err := h.Pool.QueryRow(t.Context(), `SELECT id FROM webhook_endpoints WHERE application_id = $1`, registries.AppA).Scan(&endpoint); err != nil {
		t.Fatal(err)
	}
	sealed, err := h.Keys.Seal("webhook secrets", []byte(rotated.Reveal()), []byte(endpoint))
	if err != nil {
		t.Fatal(err)
	}
	h.Write(t, `UPDATE webhook_secrets SET expires_at = $1 WHERE endpoint_id = $2`, registries.Epoch.Add(24*time.Hour), endpoint)
	h.Write(t, `INSERT INTO webhook_secrets VALUES ($1, $2, $3, $4)`, endpoint, newDigest[:], sealed, registries.Epoch.Add(time.Second))

	report := h.Seed(t, registries.Full)
	if report.Changed || len(report.Notes) != 3 {
		t.Errorf("report = %+v", report)
	}
	r := h.Open(t)
	if _, err := r.AuthenticateKey(registries.KeyTest); !errors.Is(err, identity.ErrKeyRevoked) {
		t.Errorf("revoked key: %v", err)
	}
	e := r.Endpoints(registries.AppA, false, false, "checkout.completed")[0]
	if len(e.Secrets) != 2 || !e.Secrets[0].Equal(rotated) || e.Secrets[1].Reveal() != registries.WebhookSecret {
		t.Errorf("during the overlap there are %d secrets", len(e.Secrets))
	}
	later := h.Open(t, func(cfg *registries.Config) {
		cfg.Now = func() time.Time { return registries.Epoch.Add(24 * time.Hour) }
	})
	if e, _ := later.Endpoint(endpoint); len(e.Secrets) != 1 || !e.Secrets[0].Equal(rotated) {
		t.Errorf("after the overlap there are %d secrets", len(e.Secrets))
	}
	// A secret that the endpoint never had is an edit of the file. It takes effect.
	h.Seed(t, strings.Replace(registries.Full, registries.WebhookSecret, "whsec_uuuuuuuuuuuuuuuuuuuuuuuu", 1))
	if e, _ := h.Open(t).Endpoint(endpoint); len(e.Secrets) != 1 || e.Secrets[0].Reveal() != "whsec_uuuuuuuuuuuuuuuuuuuuuuuu" {
		t.Errorf("after the edit there are %d secrets", len(e.Secrets))
	}
}

func TestEndpointWithoutSecretGetsOne(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	text := strings.Replace(registries.Full, ", secret: "+registries.WebhookSecret, "", 1)
	report := h.Seed(t, text)
	if len(report.Minted) != 1 || report.Minted[0].Path != "agencies[0].applications[0].webhook_endpoints[0]" {
		t.Fatalf("report = %+v", report)
	}
	e := h.Open(t).Endpoints(registries.AppA, false, false, "checkout.completed")[0]
	if len(e.Secrets) != 1 || !e.Secrets[0].Equal(report.Minted[0].Secret) {
		t.Error("the endpoint signs with another secret than was shown")
	}
	if report := h.Seed(t, text); len(report.Minted) != 0 || report.Changed {
		t.Errorf("seeding again minted again: %+v", report)
	}
}

func TestDemoRegistry(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	text, err := os.ReadFile("../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h.Seed(t, string(text))
	if report := h.Seed(t, string(text)); report.Changed || len(report.Notes) != 0 {
		t.Errorf("report = %+v", report)
	}
	r := h.Open(t)
	for _, a := range r.Applications() {
		for _, e := range r.Endpoints(a.ID, true, false, "checkout.completed") {
			if !strings.HasPrefix(e.URL, "http://127.0.0.1:9001/inbox/") {
				t.Errorf("%s is not an address at the simulators", e.URL)
			}
		}
	}
	paying, ok := r.PayoutAccount("018f0000-0000-7000-8000-000000000002", false, "switch_payout", "")
	account, typed := paying.Account.(pi.Account)
	if !ok || !typed || paying.Simulated || account.BaseURL != "https://127.0.0.1:9013" || !slices.Equal(paying.Modes, []string{"switch"}) {
		t.Errorf("the account at the switch: %+v", paying)
	}
	if _, err := account.TLS(); err != nil {
		t.Errorf("its certificate: %v", err)
	}
}

func TestIntegratorMoves(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	// The order in the file does not matter.
	h.Seed(t, `
agencies:
  - {id: 018f0000-0000-7000-8000-000000000001, slug: impots, name: X, applications: [
      {id: 018f0000-0000-7000-8000-00000000000b, name: New, integrator: true},
      {id: 018f0000-0000-7000-8000-00000000000a, name: Old, integrator: false}]}`)
	if app, ok := h.Open(t).IntegratorOf(registries.AgencyA); !ok || app.ID != registries.AppB {
		t.Errorf("integrator = %v, %v", app.ID, ok)
	}
}

// A developer's stack applies its file at every start. A replaced key stays replaced, and
// a key that ends keeps its end.
func TestSeedingNeverUndoesARotation(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	if _, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, h.KeyID(t, registries.KeyTest), time.Hour, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, h.KeyID(t, registries.KeyLive), 0, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	report := h.Seed(t, registries.Full)
	if report.Changed || len(report.Notes) != 2 {
		t.Errorf("report = %+v", report)
	}
	r := h.Open(t)
	if err := opens(r, registries.KeyTest); err != nil {
		t.Errorf("during the overlap: %v", err)
	}
	if err := opens(r, registries.KeyLive); !errors.Is(err, identity.ErrKeyRevoked) {
		t.Errorf("rotated at once: %v", err)
	}
	// A file can add a third test key only after the end of the overlap.
	third := strings.Replace(registries.Full, "keys: [{secret: sk_test_aaaaaaaaaaaaaaaaaaaaaaaa}", "keys: [{secret: sk_test_bbbbbbbbbbbbbbbbbbbbbbbb}", 1)
	var faults *form.FaultsError
	if _, err := h.TrySeed(t, third); !errors.As(err, &faults) || faults.Faults[0].Field != "agencies[0].applications[0].keys[0]" {
		t.Errorf("a third key: %v", err)
	}
	opts := registryfile.Options{Keys: h.Keys, Developer: true, Operators: all.Operators(), Now: func() time.Time { return registries.Epoch.Add(time.Hour) }}
	if _, err := registryfile.Apply(t.Context(), h.Pool, registries.Actor, []byte(third), opts); err != nil {
		t.Errorf("after the overlap: %v", err)
	}
	if _, err := registryfile.Apply(t.Context(), h.Pool, registries.Actor, []byte(registries.Full), opts); err != nil {
		t.Errorf("the old file after the overlap: %v", err)
	}
	var w registries.Watch
	w.Set(time.Hour)
	later := h.Open(t, w.Wear)
	if err := opens(later, registries.KeyTest); !errors.Is(err, identity.ErrKeyEnded) {
		t.Errorf("after the overlap and a seeding: %v", err)
	}
}

func opens(i registries.Instance, key string) error {
	_, err := i.AuthenticateKey(key)
	return err
}

// A file names the first key of a rotation, because nobody knows the secrets of the later
// ones. An agency that the file withdraws is withdrawn from all of them. What an operator
// has withdrawn, the file does not grant again.
func TestSeedFollowsRotations(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	const one, both = "agencies: [018f0000-0000-7000-8000-000000000001]", "agencies: [018f0000-0000-7000-8000-000000000001, 018f0000-0000-7000-8000-000000000002]"
	text := strings.Replace(registries.Full, one, both, 1) +
		"  - {id: 018f0000-0000-7000-8000-000000000002, slug: douanes, name: X, applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: Y, integrator: true}]}\n"
	h.Seed(t, text)
	rotated, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, h.KeyID(t, registries.KeyPlatform), time.Hour, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	acts := func(agencies ...string) {
		t.Helper()
		r := h.Open(t)
		for _, key := range []string{registries.KeyPlatform, rotated.Secret.Reveal()} {
			if p, err := r.AuthenticateKey(key); err != nil || !slices.Equal(p.AgencyIDs, agencies) {
				t.Errorf("%.16s acts for %v, want %v (%v)", key, p.AgencyIDs, agencies, err)
			}
		}
	}
	acts(registries.AgencyA, registries.AgencyB)
	h.Seed(t, strings.Replace(text, both, one, 1))
	acts(registries.AgencyA)
	h.Seed(t, text)
	acts(registries.AgencyA, registries.AgencyB)
	if _, _, err := identity.UngrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, rotated.ID, []string{"douanes"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	report := h.Seed(t, text)
	if report.Changed || !slices.ContainsFunc(report.Notes, func(n string) bool {
		return strings.Contains(n, registries.AgencyB) && strings.Contains(n, "stays withdrawn")
	}) {
		t.Errorf("report = %+v", report)
	}
	acts(registries.AgencyA)
	if _, _, err := identity.GrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, rotated.ID, []string{"douanes"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	h.Seed(t, text)
	acts(registries.AgencyA, registries.AgencyB)
}

// A file gives a pair once. What an operator rotated or revoked stays so, and the settings
// follow the file.
func TestSeedUndoesNoRotationOfACashinPair(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	if _, err := cashin.Rotate(t.Context(), h.Pool, h.Keys, registries.Actor, registries.AppA, nil, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	report := h.Seed(t, registries.Full)
	if report.Changed || !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "cashin.api_key: this pair was revoked or rotated") }) {
		t.Errorf("report = %+v", report)
	}
	if !h.Seed(t, registries.Edit(t, "providers: [mobile_money_a]", "providers: [mobile_money_b]")).Changed {
		t.Error("the settings did not change")
	}
	pairs, err := cashin.List(t.Context(), h.Pool)
	if err != nil || len(pairs) != 2 || !pairs[0].RevokedAt.IsZero() || pairs[1].RevokedAt.IsZero() {
		t.Errorf("pairs: %+v, %v", pairs, err)
	}
	h.Seed(t, registries.Edit(t, "api_key: cashin-api-private", "api_key: cashin-api-second")) // a new pair of the file
	if pairs, err = cashin.List(t.Context(), h.Pool); err != nil || len(pairs) != 3 || pairs[1].RevokedAt.IsZero() {
		t.Errorf("pairs: %+v, %v", pairs, err)
	}
}

// A secret of the demo registry is refused outside developer mode by name.
func TestDemoSecretsAreKnown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?:secret|token|password|value|api_key|secret_key|subscription_key|client_secret): ([^\s,}]+)`).FindAllSubmatch(text, -1)
	if len(found) < 12 {
		t.Fatalf("the demo registry has %d secrets", len(found))
	}
	for _, m := range found {
		if !secret.IsDemo(secret.NewText(string(m[1]))) {
			t.Errorf("%s is not known as a secret of the demo registry", m[1])
		}
	}
	h := registries.SetUp(t)
	_, err = registryfile.Apply(t.Context(), h.Pool, registries.Actor, text, registryfile.Options{Keys: h.Keys, Operators: all.Operators(), Now: func() time.Time { return registries.Epoch }})
	var faults *form.FaultsError
	if !errors.As(err, &faults) {
		t.Fatalf("production took the demo registry: %v", err)
	}
	refused := map[string]bool{}
	for _, f := range faults.Faults {
		refused[f.Field+" "+f.Rule] = true
	}
	for _, path := range []string{
		"platform.keys[0].secret", "platform.webhook_endpoints[0].secret", "agencies[0].erp.test.auth.token",
		"agencies[0].applications[0].keys[1].secret", "agencies[0].clerks[1].keys[0].secret",
		"agencies[0].applications[1].cashin.api_key", "agencies[0].applications[1].cashin.secret_key",
	} {
		if !refused[path+" demo_secret"] {
			t.Errorf("%s is not refused: %v", path, faults)
		}
	}
	if !slices.ContainsFunc(faults.Faults, func(f form.Fault) bool { return f.Field == "agencies[0].applications[1].cashin.redirect_origins[0]" }) {
		t.Errorf("production takes a partner's site on this machine: %v", faults)
	}
}
