package staff_test

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/simulator"
	device "quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/backoffice"
	"quittance/test/office"
	"quittance/test/registries"
	"quittance/test/servers"
)

// providers are the pages of staff and two identity providers, a and b, over HTTP.
type providers struct {
	*backoffice.World
	address string // of the simulators
	client  *http.Client
}

const impots, mine = "impots", "sub-of-awa"

func openProviders(t *testing.T) providers {
	t.Helper()
	s, err := simulator.New(simulator.Config{Now: time.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return providers{backoffice.New(t), server.URL, client}
}

func (p providers) idp(name string) string { return p.address + "/idp/" + name }

// add makes a provider the one of a group.
func (p providers) add(t *testing.T, name, agency string, algorithms ...string) identity.IssuerEntry {
	t.Helper()
	i, err := identity.AddIssuer(t.Context(), p.Pool, p.Keys, registries.Actor, identity.IssuerRequest{
		Address: p.idp(name), ClientID: "quittance-" + name, Secret: secret.NewText("client-secret"), Agency: agency, Algorithms: algorithms, Loopback: true,
	}, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (p providers) bind(t *testing.T, name, subject string) {
	t.Helper()
	if _, err := identity.BindSubject(t.Context(), p.Pool, p.Keys, registries.Actor, name, subject, p.Now()); err != nil {
		t.Fatal(err)
	}
}

// control sets how a provider behaves, and returns its answer.
func (p providers) control(t *testing.T, path, body string) string {
	t.Helper()
	return p.post(t, p.address+"/control/idp/"+path, "application/json", body, "")
}

func (p providers) post(t *testing.T, to, contentType, body, location string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: %d %s, %v", to, answer.StatusCode, text, err)
	}
	if location != "" {
		return answer.Header.Get(location)
	}
	return string(text)
}

// prove has a person prove the passkey, and returns the browser, which is not signed in yet.
func (p providers) prove(t *testing.T, name string) *backoffice.Browser {
	t.Helper()
	b := p.NewBrowser()
	backoffice.Want(t, b.Prove(t, name, "/sign-in/begin", nil, "/sign-in/finish?next=%2Fagency%2Fcases"), http.StatusOK, `"state":"at_issuer"`, `"next":"/sign-in/issuer?lang=fr"`)
	if a := b.Get("/work"); a.Code != http.StatusSeeOther {
		t.Errorf("with the passkey alone: %d", a.Code)
	}
	return b
}

var link = regexp.MustCompile(`<a class="button" href="([^"]*)"`)

// leave follows the link to the provider, signs in there as a subject, and returns the address to which the browser is sent back.
func (p providers) leave(t *testing.T, b *backoffice.Browser, subject string) *url.URL {
	t.Helper()
	page := b.Get("/sign-in/issuer")
	found := link.FindStringSubmatch(page.Body.String())
	if page.Code != http.StatusOK || found == nil {
		t.Fatalf("the page that leads to the provider: %d\n%.3000s", page.Code, page.Body)
	}
	to, err := url.Parse(html.UnescapeString(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	q := to.Query()
	q.Set("subject", subject)
	q.Set("email", "agent@example.org")
	to.RawQuery = ""
	back, err := url.Parse(p.post(t, to.String(), "application/x-www-form-urlencoded", q.Encode(), "Location"))
	if err != nil || !strings.HasPrefix(back.String(), office.URL+identity.IssuerPath) {
		t.Fatalf("the provider leads to %s, %v", back, err)
	}
	return back
}

// comeBack is the request with which the provider sends a browser back: of another site, so that no Strict cookie is with it.
func comeBack(b *backoffice.Browser, at *url.URL) *httptest.ResponseRecorder {
	kept := map[string]string{}
	for name, value := range b.Cookies() {
		if name != "__Host-quittance_staff_issuer" {
			kept[name] = value
			delete(b.Cookies(), name)
		}
	}
	b.Header.Set("Sec-Fetch-Site", "cross-site")
	a := b.Get(at.RequestURI())
	b.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, value := range kept {
		if b.Cookies()[name] == "" {
			b.Cookies()[name] = value
		}
	}
	return a
}

// refused checks that somebody is not signed in, and with which words.
func refused(t *testing.T, b *backoffice.Browser, a *httptest.ResponseRecorder, status int, words string) {
	t.Helper()
	backoffice.Want(t, a, status, words)
	if b.Cookies()["__Host-quittance_staff"] != "" {
		t.Errorf("%s: the browser has %v", words, b.Cookies())
	}
}

// An agent proves the passkey, then signs in at the provider of the group. The session begins after both, is another one than
// somebody has planted, and its cookie opens nothing after the sign-out. An answer works once. A group without a provider signs in
// with passkeys, as before.
func TestSignInAtAnIssuer(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	p.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	before := p.Enter(t, "Awa")
	p.add(t, "a", impots)
	if a := before.Get("/work"); a.Code != http.StatusSeeOther {
		t.Errorf("a session of before the provider: %d", a.Code)
	}
	b := p.NewBrowser()
	backoffice.Want(t, b.Prove(t, "Awa", "/sign-in/begin", nil, "/sign-in/finish"), http.StatusUnauthorized, "n’est pas encore relié")
	p.bind(t, "Awa", mine)

	b = p.prove(t, "Awa")
	b.Cookies()["__Host-quittance_staff"] = strings.Repeat("A", 43) // planted
	back := p.leave(t, b, mine)
	a := comeBack(b, back)
	backoffice.Want(t, a, http.StatusOK, "vous a reconnu", `href="/agency/cases"`)
	if a.Header().Get("Refresh") != "0; url=/agency/cases" {
		t.Errorf("Refresh is %q", a.Header().Get("Refresh"))
	}
	cookie := b.Cookies()["__Host-quittance_staff"]
	if cookie == strings.Repeat("A", 43) {
		t.Errorf("the cookies after the sign-in: %v", b.Cookies())
	}
	backoffice.Want(t, b.Get("/agency/cases"), http.StatusOK, "Connecté\u00a0: Awa")
	refused(t, p.NewBrowser(), comeBack(p.NewBrowser(), back), http.StatusUnauthorized, "n’est plus en cours dans ce navigateur")

	b.Post("/sign-out", nil)
	stolen := p.NewBrowser()
	stolen.Cookies()["__Host-quittance_staff"] = cookie
	if a := stolen.Get("/work"); a.Code != http.StatusSeeOther {
		t.Errorf("a stolen cookie after the sign-out: %d", a.Code)
	}
	if actions := p.Audited(t); !slices.Contains(actions, "staff.issuer_add") || !slices.Contains(actions, "staff.issuer_bind") || !slices.Contains(actions, "staff.sign_in") {
		t.Errorf("the audit table has %v", actions)
	}
	backoffice.Want(t, p.Enter(t, "Olive").Get("/work"), http.StatusOK)
	if _, err := identity.RemoveIssuer(t.Context(), p.Pool, p.Keys, registries.Actor, impots, p.Now()); err != nil {
		t.Fatal(err)
	}
	backoffice.Want(t, p.Enter(t, "Awa").Get("/work"), http.StatusOK)
}

// A provider that is faulty, or that somebody plays, signs nobody in, and the page says why.
func TestFaultsOfIssuers(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	p.add(t, "a", impots)
	p.bind(t, "Awa", mine)
	for _, f := range []struct {
		fault  string
		status int
		words  string
	}{
		{simulator.IdPNoNonce, http.StatusUnauthorized, "n’est pas celle de cette connexion"},
		{simulator.IdPOtherNonce, http.StatusUnauthorized, "n’est pas celle de cette connexion"},
		{simulator.IdPNone, http.StatusUnauthorized, "n’est pas signée comme convenu"},
		{simulator.IdPHMAC, http.StatusUnauthorized, "n’est pas signée comme convenu"},
		{simulator.IdPForeignKey, http.StatusUnauthorized, "La signature de la réponse n’est pas celle"},
		{simulator.IdPOtherIss, http.StatusUnauthorized, "vient d’un autre fournisseur"},
		{simulator.IdPAnswerIss, http.StatusUnauthorized, "vient d’un autre fournisseur"},
		{simulator.IdPNoIss, http.StatusUnauthorized, "vient d’un autre fournisseur"},
		{simulator.IdPAudience, http.StatusUnauthorized, "destinée à un autre service"},
		{simulator.IdPLate, http.StatusUnauthorized, "arrivée trop tard"},
	} {
		p.control(t, "a", `{"fault": "`+f.fault+`"}`)
		b := p.prove(t, "Awa")
		refused(t, b, comeBack(b, p.leave(t, b, mine)), f.status, f.words)
	}

	// The keys rotate: the new one is read. They are away: what the service knows still counts, and another one does not.
	p.control(t, "a", `{"reset": true, "rotate": true}`)
	b := p.prove(t, "Awa")
	backoffice.Want(t, comeBack(b, p.leave(t, b, mine)), http.StatusOK, "vous a reconnu")
	p.control(t, "a", `{"fault": "keys_away", "rotate": true}`)
	b = p.prove(t, "Awa")
	refused(t, b, comeBack(b, p.leave(t, b, mine)), http.StatusServiceUnavailable, "ne répond pas")
	b = p.prove(t, "Awa")
	back := p.leave(t, b, mine)
	p.control(t, "a", `{"fault": "away"}`)
	refused(t, b, comeBack(b, back), http.StatusServiceUnavailable, "ne répond pas")

	// Ten minutes are over, or the person declines.
	p.control(t, "a", `{"reset": true}`)
	b = p.prove(t, "Awa")
	refused(t, b, comeBack(b, p.leave(t, b, "")), http.StatusUnauthorized, "ne vous a pas connecté")
	b = p.prove(t, "Awa")
	back = p.leave(t, b, mine)
	p.MoveTo(p.Now().Add(identity.IssuerVisitLife))
	refused(t, b, comeBack(b, back), http.StatusUnauthorized, "n’est plus en cours dans ce navigateur")

	// An algorithm that the settings do not have, and those that they have.
	p.control(t, "a", `{"algorithm": "ES256"}`)
	b = p.prove(t, "Awa")
	refused(t, b, comeBack(b, p.leave(t, b, mine)), http.StatusUnauthorized, "n’est pas signée comme convenu")
	p.add(t, "a", impots, "ES256", "EdDSA")
	for _, algorithm := range []string{"ES256", "EdDSA"} {
		p.control(t, "a", `{"algorithm": "`+algorithm+`"}`)
		b = p.prove(t, "Awa")
		backoffice.Want(t, comeBack(b, p.leave(t, b, mine)), http.StatusOK, "vous a reconnu")
	}
	var codes []string
	rows, err := p.Pool.Query(t.Context(), `SELECT DISTINCT detail->>'code' FROM audit WHERE action = 'staff.issuer_refused' AND subject = $1`, p.IDs["Awa"])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var code string
		if err := rows.Scan(&code); err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
	}
	if len(codes) != 8 || rows.Err() != nil {
		t.Errorf("the audit table has %v", codes)
	}
}

// Who somebody is at the provider is the subject, never the e-mail address. An answer is that of its own browser and its own
// provider.
func TestPeopleOfIssuers(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa", "Ben")
	p.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	p.add(t, "a", impots)
	of := p.add(t, "b", "")
	p.bind(t, "Awa", mine)
	p.bind(t, "Ben", "sub-of-ben")
	p.bind(t, "Olive", mine) // the same subject, and the same e-mail address, of another provider

	for _, subject := range []string{"sub-of-ben", "sub-of-awa-2", "SUB-OF-AWA", mine + " "} {
		b := p.prove(t, "Awa")
		refused(t, b, comeBack(b, p.leave(t, b, subject)), http.StatusUnauthorized, "a reconnu une autre personne")
	}
	if _, err := identity.BindSubject(t.Context(), p.Pool, p.Keys, registries.Actor, "Ben", mine, p.Now()); err == nil || !strings.Contains(err.Error(), "issuer.subject_taken") {
		t.Errorf("one subject of two people: %v", err)
	}

	// Another browser's answer, such as one that somebody sends in a link to sign the other one in as himself.
	awa, ben := p.prove(t, "Awa"), p.prove(t, "Ben")
	back := p.leave(t, ben, "sub-of-ben")
	refused(t, awa, comeBack(awa, back), http.StatusUnauthorized, "n’est plus en cours dans ce navigateur")
	backoffice.Want(t, comeBack(ben, back), http.StatusOK, "vous a reconnu")

	// A answers for B: at B's address, with B's visit.
	b := p.prove(t, "Awa")
	back = p.leave(t, b, mine)
	back.Path = identity.IssuerPath + of.ID
	refused(t, b, comeBack(b, back), http.StatusUnauthorized, "vient d’un autre fournisseur")
	olive := p.prove(t, "Olive")
	backoffice.Want(t, comeBack(olive, p.leave(t, olive, mine)), http.StatusOK, "vous a reconnu")

	// Suspended at the provider's page, or bound to another subject meanwhile.
	b = p.prove(t, "Awa")
	back = p.leave(t, b, mine)
	p.Write(t, `UPDATE staff SET suspended_at = created_at WHERE id = $1`, p.IDs["Awa"])
	refused(t, b, comeBack(b, back), http.StatusUnauthorized, "est suspendu")

	// Whoever deletes the row of the provider, or edits it, does not make the passkey enough.
	p.Exec(t, `UPDATE staff_issuers SET outage_until = now() + interval '1 hour' WHERE agency_id IS NULL`)
	b = p.NewBrowser()
	backoffice.Want(t, b.Prove(t, "Olive", "/sign-in/begin", nil, "/sign-in/finish"), http.StatusUnauthorized, "pas tel qu’il a été enregistré")
	p.Exec(t, `DELETE FROM staff_issuers WHERE agency_id IS NULL`)
	backoffice.Want(t, b.Prove(t, "Olive", "/sign-in/begin", nil, "/sign-in/finish"), http.StatusUnauthorized, "que le service ne trouve plus")
}

// In one browser an answer of a tab that comes late takes neither the visit nor the session that another tab has begun since.
func TestLateAnswersOfATab(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	p.add(t, "a", impots)
	p.bind(t, "Awa", mine)
	b := p.prove(t, "Awa")
	late := p.leave(t, b, mine)
	b.Prove(t, "Awa", "/sign-in/begin", nil, "/sign-in/finish")
	back := p.leave(t, b, mine)
	backoffice.Want(t, comeBack(b, late), http.StatusUnauthorized, "n’est plus en cours dans ce navigateur")
	backoffice.Want(t, comeBack(b, back), http.StatusOK, "vous a reconnu")
	p.Exec(t, `DELETE FROM staff_sessions`)
	for _, asks := range []string{"", "1"} {
		b.Header.Set("Quittance-Asks", asks)
		if a := b.Get("/work"); a.Code == http.StatusOK || a.Header().Get("Set-Cookie") != "" {
			t.Errorf("a session that has ended: %d, sets %q", a.Code, a.Header().Get("Set-Cookie"))
		}
	}
}

// A sign-in that is not committed while the group gets a provider, or while its person is bound to another subject, is stored
// afterwards. Its session has ended.
func TestSignInsThatCrossTheIssuer(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	p.Exec(t, `CREATE TABLE crossing AS SELECT * FROM staff_sessions`)
	cross := func(what string, b *backoffice.Browser, change func()) {
		backoffice.Want(t, b.Get("/work"), http.StatusOK)
		p.Exec(t, `INSERT INTO crossing SELECT * FROM staff_sessions`)
		change()
		p.Exec(t, `INSERT INTO staff_sessions SELECT * FROM crossing`)
		p.Exec(t, `DELETE FROM crossing`)
		if a := b.Get("/work"); a.Code != http.StatusSeeOther {
			t.Errorf("%s: %d", what, a.Code)
		}
		p.Exec(t, `DELETE FROM staff_sessions`)
	}
	cross("issuers add", p.Enter(t, "Awa"), func() { p.add(t, "a", impots) })
	p.bind(t, "Awa", mine)
	b := p.prove(t, "Awa")
	comeBack(b, p.leave(t, b, mine))
	cross("issuers bind", b, func() { p.bind(t, "Awa", "sub-of-awa-2") })
}

// The provider signs somebody out whose answer has come, and whose session is not stored yet: none begins.
func TestALogoutTokenCrossesASignIn(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	of := p.add(t, "a", impots)
	p.bind(t, "Awa", mine)
	b := p.prove(t, "Awa")
	back := p.leave(t, b, mine)
	tx, err := p.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM staff WHERE id = $1 FOR NO KEY UPDATE`, p.IDs["Awa"]); err != nil {
		t.Fatal(err)
	}
	answer := make(chan *httptest.ResponseRecorder)
	go func() { answer <- comeBack(b, back) }()
	for waiting, until := 0, time.Now().Add(30*time.Second); waiting == 0; time.Sleep(5 * time.Millisecond) { // the sign-in waits for the row
		if time.Now().After(until) {
			t.Fatal("no sign-in waits for the row")
		}
		if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT l.granted AND a.query LIKE '%lock_staff%' AND l.transactionid IN (SELECT transactionid FROM pg_locks WHERE granted AND pid = $1)`, tx.Conn().PgConn().PID()).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	var made struct {
		Token string `json:"logout_token"`
	}
	if err := json.Unmarshal([]byte(p.control(t, "a/logout", `{"client_id": "quittance-a", "subject": "`+mine+`"}`)), &made); err != nil {
		t.Fatal(err)
	}
	caller := p.NewBrowser()
	caller.Header = http.Header{}
	backoffice.Want(t, caller.Post(identity.IssuerPath+of.ID+identity.LogoutSuffix, url.Values{"logout_token": {made.Token}}), http.StatusOK)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, b, <-answer, http.StatusUnauthorized, "n’est plus en cours dans ce navigateur")
}

// The provider signs somebody out: the sessions end. A logout token works once, and an ID token is none.
func TestLogoutTokens(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	of := p.add(t, "a", impots)
	p.bind(t, "Awa", mine)
	enter := func() *backoffice.Browser {
		b := p.prove(t, "Awa")
		backoffice.Want(t, comeBack(b, p.leave(t, b, mine)), http.StatusOK)
		backoffice.Want(t, b.Get("/work"), http.StatusOK)
		return b
	}
	token := func(idp, client, subject string) url.Values {
		var made struct {
			Token string `json:"logout_token"`
		}
		if err := json.Unmarshal([]byte(p.control(t, idp+"/logout", `{"client_id": "`+client+`", "subject": "`+subject+`"}`)), &made); err != nil || made.Token == "" {
			t.Fatalf("%+v, %v", made, err)
		}
		return url.Values{"logout_token": {made.Token}}
	}
	send := func(form url.Values) *httptest.ResponseRecorder {
		caller := p.NewBrowser()
		caller.Header = http.Header{} // a server, no browser
		return caller.Post(identity.IssuerPath+of.ID+identity.LogoutSuffix, form)
	}
	b := enter()
	backoffice.Want(t, send(token("a", "quittance-a", "sub-of-ben")), http.StatusOK)
	backoffice.Want(t, send(token("b", "quittance-a", mine)), http.StatusBadRequest, "issuer.signature")
	backoffice.Want(t, send(token("a", "another", mine)), http.StatusBadRequest, "issuer.audience")
	backoffice.Want(t, send(url.Values{"logout_token": {"x.y.z"}}), http.StatusBadRequest, "issuer.algorithm")
	p.control(t, "a", `{"fault": "late"}`)
	backoffice.Want(t, send(token("a", "quittance-a", mine)), http.StatusBadRequest, "issuer.late")
	p.control(t, "a", `{"fault": "other_nonce"}`)
	backoffice.Want(t, send(token("a", "quittance-a", mine)), http.StatusBadRequest, "issuer.token")
	p.control(t, "a", `{"reset": true}`)
	backoffice.Want(t, b.Get("/work"), http.StatusOK)
	form := token("a", "quittance-a", mine)
	backoffice.Want(t, send(form), http.StatusOK)
	if a := b.Get("/work"); a.Code != http.StatusSeeOther {
		t.Errorf("the session goes on: %d", a.Code)
	}
	b = enter()
	backoffice.Want(t, send(form), http.StatusBadRequest, "issuer.replayed")
	backoffice.Want(t, b.Get("/work"), http.StatusOK)
}

// The provider is away: for the declared hours the passkey alone signs in, the audit table says so, and it ends by itself.
func TestOutageOfAnIssuer(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa", "Ben")
	p.add(t, "a", impots)
	p.bind(t, "Awa", mine)
	p.control(t, "a", `{"fault": "away"}`)
	b := p.prove(t, "Awa")
	backoffice.Want(t, b.Get("/sign-in/issuer"), http.StatusServiceUnavailable, "ne répond pas")
	begun := p.Now()
	for _, hours := range []time.Duration{0, -time.Hour, 25 * time.Hour} {
		if _, err := identity.BeginOutage(t.Context(), p.Pool, p.Keys, registries.Actor, impots, hours, "ticket 4711", begun); err == nil {
			t.Errorf("an outage of %s", hours)
		}
	}
	set, err := identity.BeginOutage(t.Context(), p.Pool, p.Keys, registries.Actor, impots, 4*time.Hour, "ticket 4711", begun)
	if err != nil || !set.OutageUntil.Equal(begun.Add(4*time.Hour)) {
		t.Fatalf("%+v, %v", set, err)
	}
	backoffice.Want(t, p.Enter(t, "Awa").Get("/work"), http.StatusOK)
	backoffice.Want(t, p.NewBrowser().Prove(t, "Ben", "/sign-in/begin", nil, "/sign-in/finish"), http.StatusUnauthorized, "n’est pas encore relié")
	p.MoveTo(begun.Add(4 * time.Hour))
	p.prove(t, "Awa")
	p.MoveTo(begun.Add(time.Hour))
	p.Enter(t, "Awa")
	if _, err := identity.EndOutage(t.Context(), p.Pool, p.Keys, registries.Actor, impots, p.Now()); err != nil {
		t.Fatal(err)
	}
	p.prove(t, "Awa")
	if _, err := identity.EndOutage(t.Context(), p.Pool, p.Keys, registries.Actor, impots, p.Now()); err == nil {
		t.Error("an outage ends twice")
	}
	var alone int
	if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'staff.sign_in' AND detail->>'issuer' = 'away'`).Scan(&alone); err != nil || alone != 2 {
		t.Errorf("%d sign-ins with the passkey alone in the audit table, %v", alone, err)
	}
}

// An invited person signs in at the provider, then makes two passkeys. The digits are of the subject, too; another person's subject
// is refused; and the confirmation binds the person.
func TestJoinAtAnIssuer(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.Add(t, impots, []identity.Role{identity.RoleAccountant}, "Awa")
	p.add(t, "a", impots)
	p.bind(t, "Awa", mine)
	by := identity.By{Actor: registries.Actor}
	invited, err := identity.InviteStaff(t.Context(), p.Pool, p.Keys, by, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Nadège", Agency: impots, Roles: []identity.Role{identity.RoleAccountant}}}, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := p.NewBrowser()
	b.Post("/join/accept", url.Values{"link": {invited.Secret.Reveal()}})
	backoffice.Want(t, b.Get("/join"), http.StatusOK, `action="/join/issuer"`, p.idp("a"))
	backoffice.Want(t, b.Post("/join/passkey/begin", nil), http.StatusConflict, "ne s’est pas encore connecté")
	visit := func(subject string) *httptest.ResponseRecorder {
		if a := b.Post("/join/issuer", nil); a.Code != http.StatusSeeOther {
			t.Fatalf("the way to the provider: %d", a.Code)
		}
		way := b.Get("/sign-in/issuer")
		backoffice.Want(t, way, http.StatusOK, "Votre invitation est ouverte")
		backoffice.Lacks(t, way, "Votre clé d’accès est reconnue")
		return comeBack(b, p.leave(t, b, subject))
	}
	backoffice.Want(t, visit(mine), http.StatusUnauthorized, "est déjà celui d’une autre personne")
	backoffice.Want(t, visit("sub-of-x"), http.StatusOK)
	backoffice.Want(t, visit("sub-of-nadège"), http.StatusOK, "vous a reconnu", `href="/join?lang=fr"`)
	if b.Cookies()["__Host-quittance_staff"] != "" {
		t.Error("an invited person is signed in")
	}
	backoffice.Want(t, b.Get("/join"), http.StatusOK, "Clé d’accès 1 sur 2", "agent@example.org")
	p.join(t, b, "Nadège", invited.StaffID)
	i, err := identity.InvitationOf(t.Context(), p.Pool, p.Keys, secret.NewText(b.Cookies()["__Host-quittance_staff_joining"]), p.Now())
	if err != nil {
		t.Fatal(err)
	}
	other := i.Invitation
	other.Subject = "sub-of-x"
	if other.Digits() == i.Digits() {
		t.Error("the digits do not cover the subject")
	}
	backoffice.Want(t, b.Post("/join/issuer", nil), http.StatusConflict, "déjà créées")
	confirmed, err := identity.ConfirmInvitation(t.Context(), p.Pool, p.Keys, by, invited.ID, i.Digits(), p.Now())
	if err != nil || confirmed.Subject != "sub-of-nadège" || confirmed.Issuer != p.idp("a") {
		t.Fatalf("%+v, %v", confirmed, err)
	}
	b = p.prove(t, "Nadège")
	backoffice.Want(t, comeBack(b, p.leave(t, b, "sub-of-nadège")), http.StatusOK, "vous a reconnu")
}

// The provider of a group is removed while an invitation is open. The confirmed person is bound to nobody, and signs in with the passkey.
func TestJoinAfterTheIssuerIsRemoved(t *testing.T) {
	t.Parallel()
	p := openProviders(t)
	p.add(t, "a", impots)
	by := identity.By{Actor: registries.Actor}
	invited, err := identity.InviteStaff(t.Context(), p.Pool, p.Keys, by, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Nadège", Agency: impots, Roles: []identity.Role{identity.RoleAccountant}}}, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := p.NewBrowser()
	b.Post("/join/accept", url.Values{"link": {invited.Secret.Reveal()}})
	b.Post("/join/issuer", nil)
	backoffice.Want(t, comeBack(b, p.leave(t, b, mine)), http.StatusOK, "vous a reconnu")
	p.join(t, b, "Nadège", invited.StaffID)
	if _, err := identity.RemoveIssuer(t.Context(), p.Pool, p.Keys, registries.Actor, impots, p.Now()); err != nil {
		t.Fatal(err)
	}
	i, err := identity.InvitationOf(t.Context(), p.Pool, p.Keys, secret.NewText(b.Cookies()["__Host-quittance_staff_joining"]), p.Now())
	if err != nil {
		t.Fatal(err)
	}
	confirmed, err := identity.ConfirmInvitation(t.Context(), p.Pool, p.Keys, by, invited.ID, i.Digits(), p.Now())
	if err != nil || confirmed.Subject != "" || confirmed.Issuer != "" {
		t.Fatalf("%+v, %v", confirmed, err)
	}
	backoffice.Want(t, p.Enter(t, "Nadège").Get("/work"), http.StatusOK)
}

// join makes both passkeys of an invited person.
func (p providers) join(t *testing.T, b *backoffice.Browser, name, staffID string) {
	t.Helper()
	for range 2 {
		made, err := device.NewDevice(uuid.MustParse(staffID), office.URL)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := made.Register(b.Post("/join/passkey/begin", nil).Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		backoffice.Want(t, b.Send("/join/passkey", answer), http.StatusOK)
		p.Devices[name] = append(p.Devices[name], made)
	}
}
