package identity_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/test/registries"
)

func TestAuthenticateClerk(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	c, err := r.AuthenticateClerk(registries.ClerkLive)
	if err != nil || !c.Live || c.AgencyID != registries.AgencyA || c.Code != "c01" || c.Name != "Guichet 1" || c.Counter != "Hall" || c.AgencyName != "Direction générale des impôts" {
		t.Errorf("%+v, %v", c, err)
	}
	if again, err := r.ClerkByKey(c.KeyID); err != nil || again != c {
		t.Errorf("by its key's id: %+v, %v", again, err)
	}
	if c, err := r.AuthenticateClerk(registries.ClerkTwo); err != nil || c.Live || c.Code != "c02" {
		t.Errorf("%+v, %v", c, err)
	}
	for live, want := range map[bool][]string{false: {"Annexe", "Hall"}, true: {"Hall"}} {
		if got := r.Counters(registries.AgencyA, live); !slices.Equal(got, want) || !r.TakesCash(registries.AgencyA, live) {
			t.Errorf("live %v: counters %q, want %q", live, got, want)
		}
	}
	if got := r.Counters(registries.AppA, false); len(got) > 0 || r.TakesCash(registries.AppA, false) {
		t.Errorf("counters of nobody: %q", got)
	}
	for _, key := range []string{
		"", registries.KeyTest, "ck_test_", "ck_test_cccccccccccccccccccccccc", strings.Replace(registries.ClerkTwo, "test", "live", 1), registries.ClerkTest + "a", registries.ClerkTest + "\n", "Bearer " + registries.ClerkTest,
	} {
		if c, err := r.AuthenticateClerk(key); !errors.Is(err, identity.ErrUnauthorized) || c.KeyID != "" {
			t.Errorf("%q opens %+v, %v", key, c, err)
		}
	}
	if _, err := r.AuthenticateKey(registries.ClerkTest); !errors.Is(err, identity.ErrUnauthorized) {
		t.Errorf("a clerk's key opens the integrators' surface: %v", err)
	}
	for _, id := range []string{"", h.KeyID(t, registries.KeyTest)} {
		if _, err := r.ClerkByKey(id); !errors.Is(err, identity.ErrUnauthorized) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	if apps := r.ApplicationsOf(registries.AgencyA); !slices.Equal(apps, []string{registries.AppA, registry.PortalID(registries.AgencyA)}) {
		t.Errorf("applications %v", apps)
	}
}

func TestClerkIsSwitchedOff(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	h.Seed(t, registries.Edit(t, "active: true, keys: [{secret: ck", "active: false, keys: [{secret: ck"))
	registries.Within(t, 5*time.Second, "switching off", func() bool {
		_, err := r.AuthenticateClerk(registries.ClerkTest)
		return errors.Is(err, identity.ErrClerkInactive)
	})
	if report := h.Seed(t, registries.Edit(t, "active: true, keys: [{secret: ck", "keys: [{secret: ck")); report.Changed {
		t.Error("an omitted active switches a clerk on")
	}
}

func TestAddClerk(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	req := identity.ClerkRequest{Agency: "impots", Code: "c03", Name: "Guichet 3", Counter: "Annexe"}
	first, err := identity.AddClerk(t.Context(), h.Pool, h.Keys, registries.Actor, req, registries.Epoch)
	if err != nil || first.Ref() != "impots/c03" || first.Name != "Guichet 3" || first.Key.Live || first.Key.CreatedAt != registries.Epoch || !strings.HasPrefix(first.Secret.Reveal(), "ck_test_") {
		t.Fatalf("%+v, %v", first, err)
	}
	registries.Within(t, 5*time.Second, "the new clerk", func() bool {
		c, err := r.AuthenticateClerk(first.Secret.Reveal())
		return err == nil && c.KeyID == first.Key.ID && c.Code == "c03"
	})
	// A second key, for a rotation. The counter changes.
	second, err := identity.AddClerk(t.Context(), h.Pool, h.Keys, registries.Actor, identity.ClerkRequest{Agency: registries.AgencyA, Code: "c03", Counter: "Hall"}, registries.Epoch)
	if err != nil || second.Name != "Guichet 3" || second.Counter != "Hall" || len(second.Keys) != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	_, err = identity.AddClerk(t.Context(), h.Pool, h.Keys, registries.Actor, req, registries.Epoch)
	refusedBy(t, err, "clerk.too_many_keys", "code", "live=false", first.Key.ID, second.Key.ID)
	req.Live = true
	if live, err := identity.AddClerk(t.Context(), h.Pool, h.Keys, registries.Actor, req, registries.Epoch); err != nil || !strings.HasPrefix(live.Secret.Reveal(), "ck_live_") {
		t.Errorf("%+v, %v", live, err)
	}

	for field, req := range map[string]identity.ClerkRequest{
		"agency":  {Agency: "nowhere", Code: "c04", Name: "x", Counter: "y"},
		"code":    {Agency: "impots", Code: "C 04", Name: "x", Counter: "y"},
		"name":    {Agency: "impots", Code: "c04", Counter: "y"},
		"counter": {Agency: "impots", Code: "c04", Name: "x"},
	} {
		_, err := identity.AddClerk(t.Context(), h.Pool, h.Keys, registries.Actor, req, registries.Epoch)
		code := "clerk." + field + "_malformed"
		if field == "agency" {
			code = "agency.unknown"
		}
		refusedBy(t, err, code, field)
	}
	list, err := identity.ListClerks(t.Context(), h.Pool)
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
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	instances := []registries.Instance{h.Open(t), h.Open(t)}
	for _, r := range instances {
		registries.Run(t, r)
	}
	c, err := instances[0].AuthenticateClerk(registries.ClerkTest)
	if err != nil {
		t.Fatal(err)
	}
	clerk, ended, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, c.KeyID, registries.Epoch)
	if err != nil || clerk.Ref() != "impots/c01" || len(ended) != 1 || ended[0].ID != c.KeyID {
		t.Fatalf("%+v, %+v, %v", clerk, ended, err)
	}
	registries.Within(t, 5*time.Second, "revocation", func() bool {
		return !slices.ContainsFunc(instances, func(r registries.Instance) bool {
			_, presented := r.AuthenticateClerk(registries.ClerkTest)
			_, signedIn := r.ClerkByKey(c.KeyID)
			return !errors.Is(presented, identity.ErrKeyRevoked) || !errors.Is(signedIn, identity.ErrKeyRevoked)
		})
	})
	if _, err := instances[0].AuthenticateClerk(registries.ClerkLive); err != nil {
		t.Errorf("the live key: %v", err)
	}
	if _, ended, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c01", registries.Epoch.Add(time.Hour)); err != nil || len(ended) != 1 || !ended[0].Live {
		t.Errorf("all that is left: %+v, %v", ended, err)
	}
	if clerk, ended, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c01", registries.Epoch.Add(2*time.Hour)); err != nil || len(ended) != 0 || clerk.Keys[0].RevokedAt != registries.Epoch {
		t.Errorf("again: %+v, %+v, %v", clerk, ended, err)
	}
	if report := h.Seed(t, registries.Full); report.Changed || len(report.Notes) != 2 || report.Clerks != 2 {
		t.Errorf("seeding again: %+v", report)
	}
	for which, code := range map[string]string{
		"": "clerk.not_a_name", "c01": "clerk.not_a_name", "impots/c09": "clerk.unknown", registries.ClerkTwo: "clerk.not_a_name",
		registries.AppA: "clerk.key_unknown", "nowhere/c01": "clerk.unknown",
	} {
		_, _, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, which, registries.Epoch)
		if refusedBy(t, err, code, "id"); strings.Contains(err.Error(), registries.ClerkTwo) {
			t.Errorf("%v", err)
		}
	}
}

func TestClerksLastUse(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t, func(cfg *registries.Config) { cfg.UsesEvery = 10 * time.Millisecond })
	registries.Run(t, r)
	var revision, after int64
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&revision); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AuthenticateClerk(registries.ClerkTwo); err != nil {
		t.Fatal(err)
	}
	registries.Within(t, 10*time.Second, "the use is written", func() bool {
		list, err := identity.ListClerks(t.Context(), h.Pool)
		return err == nil && list[1].Keys[0].LastUsedAt.Equal(registries.Epoch) && list[0].Keys[0].LastUsedAt.IsZero()
	})
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("a use notifies every instance: %v", err)
	}
}

func TestLimitClerk(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	limits := func() [2]int64 {
		c, err := r.AuthenticateClerk(registries.ClerkTest)
		if err != nil {
			t.Fatal(err)
		}
		return [2]int64{c.PaymentLimit, c.DayLimit}
	}
	amount := func(n int64) *int64 { return &n }
	if got := limits(); got != [2]int64{500_000, 2_000_000} {
		t.Errorf("the registry file's limits are %v", got)
	}
	if c, err := r.AuthenticateClerk(registries.ClerkTwo); err != nil || c.PaymentLimit != 0 || c.DayLimit != 0 {
		t.Errorf("a clerk without limits: %+v, %v", c, err)
	}
	for _, step := range []struct {
		payment, day *int64
		want         [2]int64
	}{
		{amount(100_000), nil, [2]int64{100_000, 2_000_000}},
		{nil, amount(identity.MaxClerkLimit), [2]int64{100_000, identity.MaxClerkLimit}},
		{amount(0), amount(0), [2]int64{}},
	} {
		c, err := identity.LimitClerk(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c01", step.payment, step.day, registries.Epoch)
		if err != nil || [2]int64{c.PaymentLimit, c.DayLimit} != step.want || !c.Active || c.Name != "Guichet 1" || len(c.Keys) != 2 {
			t.Errorf("limited to %+v, %v", c, err)
		}
		registries.Within(t, 5*time.Second, "the limits are read", func() bool { return limits() == step.want })
	}
	// A file that does not name limits leaves them; a file that names them sets them.
	if _, err := identity.LimitClerk(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c02", amount(7), nil, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	h.Seed(t, registries.Full)
	registries.Within(t, 5*time.Second, "the file is read", func() bool {
		c, err := r.AuthenticateClerk(registries.ClerkTwo)
		return limits() == [2]int64{500_000, 2_000_000} && err == nil && c.PaymentLimit == 7 && c.DayLimit == 0
	})

	before := h.Audited(t)
	for _, row := range []struct {
		which, field, code string
		payment, day       *int64
	}{
		{"impots/c09", "id", "clerk.unknown", amount(1), nil},
		{registries.ClerkTwo, "id", "clerk.unknown", amount(1), nil},
		{"impots/c01", "per-payment", "clerk.limit_out_of_range", amount(-1), nil},
		{"impots/c01", "per-day", "clerk.limit_out_of_range", nil, amount(identity.MaxClerkLimit + 1)},
	} {
		_, err := identity.LimitClerk(t.Context(), h.Pool, h.Keys, registries.Actor, row.which, row.payment, row.day, registries.Epoch)
		refusedBy(t, err, row.code, row.field)
	}
	if after := h.Audited(t); !slices.Equal(before, after) || !slices.Contains(after, "clerk.limit") {
		t.Errorf("recorded are %v", after)
	}
}
