package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/registry"
)

const (
	clerkTest = "ck_test_aaaaaaaaaaaaaaaaaaaaaaaa"
	clerkLive = "ck_live_aaaaaaaaaaaaaaaaaaaaaaaa"
	clerkTwo  = "ck_test_bbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestAuthenticateClerk(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	c, err := r.AuthenticateClerk(clerkLive)
	if err != nil || !c.Live || c.AgencyID != agencyA || c.Code != "c01" || c.Name != "Guichet 1" || c.Counter != "Hall" || c.AgencyName != "Direction générale des impôts" {
		t.Errorf("%+v, %v", c, err)
	}
	if again, err := r.ClerkByKey(c.KeyID); err != nil || again != c {
		t.Errorf("by its key's id: %+v, %v", again, err)
	}
	if c, err := r.AuthenticateClerk(clerkTwo); err != nil || c.Live || c.Code != "c02" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, key := range []string{
		"", keyTest, "ck_test_", "ck_test_cccccccccccccccccccccccc", strings.Replace(clerkTwo, "test", "live", 1), clerkTest + "a", clerkTest + "\n", "Bearer " + clerkTest,
	} {
		if c, err := r.AuthenticateClerk(key); !errors.Is(err, registry.ErrUnauthorized) || c.KeyID != "" {
			t.Errorf("%q opens %+v, %v", key, c, err)
		}
	}
	if _, err := r.AuthenticateKey(clerkTest); !errors.Is(err, registry.ErrUnauthorized) {
		t.Errorf("a clerk's key opens the integrators' surface: %v", err)
	}
	for _, id := range []string{"", h.keyID(t, keyTest)} {
		if _, err := r.ClerkByKey(id); !errors.Is(err, registry.ErrUnauthorized) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	if apps := r.ApplicationsOf(agencyA); !slices.Equal(apps, []string{appA}) {
		t.Errorf("applications %v", apps)
	}
}

func TestClerkIsSwitchedOff(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	run(t, r)
	h.seed(t, edit(t, "active: true, keys: [{secret: ck", "active: false, keys: [{secret: ck"))
	within(t, time.Second, "switching off", func() bool {
		_, err := r.AuthenticateClerk(clerkTest)
		return errors.Is(err, registry.ErrClerkInactive)
	})
	if report := h.seed(t, edit(t, "active: true, keys: [{secret: ck", "keys: [{secret: ck")); report.Changed {
		t.Error("an omitted active switches a clerk on")
	}
}

func TestAddClerk(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	r := h.open(t)
	run(t, r)
	req := registry.ClerkRequest{Agency: "impots", Code: "c03", Name: "Guichet 3", Counter: "Annexe"}
	first, err := registry.AddClerk(t.Context(), h.pool, req, epoch)
	if err != nil || first.Ref() != "impots/c03" || first.Name != "Guichet 3" || first.Key.Live || first.Key.CreatedAt != epoch || !strings.HasPrefix(first.Secret.Reveal(), "ck_test_") {
		t.Fatalf("%+v, %v", first, err)
	}
	within(t, time.Second, "the new clerk", func() bool {
		c, err := r.AuthenticateClerk(first.Secret.Reveal())
		return err == nil && c.KeyID == first.Key.ID && c.Code == "c03"
	})
	// A further key, to change to; the desk moves.
	second, err := registry.AddClerk(t.Context(), h.pool, registry.ClerkRequest{Agency: agencyA, Code: "c03", Counter: "Hall"}, epoch)
	if err != nil || second.Name != "Guichet 3" || second.Counter != "Hall" || len(second.Keys) != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	_, err = registry.AddClerk(t.Context(), h.pool, req, epoch)
	refusedBy(t, err, "code", "2 test keys", first.Key.ID, second.Key.ID, "clerks revoke")
	req.Live = true
	if live, err := registry.AddClerk(t.Context(), h.pool, req, epoch); err != nil || !strings.HasPrefix(live.Secret.Reveal(), "ck_live_") {
		t.Errorf("%+v, %v", live, err)
	}

	for field, req := range map[string]registry.ClerkRequest{
		"agency":  {Agency: "nowhere", Code: "c04", Name: "x", Counter: "y"},
		"code":    {Agency: "impots", Code: "C 04", Name: "x", Counter: "y"},
		"name":    {Agency: "impots", Code: "c04", Counter: "y"},
		"counter": {Agency: "impots", Code: "c04", Name: "x"},
	} {
		_, err := registry.AddClerk(t.Context(), h.pool, req, epoch)
		refusedBy(t, err, field)
	}
	list, err := registry.ListClerks(t.Context(), h.pool)
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, c := range list {
		refs = append(refs, c.Ref())
	}
	if !slices.Equal(refs, []string{"impots/c01", "impots/c02", "impots/c03"}) {
		t.Errorf("listed %v", refs)
	}
}

func TestRevokeClerkKeys(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	instances := []*registry.Registry{h.open(t), h.open(t)}
	for _, r := range instances {
		run(t, r)
	}
	c, err := instances[0].AuthenticateClerk(clerkTest)
	if err != nil {
		t.Fatal(err)
	}
	clerk, ended, err := registry.RevokeClerkKeys(t.Context(), h.pool, c.KeyID, epoch)
	if err != nil || clerk.Ref() != "impots/c01" || len(ended) != 1 || ended[0].ID != c.KeyID {
		t.Fatalf("%+v, %+v, %v", clerk, ended, err)
	}
	within(t, time.Second, "revocation", func() bool {
		return !slices.ContainsFunc(instances, func(r *registry.Registry) bool {
			_, presented := r.AuthenticateClerk(clerkTest)
			_, signedIn := r.ClerkByKey(c.KeyID)
			return !errors.Is(presented, registry.ErrKeyRevoked) || !errors.Is(signedIn, registry.ErrKeyRevoked)
		})
	})
	if _, err := instances[0].AuthenticateClerk(clerkLive); err != nil {
		t.Errorf("the live key: %v", err)
	}
	if _, ended, err := registry.RevokeClerkKeys(t.Context(), h.pool, "impots/c01", epoch.Add(time.Hour)); err != nil || len(ended) != 1 || !ended[0].Live {
		t.Errorf("all that is left: %+v, %v", ended, err)
	}
	if clerk, ended, err := registry.RevokeClerkKeys(t.Context(), h.pool, "impots/c01", epoch.Add(2*time.Hour)); err != nil || len(ended) != 0 || clerk.Keys[0].RevokedAt != epoch {
		t.Errorf("again: %+v, %+v, %v", clerk, ended, err)
	}
	if report := h.seed(t, full); report.Changed || len(report.Notes) != 2 || report.Clerks != 2 {
		t.Errorf("seeding again: %+v", report)
	}
	for _, which := range []string{"", "c01", "impots/c09", clerkTwo, appA, "nowhere/c01"} {
		_, _, err := registry.RevokeClerkKeys(t.Context(), h.pool, which, epoch)
		if refusedBy(t, err, "id", "quittance clerks list"); strings.Contains(err.Error(), clerkTwo) {
			t.Errorf("%v", err)
		}
	}
}

func TestClerksLastUse(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	cfg := h.config(t)
	cfg.UsesEvery = 10 * time.Millisecond
	r, err := registry.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, r)
	var revision, after int64
	if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&revision); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AuthenticateClerk(clerkTwo); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the use is written", func() bool {
		list, err := registry.ListClerks(t.Context(), h.pool)
		return err == nil && list[1].Keys[0].LastUsedAt.Equal(epoch) && list[0].Keys[0].LastUsedAt.IsZero()
	})
	if err := h.pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("a use wakes every instance: %v", err)
	}
}
