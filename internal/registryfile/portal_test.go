package registryfile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/cashin"
	"quittance/internal/connector/all"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/test/registries"
)

const customs = `
agencies:
  - id: 018f0000-0000-7000-8000-000000000002
    slug: douanes
    name: Douanes
    portal: {offers: [momo]}
`

// A portal shows what an ERP says. A file that gives an agency a portal without an ERP, or
// without offers, is refused with what to add.
func TestPortalNeedsAnERPAndOffers(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	const erp = "    erp: {MODE: {base_url: https://erp.example.org, auth: {type: bearer, token: erp-token-very-private}, networks: []}}\n"
	for _, c := range []struct{ text, path, mend string }{
		{customs, "agencies[0].portal", "add erp.test to the agency"},
		{strings.Replace(customs, "{offers: [momo]}", "{active: false, offers: [momo]}", 1), "agencies[0].portal", "add erp.test"},
		{customs + strings.Replace(erp, "MODE", "live", 1), "agencies[0].portal", "add erp.test"},
		{strings.Replace(customs, "{offers: [momo]}", "{active: true}", 1) + strings.Replace(erp, "MODE", "test", 1), "agencies[0].portal.offers", "momo_b"},
	} {
		var faults *form.FaultsError
		if _, err := h.TrySeed(t, c.text); !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Field != c.path || !strings.Contains(faults.Faults[0].Message, c.mend) {
			t.Errorf("%s\n%v", c.text, err)
		}
	}
	// Outside developer mode portals are live.
	var faults *form.FaultsError
	_, err := registryfile.Apply(t.Context(), h.Pool, registries.Actor, []byte(customs), registryfile.Options{Keys: h.Keys, Operators: all.Operators()})
	if !errors.As(err, &faults) || !strings.Contains(faults.Faults[0].Message, "add erp.live to the agency") {
		t.Errorf("outside developer mode: %v", err)
	}
	h.Seed(t, customs+strings.Replace(erp, "MODE", "test", 1))
	h.Seed(t, customs) // the database has the ERP
	p, ok := h.Open(t).PortalOf(registries.AgencyB)
	if !ok || !p.Active || p.SessionLifetime != 2*time.Hour || !slices.Equal(p.Offers, []string{"momo"}) || p.CreationsPerMinute != 0 || len(p.SuccessOrigins) != 0 {
		t.Errorf("the portal with its defaults: %+v, %v", p, ok)
	}
	if _, ok := h.Open(t).PortalOf(registries.AgencyA); ok {
		t.Error("an unknown agency has a portal")
	}
}

// The application of a portal is nobody's: no key, no credentials and no embed origins can be
// made for it, and it never owns the sessions of platform keys. Operators see whose it is, and
// set what a portal has.
func TestThePortalsApplication(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	ctx, now, id := t.Context(), registries.Epoch.Add(time.Hour), registry.PortalID(registries.AgencyA)
	refused := func(what string, err error, code, field string) {
		t.Helper()
		var refusal *operation.Error
		if !errors.As(err, &refusal) || refusal.Code != code || refusal.Field != field {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, named := range []string{id, "Portail impots"} {
		_, err := identity.CreateKey(ctx, h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Application: named}, now)
		refused("a key", err, "application.portal", "application")
		_, err = cashin.Create(ctx, h.Pool, h.Keys, registries.Actor, named, false, now)
		refused("credentials of cash-in", err, "application.portal", "application")
		_, _, err = registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, named, []string{"https://a.example"}, now)
		refused("an embed origin", err, "application.portal", "application")
	}
	least, most, lifetime, off := int64(1), int64(9), time.Minute, false
	_, err := registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, id, registry.ApplicationChange{CreationsPerMinute: &most}, now)
	refused("a quota of creations", err, "application.portal_has_none", "creations-per-minute")
	_, err = registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, id, registry.ApplicationChange{ReadsPerMinute: &least}, now)
	refused("a quota of reads", err, "application.portal_has_none", "reads-per-minute")
	_, err = registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, id, registry.ApplicationChange{SessionLifetime: &lifetime}, now)
	refused("a lifetime of a minute", err, "registry.out_of_range", "session-lifetime")
	if app, ok := h.Open(t).IntegratorOf(registries.AgencyA); !ok || app.Portal {
		t.Errorf("integrator: %+v", app)
	}
	list, err := registry.ListApplications(ctx, h.Pool)
	if err != nil || len(list) != 2 || list[0].Portal || !list[1].Portal || list[1].Owner() != "Portail impots (impots)" {
		t.Errorf("%+v, %v", list, err)
	}

	// What a command has set, a file leaves.
	changed, err := registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, "Portail impots", registry.ApplicationChange{Active: &off, Offers: []string{"momo_b"}}, now)
	if err != nil || changed.Active || changed.CreationsPerMinute != 0 || changed.SessionLifetime != 3*time.Hour {
		t.Errorf("%+v, %v", changed, err)
	}
	report := h.Seed(t, registries.Full)
	if p, _ := h.Open(t).PortalOf(registries.AgencyA); p.Active || !slices.Equal(p.Offers, []string{"momo_b"}) || len(report.Notes) != 2 || !strings.HasPrefix(report.Notes[0], "agencies[0].portal.active: ") {
		t.Errorf("%+v, %v", p, report.Notes)
	}
	if _, err := registryfile.Apply(ctx, h.Pool, registries.Actor, []byte(registries.Full), registryfile.Options{Keys: h.Keys, Developer: true, Operators: all.Operators(), Overrule: true}); err != nil {
		t.Fatal(err)
	}
	if p, _ := h.Open(t).PortalOf(registries.AgencyA); !p.Active || !slices.Equal(p.Offers, []string{"momo", "cash_agency"}) {
		t.Errorf("overruled: %+v", p)
	}

	// What a file omits stays. The name follows the slug, and the id stays.
	h.Seed(t, `agencies: [{id: 018f0000-0000-7000-8000-000000000001, slug: dgi, name: Impôts}]`)
	if p, ok := h.Open(t).PortalOf(registries.AgencyA); !ok || p.ID != id || p.Name != "Portail dgi" || !p.Active || p.SessionLifetime != 3*time.Hour {
		t.Errorf("after a new slug: %+v", p)
	}
	if report := h.Seed(t, `agencies: [{id: 018f0000-0000-7000-8000-000000000001, slug: dgi, name: Impôts}]`); report.Changed {
		t.Error("the same file again changed something")
	}
}
