package registry_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/connector/all"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// watch is a clock that a test moves.
type watch struct{ offset atomic.Int64 }

func (w *watch) now() time.Time      { return epoch.Add(time.Duration(w.offset.Load())) }
func (w *watch) set(d time.Duration) { w.offset.Store(int64(d)) }
func (w *watch) config(t *testing.T, h house) registry.Config {
	cfg := h.config(t)
	cfg.Now = w.now
	return cfg
}

func (h house) create(t *testing.T, req registry.KeyRequest) registry.MintedKey {
	t.Helper()
	k, err := registry.CreateKey(t.Context(), h.pool, req, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keyID is the id of a key that the file of these tests holds.
func (h house) keyID(t *testing.T, key string) string {
	t.Helper()
	digest := sha256.Sum256([]byte(key))
	var id string
	if err := h.pool.QueryRow(t.Context(), `SELECT id FROM api_keys WHERE hash = $1`, digest[:]).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (h house) entry(t *testing.T, id string) registry.KeyEntry {
	t.Helper()
	list, err := registry.ListKeys(t.Context(), h.pool)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(k registry.KeyEntry) bool { return k.ID == id })
	if i < 0 {
		t.Fatalf("key %s is not listed", id)
	}
	return list[i]
}

// refusedBy checks that an error is the operator's to mend, names the field, and
// says each of the words.
func refusedBy(t *testing.T, err error, field string, words ...string) {
	t.Helper()
	var fault *registry.KeyError
	if !errors.As(err, &fault) || fault.Field != field {
		t.Errorf("error = %v, want one of %s", err, field)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func opens(r *registry.Registry, key secret.Text) error {
	_, err := r.AuthenticateKey(key.Reveal())
	return err
}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	run(t, r)

	// The demo file's application has one key of each mode: one more each.
	test := h.create(t, registry.KeyRequest{Application: "Guichet fiscal"})
	live := h.create(t, registry.KeyRequest{Application: strings.ToUpper(appA), Live: true})
	plat := h.create(t, registry.KeyRequest{Agencies: []string{"impots", agencyA}, ReadsPerMinute: 900})
	for key, form := range map[secret.Text]string{test.Secret: "sk_test_", live.Secret: "sk_live_", plat.Secret: "sk_test_"} {
		if !regexp.MustCompile(`^` + form + `[0-9A-Za-z]{43}$`).MatchString(key.Reveal()) {
			t.Errorf("a key has %d characters and begins with %.8s", len(key.Reveal()), key.Reveal())
		}
	}
	within(t, time.Second, "new keys", func() bool { return opens(r, plat.Secret) == nil })
	p, err := r.AuthenticateKey(test.Secret.Reveal())
	if err != nil || p.Live || p.Platform || p.ApplicationID != appA || p.KeyID != test.ID || p.ReadsPerMinute != 500 {
		t.Errorf("test key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(live.Secret.Reveal()); err != nil || !p.Live || p.KeyID != live.ID {
		t.Errorf("live key: %+v, %v", p, err)
	}
	if p, err := r.AuthenticateKey(plat.Secret.Reveal()); err != nil || !p.Platform || !slices.Equal(p.AgencyIDs, []string{agencyA}) || p.ReadsPerMinute != 900 {
		t.Errorf("platform key: %+v, %v", p, err)
	}
	var stored string
	if err := h.pool.QueryRow(t.Context(), `SELECT string_agg(x::text, ' ') FROM api_keys x`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	for _, k := range []secret.Text{test.Secret, live.Secret, plat.Secret} {
		if strings.Contains(stored, k.Reveal()) || strings.Contains(stored, fmt.Sprintf("%x", k.Reveal())) {
			t.Error("a secret is stored")
		}
	}

	create := func(req registry.KeyRequest) error {
		_, err := registry.CreateKey(t.Context(), h.pool, req, epoch)
		return err
	}
	refusedBy(t, create(registry.KeyRequest{Application: appA}), "application", "2 test keys", test.ID, "quittance keys rotate", "quittance keys revoke")
	refusedBy(t, create(registry.KeyRequest{Application: "Guichet"}), "application", appA, "Guichet fiscal")
	refusedBy(t, create(registry.KeyRequest{}), "agency")
	refusedBy(t, create(registry.KeyRequest{Agencies: []string{"nobody"}}), "agency", `"nobody"`, "impots")
	refusedBy(t, create(registry.KeyRequest{Agencies: []string{"impots"}, ReadsPerMinute: -1}), "reads-per-minute")
	// A secret in the wrong place is not repeated.
	for field, err := range map[string]error{
		"agency":      create(registry.KeyRequest{Agencies: []string{keyLive}}),
		"application": create(registry.KeyRequest{Application: keyLive}),
	} {
		if refusedBy(t, err, field); strings.Contains(err.Error(), keyLive) {
			t.Errorf("%v", err)
		}
	}
	h.seed(t, `agencies: [{id: 018f0000-0000-7000-8000-000000000002, slug: douanes, name: X, applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: Guichet fiscal}]}]`)
	refusedBy(t, create(registry.KeyRequest{Application: "Guichet fiscal"}), "application", appA, appB)
	refusedBy(t, create(registry.KeyRequest{Agencies: []string{"impots", "douanes"}}), "agency", "douanes", "integrator: true")
	h.create(t, registry.KeyRequest{Application: appB})
}

// Two operators at once must not get a third key in force.
func TestKeysInForceAreCountedUnderALock(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 8 {
		wg.Go(func() {
			if _, err := registry.CreateKey(t.Context(), h.pool, registry.KeyRequest{Application: appA}, epoch); err == nil {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("%d keys were made beside the one that was there", made.Load())
	}
}

// Whichever instance an integrator reaches, a revoked key is refused within a
// second.
func TestRevocationReachesEveryInstance(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	instances := []*registry.Registry{h.open(t), h.open(t)}
	for _, r := range instances {
		run(t, r)
		if err := opens(r, secret.NewText(keyTest)); err != nil {
			t.Fatal(err)
		}
	}
	id := h.keyID(t, keyTest)
	k, changed, err := registry.RevokeKey(t.Context(), h.pool, id, epoch)
	if err != nil || !changed || k.State(epoch) != registry.KeyStateRevoked || k.RevokedAt != epoch {
		t.Fatalf("%+v, %v, %v", k, changed, err)
	}
	within(t, time.Second, "revocation", func() bool {
		return !slices.ContainsFunc(instances, func(r *registry.Registry) bool {
			return !errors.Is(opens(r, secret.NewText(keyTest)), registry.ErrKeyRevoked)
		})
	})
	if err := opens(instances[0], secret.NewText(keyLive)); err != nil {
		t.Errorf("the live key: %v", err)
	}
	again, changed, err := registry.RevokeKey(t.Context(), h.pool, id, epoch.Add(time.Hour))
	if err != nil || changed || again.RevokedAt != epoch {
		t.Errorf("revoking again: %+v, %v, %v", again, changed, err)
	}
	for _, id := range []string{"", "x", keyTest, appA} {
		_, _, err := registry.RevokeKey(t.Context(), h.pool, id, epoch)
		if refusedBy(t, err, "id", "quittance keys list"); strings.Contains(err.Error(), keyTest) {
			t.Errorf("%v", err)
		}
	}
}

func TestRotateKeyWithOverlap(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	var w watch
	r, err := registry.Open(t.Context(), w.config(t, h))
	if err != nil {
		t.Fatal(err)
	}
	run(t, r)
	old := h.keyID(t, keyTest)
	minted, replaced, err := registry.RotateKey(t.Context(), h.pool, old, time.Hour, epoch)
	if err != nil || replaced.ID != old || replaced.EndsAt != epoch.Add(time.Hour) || replaced.State(epoch) != registry.KeyStateEnding ||
		minted.ApplicationID != appA || minted.Live || minted.State(epoch) != registry.KeyStateActive {
		t.Fatalf("%+v replaces %+v, %v", minted.KeyEntry, replaced, err)
	}
	within(t, time.Second, "the new key", func() bool { return opens(r, minted.Secret) == nil })
	var revision int64
	if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&revision); err != nil {
		t.Fatal(err)
	}

	// Both work until the moment, by the service's clock alone: nothing is
	// written and nothing is read again.
	w.set(time.Hour - time.Nanosecond)
	if err := opens(r, secret.NewText(keyTest)); err != nil {
		t.Errorf("before its end: %v", err)
	}
	w.set(time.Hour)
	if err := opens(r, secret.NewText(keyTest)); !errors.Is(err, registry.ErrKeyEnded) || !errors.Is(err, registry.ErrUnauthorized) {
		t.Errorf("at its end: %v", err)
	}
	if err := opens(r, minted.Secret); err != nil {
		t.Errorf("the new key: %v", err)
	}
	var after int64
	if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("revision %d, was %d, %v", after, revision, err)
	}

	h.exec(t, `UPDATE api_keys SET ends_at = ends_at WHERE id = $1`, old)
	h.exec(t, `UPDATE api_keys SET ends_at = ends_at + interval '1 s' WHERE id = $1`, minted.ID) // null stays null
	if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("revision %d after nothing has changed, was %d, %v", after, revision, err)
	}
	h.exec(t, `UPDATE api_keys SET ends_at = ends_at + interval '1 us' WHERE id = $1`, old)
	h.exec(t, `UPDATE api_keys SET ends_at = ends_at - interval '1 us' WHERE id = $1`, old)
	if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision+2 {
		t.Errorf("revision %d after two changes, was %d, %v", after, revision, err)
	}

	// While two overlap there is no third: neither made nor rotated in, but for
	// an emergency.
	_, err = registry.CreateKey(t.Context(), h.pool, registry.KeyRequest{Application: appA}, epoch)
	refusedBy(t, err, "application", old, "ends at 2026-03-01T13:00:00Z")
	_, _, err = registry.RotateKey(t.Context(), h.pool, old, time.Hour, epoch)
	refusedBy(t, err, "id", "rotated already", "quittance keys revoke "+old)
	_, _, err = registry.RotateKey(t.Context(), h.pool, minted.ID, time.Hour, epoch)
	refusedBy(t, err, "id", "quittance keys revoke "+old, "--overlap 0")
	_, _, err = registry.RotateKey(t.Context(), h.pool, minted.ID, -1, epoch)
	refusedBy(t, err, "overlap")
	emergency, replaced, err := registry.RotateKey(t.Context(), h.pool, minted.ID, 0, epoch)
	if err != nil || replaced.RevokedAt != epoch || replaced.State(epoch) != registry.KeyStateRevoked {
		t.Fatalf("%+v, %v", replaced, err)
	}
	within(t, time.Second, "the emergency", func() bool {
		return opens(r, emergency.Secret) == nil && errors.Is(opens(r, minted.Secret), registry.ErrKeyRevoked)
	})
	_, _, err = registry.RotateKey(t.Context(), h.pool, minted.ID, 0, epoch)
	refusedBy(t, err, "id", "revoked", "quittance keys create")
	// When the overlap is over the ended key counts no more.
	later := epoch.Add(time.Hour)
	_, _, err = registry.RotateKey(t.Context(), h.pool, old, time.Hour, later)
	refusedBy(t, err, "id", "ended", "quittance keys create")
	if _, err := registry.CreateKey(t.Context(), h.pool, registry.KeyRequest{Application: appA}, later); err != nil {
		t.Errorf("a second key after the overlap: %v", err)
	}
}

// A platform key is rotated with its grants and its quota.
func TestRotatePlatformKey(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	minted, _, err := registry.RotateKey(t.Context(), h.pool, h.keyID(t, keyPlat), time.Hour, epoch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.open(t).AuthenticateKey(minted.Secret.Reveal())
	if err != nil || !p.Platform || p.Live || !p.Grants(agencyA) || p.ReadsPerMinute != 700 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A developer's stack seeds its file at every start: what was rotated out stays
// out, what ends still ends.
func TestSeedingNeverUndoesARotation(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	if _, _, err := registry.RotateKey(t.Context(), h.pool, h.keyID(t, keyTest), time.Hour, epoch); err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.RotateKey(t.Context(), h.pool, h.keyID(t, keyLive), 0, epoch); err != nil {
		t.Fatal(err)
	}
	report := h.seed(t, full)
	if report.Changed || len(report.Notes) != 2 {
		t.Errorf("report = %+v", report)
	}
	r := h.open(t)
	if err := opens(r, secret.NewText(keyTest)); err != nil {
		t.Errorf("during the overlap: %v", err)
	}
	if err := opens(r, secret.NewText(keyLive)); !errors.Is(err, registry.ErrKeyRevoked) {
		t.Errorf("rotated at once: %v", err)
	}
	// A third test key in a file waits for the end of the overlap.
	third := strings.Replace(full, "keys: [{secret: sk_test_aaaaaaaaaaaaaaaaaaaaaaaa}", "keys: [{secret: sk_test_bbbbbbbbbbbbbbbbbbbbbbbb}", 1)
	var faults registry.Faults
	if _, err := h.trySeed(t, third); !errors.As(err, &faults) || faults[0].Path != "agencies[0].applications[0].keys[0]" {
		t.Errorf("a third key: %v", err)
	}
	opts := registry.SeedOptions{Keys: h.keys, Developer: true, Operators: all.Operators(), Now: func() time.Time { return epoch.Add(time.Hour) }}
	if _, err := registry.Seed(t.Context(), h.pool, []byte(third), opts); err != nil {
		t.Errorf("after the overlap: %v", err)
	}
	if _, err := registry.Seed(t.Context(), h.pool, []byte(full), opts); err != nil {
		t.Errorf("the old file after the overlap: %v", err)
	}
	var w watch
	w.set(time.Hour)
	later, err := registry.Open(t.Context(), w.config(t, h))
	if err != nil {
		t.Fatal(err)
	}
	if err := opens(later, secret.NewText(keyTest)); !errors.Is(err, registry.ErrKeyEnded) {
		t.Errorf("after the overlap and a seeding: %v", err)
	}
}

func TestListKeys(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	if list, err := registry.ListKeys(t.Context(), h.pool); err != nil || len(list) != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	h.seed(t, strings.Replace(full, "active: true\n        integrator", "active: false\n        integrator", 1))
	list, err := registry.ListKeys(t.Context(), h.pool)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	var owners []string
	for _, k := range list {
		owners = append(owners, fmt.Sprintf("%s %v %v %d", k.Owner(), k.Live, k.Inactive, k.ReadsPerMinute))
		for _, s := range plain {
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
	h := setUp(t)
	h.seed(t, full)
	id := h.keyID(t, keyTest)
	var w watch
	open := func(every time.Duration) *registry.Registry {
		cfg := w.config(t, h)
		cfg.UsesEvery = every
		r, err := registry.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	running := func(r *registry.Registry) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}

	// While it runs.
	ahead := open(10 * time.Millisecond)
	stop := running(ahead)
	w.set(time.Hour)
	if err := opens(ahead, secret.NewText(keyTest)); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "last use", func() bool { return h.entry(t, id).LastUsedAt.Equal(epoch.Add(time.Hour)) })
	stop()
	// At its end; another instance, whose clock is behind, does not take it back.
	behind := open(time.Hour)
	stop = running(behind)
	w.set(30 * time.Minute)
	for _, key := range []string{keyTest, keyLive, keyTest} {
		if err := opens(behind, secret.NewText(key)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if used := h.entry(t, h.keyID(t, keyLive)).LastUsedAt; !used.Equal(epoch.Add(30 * time.Minute)) {
		t.Errorf("the live key was last used at %v", used)
	}
	if used := h.entry(t, id).LastUsedAt; !used.Equal(epoch.Add(time.Hour)) {
		t.Errorf("the test key was last used at %v", used)
	}
	// What is refused is no use.
	if _, _, err := registry.RevokeKey(t.Context(), h.pool, id, epoch); err != nil {
		t.Fatal(err)
	}
	refused := open(time.Hour)
	stop = running(refused)
	w.set(2 * time.Hour)
	if err := opens(refused, secret.NewText(keyTest)); err == nil {
		t.Error("a revoked key opens")
	}
	stop()
	if used := h.entry(t, id).LastUsedAt; !used.Equal(epoch.Add(time.Hour)) {
		t.Errorf("a refused call counts as a use: %v", used)
	}
	if !h.entry(t, h.keyID(t, keyPlat)).LastUsedAt.IsZero() {
		t.Error("a key that nobody used has a last use")
	}
}
