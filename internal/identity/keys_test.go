package identity_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/test/registries"
)

func newKey(t *testing.T, h registries.House, req identity.KeyRequest) identity.MintedKey {
	t.Helper()
	k, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, req, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func entry(t *testing.T, h registries.House, id string) identity.KeyEntry {
	t.Helper()
	list, err := identity.ListKeys(t.Context(), h.Pool)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(k identity.KeyEntry) bool { return k.ID == id })
	if i < 0 {
		t.Fatalf("key %s is not listed", id)
	}
	return list[i]
}

// refusedBy checks that an operation was refused with a code, a field and each of the
// values.
func refusedBy(t *testing.T, err error, code, field string, values ...string) {
	t.Helper()
	var refused *operation.Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Field != field {
		t.Errorf("error = %v, want %s of %s", err, code, field)
		return
	}
	for _, v := range values {
		if !strings.Contains(refused.Error(), v) {
			t.Errorf("%q does not hold %q", refused, v)
		}
	}
}

func opens(r registries.Instance, key secret.Text) error {
	_, err := r.AuthenticateKey(key.Reveal())
	return err
}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)

	// The application of the demo file has one key in each mode. Add one in each.
	test := newKey(t, h, identity.KeyRequest{Application: "Guichet fiscal"})
	live := newKey(t, h, identity.KeyRequest{Application: strings.ToUpper(registries.AppA), Live: true})
	plat := newKey(t, h, identity.KeyRequest{Agencies: []string{"impots", registries.AgencyA}, ReadsPerMinute: 900})
	for key, form := range map[secret.Text]string{test.Secret: "sk_test_", live.Secret: "sk_live_", plat.Secret: "sk_test_"} {
		if !regexp.MustCompile(`^` + form + `[0-9A-Za-z]{43}$`).MatchString(key.Reveal()) {
			t.Errorf("a key has %d characters and begins with %.8s", len(key.Reveal()), key.Reveal())
		}
	}
	registries.Within(t, 5*time.Second, "new keys", func() bool { return opens(r, plat.Secret) == nil })
	p, err := r.AuthenticateKey(test.Secret.Reveal())
	if err != nil || p.Live || p.Platform || p.ApplicationID != registries.AppA || p.KeyID != test.ID || p.ReadsPerMinute != 500 {
		t.Errorf("test key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(live.Secret.Reveal()); err != nil || !p.Live || p.KeyID != live.ID {
		t.Errorf("live key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(plat.Secret.Reveal()); err != nil || !p.Platform || !slices.Equal(p.AgencyIDs, []string{registries.AgencyA}) || p.ReadsPerMinute != 900 {
		t.Errorf("platform key: %+v, %v", p, err)
	}
	var stored string
	if err := h.Pool.QueryRow(t.Context(), `SELECT string_agg(x::text, ' ') FROM api_keys x`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	for _, k := range []secret.Text{test.Secret, live.Secret, plat.Secret} {
		if strings.Contains(stored, k.Reveal()) || strings.Contains(stored, fmt.Sprintf("%x", k.Reveal())) {
			t.Error("a secret is stored")
		}
	}

	create := func(req identity.KeyRequest) error {
		_, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, req, registries.Epoch)
		return err
	}
	refusedBy(t, create(identity.KeyRequest{Application: registries.AppA}), "key.too_many", "application", "live=false", "most=2", test.ID)
	refusedBy(t, create(identity.KeyRequest{Application: "Guichet"}), "application.unknown", "application", registries.AppA, "Guichet fiscal")
	refusedBy(t, create(identity.KeyRequest{}), "key.without_agencies", "agency")
	refusedBy(t, create(identity.KeyRequest{Agencies: []string{"nobody"}}), "agency.unknown", "agency", "agency=nobody", "impots")
	refusedBy(t, create(identity.KeyRequest{Agencies: []string{"impots"}, ReadsPerMinute: -1}), "key.reads_out_of_range", "reads-per-minute")
	// A refusal does not repeat a secret that was given in place of an id.
	for field, err := range map[string]error{
		"agency":      create(identity.KeyRequest{Agencies: []string{registries.KeyLive}}),
		"application": create(identity.KeyRequest{Application: registries.KeyLive}),
	} {
		if refusedBy(t, err, field+".unknown", field); strings.Contains(err.Error(), registries.KeyLive) {
			t.Errorf("%v", err)
		}
	}
	h.Seed(t, `agencies: [{id: 018f0000-0000-7000-8000-000000000002, slug: douanes, name: X, applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: Guichet fiscal}]}]`)
	refusedBy(t, create(identity.KeyRequest{Application: "Guichet fiscal"}), "application.ambiguous", "application", registries.AppA, registries.AppB)
	refusedBy(t, create(identity.KeyRequest{Agencies: []string{"impots", "douanes"}}), "agency.without_integrator", "agency", "agency=douanes")
	newKey(t, h, identity.KeyRequest{Application: registries.AppB})
}

// Concurrent requests do not create a third key in force.
func TestKeysInForceAreCountedUnderALock(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 8 {
		wg.Go(func() {
			if _, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Application: registries.AppA}, registries.Epoch); err == nil {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("%d keys were created beside the existing one", made.Load())
	}
}

// Every instance refuses a revoked key within a second.
func TestRevocationReachesEveryInstance(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	instances := []registries.Instance{h.Open(t), h.Open(t)}
	for _, r := range instances {
		registries.Run(t, r)
		if err := opens(r, secret.NewText(registries.KeyTest)); err != nil {
			t.Fatal(err)
		}
	}
	id := h.KeyID(t, registries.KeyTest)
	k, changed, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, registries.Epoch)
	if err != nil || !changed || k.State(registries.Epoch) != identity.KeyStateRevoked || k.RevokedAt != registries.Epoch {
		t.Fatalf("%+v, %v, %v", k, changed, err)
	}
	registries.Within(t, 5*time.Second, "revocation", func() bool {
		return !slices.ContainsFunc(instances, func(r registries.Instance) bool {
			return !errors.Is(opens(r, secret.NewText(registries.KeyTest)), identity.ErrKeyRevoked)
		})
	})
	if err := opens(instances[0], secret.NewText(registries.KeyLive)); err != nil {
		t.Errorf("the live key: %v", err)
	}
	again, changed, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, registries.Epoch.Add(time.Hour))
	if err != nil || changed || again.RevokedAt != registries.Epoch {
		t.Errorf("revoking again: %+v, %v, %v", again, changed, err)
	}
	for id, code := range map[string]string{"": "key.not_an_id", "x": "key.not_an_id", registries.KeyTest: "key.not_an_id", registries.AppA: "key.unknown"} {
		_, _, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, registries.Epoch)
		if refusedBy(t, err, code, "id"); strings.Contains(err.Error(), registries.KeyTest) {
			t.Errorf("%v", err)
		}
	}
}

func TestRotateKeyWithOverlap(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var w registries.Watch
	r := h.Open(t, w.Wear)
	registries.Run(t, r)
	old := h.KeyID(t, registries.KeyTest)
	minted, replaced, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, old, time.Hour, registries.Epoch)
	if err != nil || replaced.ID != old || replaced.EndsAt != registries.Epoch.Add(time.Hour) || replaced.State(registries.Epoch) != identity.KeyStateEnding ||
		minted.ApplicationID != registries.AppA || minted.Live || minted.State(registries.Epoch) != identity.KeyStateActive {
		t.Fatalf("%+v replaces %+v, %v", minted.KeyEntry, replaced, err)
	}
	registries.Within(t, 5*time.Second, "the new key", func() bool { return opens(r, minted.Secret) == nil })
	var revision int64
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&revision); err != nil {
		t.Fatal(err)
	}

	// Both keys work until the end of the overlap by the service's clock. Nothing is
	// written or read again at that time.
	w.Set(time.Hour - time.Nanosecond)
	if err := opens(r, secret.NewText(registries.KeyTest)); err != nil {
		t.Errorf("before its end: %v", err)
	}
	w.Set(time.Hour)
	if err := opens(r, secret.NewText(registries.KeyTest)); !errors.Is(err, identity.ErrKeyEnded) || !errors.Is(err, identity.ErrUnauthorized) {
		t.Errorf("at its end: %v", err)
	}
	if err := opens(r, minted.Secret); err != nil {
		t.Errorf("the new key: %v", err)
	}
	var after int64
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("revision %d, was %d, %v", after, revision, err)
	}

	h.Exec(t, `UPDATE api_keys SET ends_at = ends_at WHERE id = $1`, old)
	h.Exec(t, `UPDATE api_keys SET ends_at = ends_at + interval '1 s' WHERE id = $1`, minted.ID) // null stays null
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("revision %d after nothing has changed, was %d, %v", after, revision, err)
	}
	h.Exec(t, `UPDATE api_keys SET ends_at = ends_at + interval '1 us' WHERE id = $1`, old)
	h.Exec(t, `UPDATE api_keys SET ends_at = ends_at - interval '1 us' WHERE id = $1`, old)
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision+2 {
		t.Errorf("revision %d after two changes, was %d, %v", after, revision, err)
	}

	// While two keys overlap, no third one can be created, neither directly nor by a
	// rotation with overlap. A rotation without overlap is allowed.
	_, err = identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Application: registries.AppA}, registries.Epoch)
	refusedBy(t, err, "key.too_many", "application", old, "ends at 2026-03-01T13:00:00Z")
	_, _, err = identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, old, time.Hour, registries.Epoch)
	refusedBy(t, err, "key.rotated", "id", old, "2026-03-01T13:00:00Z")
	_, _, err = identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, minted.ID, time.Hour, registries.Epoch)
	refusedBy(t, err, "key.no_room_to_overlap", "id", "other_id="+old, "id="+minted.ID)
	_, _, err = identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, minted.ID, -1, registries.Epoch)
	refusedBy(t, err, "key.overlap_negative", "overlap")
	emergency, replaced, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, minted.ID, 0, registries.Epoch)
	if err != nil || replaced.RevokedAt != registries.Epoch || replaced.State(registries.Epoch) != identity.KeyStateRevoked {
		t.Fatalf("%+v, %v", replaced, err)
	}
	registries.Within(t, 5*time.Second, "the emergency", func() bool {
		return opens(r, emergency.Secret) == nil && errors.Is(opens(r, minted.Secret), identity.ErrKeyRevoked)
	})
	_, _, err = identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, minted.ID, 0, registries.Epoch)
	refusedBy(t, err, "key.over", "id", "state=revoked")
	// After the overlap the ended key no longer counts.
	later := registries.Epoch.Add(time.Hour)
	_, _, err = identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, old, time.Hour, later)
	refusedBy(t, err, "key.over", "id", "state=ended")
	if _, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Application: registries.AppA}, later); err != nil {
		t.Errorf("a second key after the overlap: %v", err)
	}
}

// A platform key is rotated with its grants and its quota.
func TestRotatePlatformKey(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	minted, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, h.KeyID(t, registries.KeyPlatform), time.Hour, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Open(t).AuthenticateKey(minted.Secret.Reveal())
	if err != nil || !p.Platform || p.Live || !slices.Contains(p.AgencyIDs, registries.AgencyA) || p.ReadsPerMinute != 700 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestListKeys(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	if list, err := identity.ListKeys(t.Context(), h.Pool); err != nil || len(list) != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	h.Seed(t, strings.Replace(registries.Full, "active: true\n        integrator", "active: false\n        integrator", 1))
	list, err := identity.ListKeys(t.Context(), h.Pool)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	var owners []string
	for _, k := range list {
		owners = append(owners, fmt.Sprintf("%s %v %v %d", k.Owner(), k.Live, k.Inactive, k.ReadsPerMinute))
		for _, s := range registries.Plain {
			if strings.Contains(fmt.Sprintf("%+v", k), s) {
				t.Errorf("%+v holds a secret", k)
			}
		}
	}
	if want := []string{"platform for impots false false 700", "Guichet fiscal (impots) false true 500", "Guichet fiscal (impots) true true 500"}; !slices.Equal(owners, want) {
		t.Errorf("list = %q", owners)
	}
}

func TestLastUseIsWrittenForwardOnly(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	id := h.KeyID(t, registries.KeyTest)
	var w registries.Watch
	open := func(every time.Duration) registries.Instance {
		return h.Open(t, w.Wear, func(cfg *registries.Config) { cfg.UsesEvery = every })
	}
	running := func(r registries.Instance) (stop func()) { return registries.Start(t, r) }

	// While Run runs, it writes the last use.
	ahead := open(10 * time.Millisecond)
	stop := running(ahead)
	w.Set(time.Hour)
	if err := opens(ahead, secret.NewText(registries.KeyTest)); err != nil {
		t.Fatal(err)
	}
	registries.Within(t, 10*time.Second, "last use", func() bool { return entry(t, h, id).LastUsedAt.Equal(registries.Epoch.Add(time.Hour)) })
	stop()
	// Run writes once more at its end. An instance whose clock is behind does not replace a
	// later use.
	behind := open(time.Hour)
	stop = running(behind)
	w.Set(30 * time.Minute)
	for _, key := range []string{registries.KeyTest, registries.KeyLive, registries.KeyTest} {
		if err := opens(behind, secret.NewText(key)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if used := entry(t, h, h.KeyID(t, registries.KeyLive)).LastUsedAt; !used.Equal(registries.Epoch.Add(30 * time.Minute)) {
		t.Errorf("the live key was last used at %v", used)
	}
	if used := entry(t, h, id).LastUsedAt; !used.Equal(registries.Epoch.Add(time.Hour)) {
		t.Errorf("the test key was last used at %v", used)
	}
	// A refused call is not a use.
	if _, _, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	refused := open(time.Hour)
	stop = running(refused)
	w.Set(2 * time.Hour)
	if err := opens(refused, secret.NewText(registries.KeyTest)); err == nil {
		t.Error("a revoked key is valid")
	}
	stop()
	if used := entry(t, h, id).LastUsedAt; !used.Equal(registries.Epoch.Add(time.Hour)) {
		t.Errorf("a refused call counts as a use: %v", used)
	}
	if !entry(t, h, h.KeyID(t, registries.KeyPlatform)).LastUsedAt.IsZero() {
		t.Error("a key that nobody used has a last use")
	}
}

func TestAuthenticateKey(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	p, err := r.AuthenticateKey(registries.KeyTest)
	if err != nil || p.Live || p.Platform || p.ApplicationID != registries.AppA || !slices.Contains(p.AgencyIDs, registries.AgencyA) || slices.Contains(p.AgencyIDs, registries.AgencyB) || p.ReadsPerMinute != 500 || p.KeyID == "" {
		t.Errorf("test key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(registries.KeyLive); err != nil || !p.Live {
		t.Errorf("live key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(registries.KeyPlatform); err != nil || !p.Platform || p.ApplicationID != "" || !slices.Contains(p.AgencyIDs, registries.AgencyA) || p.ReadsPerMinute != 700 {
		t.Errorf("platform key: %+v, %v", p, err)
	}
	for _, key := range []string{"", "sk_test_", "sk_test_bbbbbbbbbbbbbbbbbbbbbbbb", "pk_test_aaaaaaaaaaaaaaaaaaaaaaaa", strings.ToUpper(registries.KeyTest), registries.KeyTest + " ", registries.WebhookSecret} {
		if p, err := r.AuthenticateKey(key); !errors.Is(err, identity.ErrKeyUnknown) || !errors.Is(err, identity.ErrUnauthorized) {
			t.Errorf("AuthenticateKey(%q) = %+v, %v", key, p, err)
		}
	}
	h.Seed(t, "agencies: [{id: "+registries.AgencyA+", slug: impots, name: X, applications: [{id: "+registries.AppA+", name: Y, active: false}]}]")
	if p, err := h.Open(t).AuthenticateKey(registries.KeyTest); !errors.Is(err, identity.ErrApplicationInactive) {
		t.Errorf("key of an inactive application: %+v, %v", p, err)
	}
}
