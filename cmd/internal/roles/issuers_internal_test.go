package roles

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/dev/simulator"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/backoffice"
	"quittance/test/registries"
	"quittance/test/servers"
)

var toIssuer = regexp.MustCompile(`<a class="button" href="([^"]*)"`)

// The pages have the rights and the keys that a sign-in at an identity provider needs, also for an invited person.
func TestOfficeAsksIdentityProviders(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t, func(h registries.House) (*pgxpool.Pool, *secret.Keys) {
		servers.Grant(t, h.DSN, strings.Join(Statements(Options{}, "public"), "\n"))
		return as(t, h, "office")
	})
	s, err := simulator.New(simulator.Config{Now: time.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	if _, err := identity.AddIssuer(t.Context(), w.Pool, w.Keys, registries.Actor, identity.IssuerRequest{Address: server.URL + "/idp/a", ClientID: "quittance", Secret: secret.Mint(""), Agency: "impots", Loopback: true}, w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.BindSubject(t.Context(), w.Pool, w.Keys, registries.Actor, "Awa", "sub-of-awa", w.Now()); err != nil {
		t.Fatal(err)
	}
	visit := func(b *backoffice.Browser, subject string) {
		t.Helper()
		found := toIssuer.FindStringSubmatch(b.Get("/sign-in/issuer").Body.String())
		if found == nil {
			t.Fatal("no way to the provider")
		}
		to, err := url.Parse(html.UnescapeString(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		form := to.Query()
		form.Set("subject", subject)
		to.RawQuery = ""
		answer, err := client.PostForm(to.String(), form)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		back, err := answer.Location()
		if err != nil {
			t.Fatal(err)
		}
		backoffice.Want(t, b.Get(back.RequestURI()), http.StatusOK, "vous a reconnu")
	}
	b := w.Enter(t, "Awa")
	visit(b, "sub-of-awa")
	backoffice.Want(t, b.Get("/work"), http.StatusOK, "Awa")

	by := identity.By{Actor: registries.Actor}
	invited, err := identity.InviteStaff(t.Context(), w.Pool, w.Keys, by, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Nadège", Agency: "impots"}}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	b = w.NewBrowser()
	b.Post("/join/accept", url.Values{"link": {invited.Secret.Reveal()}})
	b.Post("/join/issuer", nil)
	visit(b, "sub-of-nadège")
	backoffice.Want(t, b.Get("/join"), http.StatusOK, "Clé d’accès 1 sur 2")
}
