package registryfile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/connector/all"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/test/registries"
)

// A registry file is applied again after commands have changed what it names. It leaves what
// the commands have set, and says so where it differs; with Overrule it sets its fields and
// origins again.
func TestAFileLeavesWhatCommandsHaveSet(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	ctx, now := t.Context(), registries.Epoch.Add(time.Hour)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	size, same := int64(7), int64(40)
	_, err := registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, registries.AppA, registry.ApplicationChange{Offers: []string{"momo"}, PageSize: &size, CreationsPerMinute: &same}, now)
	must(err)
	_, _, err = registry.RemoveOrigins(ctx, h.Pool, h.Keys, registries.Actor, registries.AppA, []string{"https://guichet.example"}, now)
	must(err)
	_, _, err = registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, registries.AppA, []string{"https://added.example"}, now)
	must(err)
	_, _, err = registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, "", []string{"https://second.example"}, now)
	must(err)
	d, err := registry.ReadDirectory(ctx, h.Pool, "", now)
	must(err)
	platforms, own := d.Endpoints[0], d.Endpoints[1]
	_, err = registry.RemoveEndpoint(ctx, h.Pool, h.Keys, registries.Actor, platforms.ID, now)
	must(err)
	_, err = registry.ChangeEndpoint(ctx, h.Pool, h.Keys, registries.Actor, own.ID, registry.EndpointChange{Events: []string{"checkout.reversed"}}, now)
	must(err)

	stands := func(what string, offers, origins, platform, events []string, pageSize int) {
		t.Helper()
		r := h.Open(t)
		app, _ := r.Application(registries.AppA)
		e, _ := r.Endpoint(own.ID)
		if !slices.Equal(app.Offers, offers) || !slices.Equal(app.EmbedOrigins, origins) || !slices.Equal(r.Platform().EmbedOrigins, platform) || !slices.Equal(e.Events, events) || app.PageSize != pageSize || app.CreationsPerMinute != 40 || e.MaxInFlight != 3 {
			t.Errorf("%s: %+v, %+v, %+v", what, app, r.Platform(), e)
		}
		if removed, _ := r.Endpoint(platforms.ID); removed.RemovedAt.IsZero() || len(r.Endpoints("", true, false, "checkout.completed")) != 0 {
			t.Errorf("%s: the removed endpoint is restored", what)
		}
	}
	// The file also has a new origin, which no command has decided about.
	text := registries.Edit(t, `embed_origins: ["https://guichet.example"]`, `embed_origins: ["https://guichet.example", "https://new.example"]`)
	report := h.Seed(t, text)
	stands("after the file", []string{"momo"}, []string{"https://new.example", "https://added.example"}, []string{"https://portal.example", "https://second.example"}, []string{"checkout.reversed"}, 7)
	for _, want := range []string{
		"applications[0].offers: a command has set this field", "applications[0].page_size: a command", "has removed the origin https://guichet.example", "has added the origin https://added.example",
		"platform.embed_origins: a command has added", "webhook_endpoints[0]: this endpoint was removed at", "webhook_endpoints[0].events: a command",
	} {
		if !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note says %q: %q", want, report.Notes)
		}
	}
	if slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "creations_per_minute") }) {
		t.Errorf("a field that is the same in both is noted: %q", report.Notes)
	}
	if report := h.Seed(t, text); report.Changed {
		t.Errorf("the same file changes something: %+v", report)
	}

	overrule := func() registryfile.Report {
		t.Helper()
		report, err := registryfile.Apply(ctx, h.Pool, registries.Actor, []byte(text), registryfile.Options{
			Keys: h.Keys, Developer: true, Operators: all.Operators(), Overrule: true, Now: func() time.Time { return now },
		})
		must(err)
		return report
	}
	overrule()
	stands("after overruling", []string{"momo", "card"}, []string{"https://guichet.example", "https://new.example"}, []string{"https://portal.example"}, []string{"checkout.completed", "checkout.failed"}, 25)
	if report := h.Seed(t, text); report.Changed || len(report.Notes) != 1 { // the removed endpoint
		t.Errorf("after overruling the file changes or notes something: %+v", report)
	}
}
