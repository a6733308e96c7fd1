package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/test/registries"
)

// refusal fails the test unless err is a refusal with this code and field.
func refusal(t *testing.T, err error, code, field string) {
	t.Helper()
	var refused *operation.Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Field != field {
		t.Errorf("error = %v, want %s of %s", err, code, field)
	}
}

func to[T any](v T) *T { return &v }

// An operator makes an application with an endpoint and embed origins without a registry
// file. Running instances know them within a second, and every change is on record.
func TestWithoutARegistryFile(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	ctx, now := t.Context(), registries.Epoch // also the time of the instance

	app, err := registry.AddApplication(ctx, h.Pool, h.Keys, registries.Actor, registry.ApplicationRequest{
		Agency: "impots", Name: "Vignettes", ApplicationChange: registry.ApplicationChange{Offers: []string{"momo"}, SessionLifetime: to(time.Hour)},
	}, now)
	if err != nil || app.Owner() != "Vignettes (impots)" || !app.Active || app.CreationsPerMinute != 30 || !slices.Equal(app.ByCommand, []string{"offers", "session_lifetime"}) {
		t.Fatalf("%+v, %v", app, err)
	}
	if app, err = registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, "Vignettes", registry.ApplicationChange{Active: to(false), PageSize: to[int64](50)}, now); err != nil || app.Active || app.PageSize != 50 || app.SessionLifetime != time.Hour {
		t.Fatalf("%+v, %v", app, err)
	}
	registries.Within(t, 5*time.Second, "the application is known", func() bool {
		known, ok := r.Application(app.ID)
		return ok && !known.Active && known.PageSize == 50 && known.SessionLifetime == time.Hour
	})

	added, err := registry.AddEndpoint(ctx, h.Pool, h.Keys, registries.Actor, registry.EndpointRequest{
		Application: app.ID, URL: "https://vignettes.example.org/hooks", EndpointChange: registry.EndpointChange{Events: []string{"checkout.completed"}, Modes: []string{"live"}},
	}, now)
	if err != nil || added.Restored || added.Endpoint.Owner() != "Vignettes (impots)" || added.Endpoint.Signing != 1 || !strings.HasPrefix(added.Secret.Reveal(), "whsec_") {
		t.Fatalf("%+v, %v", added, err)
	}
	id := added.Endpoint.ID
	receives := func(event string, live bool) bool {
		return slices.ContainsFunc(r.Endpoints(app.ID, false, live, event), func(e registry.WebhookEndpoint) bool { return e.ID == id && len(e.Secrets) == 1 })
	}
	registries.Within(t, 5*time.Second, "it receives live completions only", func() bool {
		return receives("checkout.completed", true) && !receives("checkout.completed", false) && !receives("checkout.failed", true)
	})
	if _, err := registry.ChangeEndpoint(ctx, h.Pool, h.Keys, registries.Actor, id, registry.EndpointChange{Events: []string{"checkout.failed"}, MaxPerSecond: to[int64](7)}, now); err != nil {
		t.Fatal(err)
	}
	registries.Within(t, 5*time.Second, "it receives failures only", func() bool { return !receives("checkout.completed", true) && receives("checkout.failed", true) })

	removed, err := registry.RemoveEndpoint(ctx, h.Pool, h.Keys, registries.Actor, id, now)
	if err != nil || !removed.RemovedAt.Equal(now) {
		t.Fatalf("%+v, %v", removed, err)
	}
	registries.Within(t, 5*time.Second, "it receives nothing", func() bool {
		known, ok := r.Endpoint(id) // its deliveries still name it
		return !receives("checkout.failed", true) && ok && known.Locked
	})
	_, err = registry.RemoveEndpoint(ctx, h.Pool, h.Keys, registries.Actor, id, now)
	refusal(t, err, "endpoint.removed", "id")
	_, err = registry.RotateSecret(ctx, h.Pool, h.Keys, registries.Actor, id, 0, now)
	refusal(t, err, "endpoint.removed", "id")
	again, err := registry.AddEndpoint(ctx, h.Pool, h.Keys, registries.Actor, registry.EndpointRequest{
		Application: "Vignettes", URL: "https://vignettes.example.org/hooks", EndpointChange: registry.EndpointChange{Events: []string{"checkout.completed"}},
	}, now.Add(time.Minute))
	if err != nil || !again.Restored || again.Endpoint.ID != id || again.Secret.Equal(added.Secret) || !again.Endpoint.RemovedAt.IsZero() {
		t.Fatalf("%+v, %v", again, err)
	}
	registries.Within(t, 5*time.Second, "it receives both modes and signs with the new secret only", func() bool {
		known, _ := r.Endpoint(id)
		return receives("checkout.completed", true) && receives("checkout.completed", false) && known.Secrets[0].Equal(again.Secret)
	})

	if want := []string{"registry.apply", "application.add", "application.set", "endpoint.add", "endpoint.set", "endpoint.remove", "endpoint.add"}; !slices.Equal(h.Audited(t), want) {
		t.Errorf("audited: %v, want %v", h.Audited(t), want)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	ctx, now := t.Context(), registries.Epoch.Add(time.Hour)
	e, changed, err := registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, "Guichet fiscal", []string{"https://a.example", "https://guichet.example"}, now)
	if err != nil || !changed || !slices.Equal(e.Origins, []string{"https://guichet.example", "https://a.example"}) {
		t.Fatalf("%+v, %v, %v", e, changed, err)
	}
	if _, changed, err = registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, "", []string{"https://portal.example"}, now); changed || err != nil {
		t.Errorf("an origin that is there: %v, %v", changed, err)
	}
	if e, changed, err = registry.RemoveOrigins(ctx, h.Pool, h.Keys, registries.Actor, "", []string{"https://portal.example"}, now); !changed || err != nil || len(e.Origins) != 0 || e.Owner() != "platform" {
		t.Errorf("%+v, %v, %v", e, changed, err)
	}
	registries.Within(t, 5*time.Second, "instances know it", func() bool {
		app, _ := r.Application(registries.AppA)
		return len(r.Platform().EmbedOrigins) == 0 && slices.Contains(app.EmbedOrigins, "https://a.example")
	})
	for _, bad := range []string{"http://a.example", "https://a.example/", "https://A.example", "https://a.example:443", "a.example", ""} {
		_, _, err := registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, "", []string{bad}, now)
		refusal(t, err, "origin.malformed", "id")
	}
	_, _, err = registry.RemoveOrigins(ctx, h.Pool, h.Keys, registries.Actor, "Guichet fiscal", []string{"https://b.example"}, now)
	refusal(t, err, "origin.unknown", "id")
	_, _, err = registry.AddOrigins(ctx, h.Pool, h.Keys, registries.Actor, "Nobody", []string{"https://b.example"}, now)
	refusal(t, err, "application.unknown", "application")
	if list, err := registry.ListOrigins(ctx, h.Pool); err != nil || len(list) != 2 || list[0].Owner() != "platform" || len(list[1].Origins) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if want := []string{"registry.apply", "origin.add", "origin.add", "origin.remove"}; !slices.Equal(h.Audited(t), want) {
		t.Errorf("audited: %v, want %v", h.Audited(t), want)
	}
}

// A refusal names the faulty input and changes nothing.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	before := h.Revision(t)
	ctx, now := t.Context(), registries.Epoch
	good := registry.ApplicationRequest{Agency: "impots", Name: "New", ApplicationChange: registry.ApplicationChange{Offers: []string{"momo"}}}
	for _, c := range []struct {
		code, field string
		change      func(*registry.ApplicationRequest)
	}{
		{"agency.unknown", "agency", func(r *registry.ApplicationRequest) { r.Agency = "douanes" }},
		{"application.name_malformed", "name", func(r *registry.ApplicationRequest) { r.Name = " " }},
		{"application.name_taken", "name", func(r *registry.ApplicationRequest) { r.Name = "Guichet fiscal" }},
		{"application.second_integrator", "integrator", func(r *registry.ApplicationRequest) { r.Integrator = true }},
		{"registry.not_among", "offers", func(r *registry.ApplicationRequest) { r.Offers = []string{"momo", "cheque"} }},
		{"registry.not_among", "offers", func(r *registry.ApplicationRequest) { r.Offers = []string{} }},
		{"registry.out_of_range", "session-lifetime", func(r *registry.ApplicationRequest) { r.SessionLifetime = to(31 * 24 * time.Hour) }},
		{"registry.out_of_range", "creations-per-minute", func(r *registry.ApplicationRequest) { r.CreationsPerMinute = to[int64](0) }},
		{"registry.out_of_range", "page-size", func(r *registry.ApplicationRequest) { r.PageSize = to[int64](101) }},
	} {
		req := good
		c.change(&req)
		_, err := registry.AddApplication(ctx, h.Pool, h.Keys, registries.Actor, req, now)
		refusal(t, err, c.code, c.field)
	}
	_, err := registry.ChangeApplication(ctx, h.Pool, h.Keys, registries.Actor, "Nobody", registry.ApplicationChange{Active: to(false)}, now)
	refusal(t, err, "application.unknown", "id")

	endpoint := registry.EndpointRequest{Application: registries.AppA, URL: "https://new.example.org/secret-path", EndpointChange: registry.EndpointChange{Events: []string{"checkout.completed"}}}
	for _, c := range []struct {
		code, field string
		change      func(*registry.EndpointRequest)
	}{
		{"application.unknown", "application", func(r *registry.EndpointRequest) { r.Application = "Nobody" }},
		{"endpoint.url_refused", "url", func(r *registry.EndpointRequest) { r.URL = "http://new.example.org/secret-path" }},
		{"endpoint.url_refused", "url", func(r *registry.EndpointRequest) { r.URL = "http://127.0.0.1:8081/secret-path" }},
		{"endpoint.exists", "url", func(r *registry.EndpointRequest) { r.Application, r.URL = "", "https://portal.example.org/hooks" }},
		{"registry.not_among", "events", func(r *registry.EndpointRequest) { r.Events = nil }},
		{"registry.not_among", "events", func(r *registry.EndpointRequest) { r.Events = []string{"checkout.paid"} }},
		{"registry.not_among", "modes", func(r *registry.EndpointRequest) { r.Modes = []string{"prod"} }},
		{"registry.out_of_range", "max-in-flight", func(r *registry.EndpointRequest) { r.MaxInFlight = to[int64](0) }},
	} {
		req := endpoint
		c.change(&req)
		_, err := registry.AddEndpoint(ctx, h.Pool, h.Keys, registries.Actor, req, now)
		refusal(t, err, c.code, c.field)
		if strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%v repeats the address", err)
		}
	}
	_, err = registry.ChangeEndpoint(ctx, h.Pool, h.Keys, registries.Actor, registries.AppA, registry.EndpointChange{}, now)
	refusal(t, err, "endpoint.unknown", "id")
	if h.Revision(t) != before || len(h.Audited(t)) != 1 {
		t.Errorf("a refusal changed something: revision %d of %d, audited %v", h.Revision(t), before, h.Audited(t))
	}
	if _, err := registry.AddEndpoint(ctx, h.Pool, h.Keys, registries.Actor, registry.EndpointRequest{
		Application: registries.AppA, URL: "http://127.0.0.1:3000/hooks", Loopback: true, EndpointChange: endpoint.EndpointChange,
	}, now); err != nil {
		t.Errorf("an address of this machine in developer mode: %v", err)
	}
}
