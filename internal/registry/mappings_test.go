package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/connector/all"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/test/registries"
)

// A command changes the catalogue mapping. Every running instance resolves by it within a
// second, each change is on record, and a registry file leaves it unless it overrules.
func TestMappings(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	text := strings.Replace(registries.Full, "{code: foncier, label: \"Foncier\", active: false}", "{code: foncier, label: \"Foncier\", active: false}\n      - {code: voirie, label: \"Voirie\"}", 1)
	if text == registries.Full {
		t.Fatal("the file has changed")
	}
	h.Seed(t, text)
	one, two := h.Open(t), h.Open(t)
	registries.Run(t, one)
	registries.Run(t, two)
	ctx, now := t.Context(), registries.Epoch.Add(time.Hour)
	change := func(c registry.MappingChange) (registry.MappingsEntry, bool) {
		t.Helper()
		e, changed, err := registry.ChangeMappings(ctx, h.Pool, h.Keys, registries.Actor, "impots", c, now)
		if err != nil {
			t.Fatal(err)
		}
		return e, changed
	}
	resolves := func(what string, want map[string]string) {
		t.Helper()
		registries.Within(t, 5*time.Second, what, func() bool {
			for code, service := range want {
				for _, r := range []registries.Instance{one, two} {
					if got, _ := r.ResolveService(registries.AgencyA, code); got.Code != service {
						return false
					}
				}
			}
			return true
		})
	}
	// 4712 is mapped to an inactive service: the default counts.
	resolves("the file's mapping", map[string]string{"4711": "patente", "4712": "patente", "9": "patente", "": "patente"})

	e, changed := change(registry.MappingChange{Set: map[string]string{"4711": "voirie", "9": "voirie"}})
	if !changed || said(e) != "4711=voirie! 4712=foncier 9=voirie! default=patente" {
		t.Errorf("%v: %s", changed, said(e))
	}
	resolves("a new mapping", map[string]string{"4711": "voirie", "4712": "patente", "9": "voirie", "": "patente"})
	if e, changed = change(registry.MappingChange{Set: map[string]string{"9": "voirie"}}); changed {
		t.Errorf("the same again: %s", said(e))
	}
	if e, changed = change(registry.MappingChange{Remove: []string{"4712", "9"}, Default: to("")}); !changed || said(e) != "4711=voirie! default=! removed 4712 9" {
		t.Errorf("%v: %s", changed, said(e))
	}
	resolves("removed mappings", map[string]string{"4711": "voirie", "4712": "", "9": "", "": ""})
	if _, changed = change(registry.MappingChange{Remove: []string{"4712"}}); changed {
		t.Error("removing it again changes something")
	}

	listed := func() string {
		t.Helper()
		list, err := registry.ListMappings(ctx, h.Pool, registries.AgencyA)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return said(list[0])
	}
	// A file leaves what commands have decided, and notes what differs.
	report := h.Seed(t, text)
	if got := listed(); report.Changed || got != "4711=voirie! default=! removed 4712 9" {
		t.Errorf("after the file: %v, %s", report.Changed, got)
	}
	for _, want := range []string{
		"agencies[0].service_mappings[0]: a command has mapped this erp_code to voirie", "agencies[0].service_mappings[1]: a command has removed",
		"agencies[0].default_service: a command has set this field",
	} {
		if !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note says %q: %q", want, report.Notes)
		}
	}
	_, err := registryfile.Apply(ctx, h.Pool, registries.Actor, []byte(text), registryfile.Options{
		Keys: h.Keys, Developer: true, Operators: all.Operators(), Overrule: true, Now: func() time.Time { return now },
	})
	if got := listed(); err != nil || got != "4711=patente 4712=foncier default=patente" {
		t.Errorf("after overruling: %s, %v", got, err)
	}
	resolves("the file's mapping again", map[string]string{"4711": "patente", "9": "patente"})

	for _, bad := range []struct {
		agency, code, field string
		change              registry.MappingChange
	}{
		{"nobody", "agency.unknown", "agency", registry.MappingChange{}},
		{"impots", "service.unknown", "service", registry.MappingChange{Set: map[string]string{"1": "nothing"}}},
		{"impots", "service.unknown", "default-service", registry.MappingChange{Default: to("nothing")}},
		{"impots", "mapping.code_malformed", "erp-code", registry.MappingChange{Set: map[string]string{"": "voirie"}}},
		{"impots", "mapping.code_malformed", "erp-code", registry.MappingChange{Set: map[string]string{strings.Repeat("é", 51): "voirie"}}},
		{"impots", "mapping.unknown", "erp-code", registry.MappingChange{Set: map[string]string{"1": "voirie"}, Remove: []string{"77"}}},
	} {
		_, _, err := registry.ChangeMappings(ctx, h.Pool, h.Keys, registries.Actor, bad.agency, bad.change, now)
		refusal(t, err, bad.code, bad.field)
	}
	if _, err := registry.ListMappings(ctx, h.Pool, "nobody"); err == nil {
		t.Error("the mappings of nobody are listed")
	}
	if got := h.Audited(t); !slices.Equal(got[:5], []string{"registry.apply", "mapping.change", "mapping.change", "mapping.change", "mapping.change"}) {
		t.Errorf("audited: %v", got)
	}
}

// said writes an entry in one line. An exclamation mark means: by a command.
func said(e registry.MappingsEntry) string {
	mark := map[bool]string{true: "!"}
	var parts []string
	for _, m := range e.Mappings {
		parts = append(parts, fmt.Sprintf("%s=%s%s", m.ERPCode, m.Service.Code, mark[m.ByCommand]))
	}
	parts = append(parts, "default="+e.Default.Code+mark[e.DefaultByCommand])
	if len(e.Removed) > 0 {
		parts = append(parts, "removed "+strings.Join(e.Removed, " "))
	}
	return strings.Join(parts, " ")
}
