package roles

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	device "quittance/dev/staff"
	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/deliveries"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/jobs"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/internal/signed"
	"quittance/internal/statements"
	waits "quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/office"
	"quittance/test/registries"
	"quittance/test/servers"
)

// as returns the login and the keys of a role.
func as(t *testing.T, h registries.House, role string) (*pgxpool.Pool, *secret.Keys) {
	t.Helper()
	pool := open(t, servers.Login(t, h.DSN, role))
	if err := (&Settings{Program: "quittance"}).CheckDatabase(t.Context(), pool, role); err != nil {
		t.Fatal(err)
	}
	table := Table()
	n := slices.IndexFunc(table, func(r Role) bool { return r.Name == role })
	return pool, h.Keys.Subset(role, table[n].Keys)
}

// The pages of staff do all that they offer with the rights in Postgres and the keys of the role office, and no others. What
// people ask for about people is carried out with those of the sink cases.
func TestOfficeWorksWithItsRights(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t, func(h registries.House) (*pgxpool.Pool, *secret.Keys) {
		servers.Grant(t, h.DSN, strings.Join(Statements(Options{}, "public"), "\n"))
		return as(t, h, "office")
	})
	w.Held.Lock()
	w.Sink = identity.OpenBook(as(t, w.House, "cases"))
	w.Held.Unlock()
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Paul")
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	lead, operator := w.Enter(t, "Paul"), w.Enter(t, "Olive")
	record, one := "/ops/payments/"+sessions.Place(w.Paid.ID), "/ops/cases/"+backoffice.LateCase
	for _, path := range []string{"/work", "/sessions", "/ops/payments", record, record + "?commands=1", "/ops/cases", one, "/ops/endpoints", "/ops/endpoints/webhook/" + w.Endpoint, "/ops/stuck", "/ops/search?q=UNKNOWN-1"} {
		if a := lead.Get(path); a.Code != http.StatusOK {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	if a := lead.Get("/ops/health"); a.Code != http.StatusOK || strings.Contains(a.Body.String(), "Non connu") {
		t.Errorf("health: %d\n%s", a.Code, a.Body)
	}
	propose := func(number string) {
		t.Helper()
		fields := url.Values{"number": {number}, "resolution": {"honour"}, "reason": {"le montant couvre la créance"}}
		if a := operator.Press(t, "Olive", one+"/propose/begin", fields, one+"/propose"); a.Code != http.StatusOK {
			t.Errorf("proposal %s: %d %s", number, a.Code, a.Body)
		}
	}
	endpoint := "/ops/endpoints/webhook/" + w.Endpoint
	for _, form := range []struct {
		path   string
		fields url.Values
	}{
		{record + "/deliveries/" + w.Parked + "/retry", nil},
		{endpoint + "/suspend", nil},
		{endpoint + "/resume", nil},
		{"/sessions/end", nil},
	} {
		if a := operator.Post(form.path, form.fields); a.Code != http.StatusSeeOther {
			t.Errorf("%s: %d\n%.1500s", form.path, a.Code, a.Body)
		}
	}
	propose("1")
	if a := operator.Post(one+"/reject", url.Values{"number": {"1"}, "reason": {"une faute"}}); a.Code != http.StatusSeeOther {
		t.Errorf("withdrawing: %d\n%.1500s", a.Code, a.Body)
	}
	propose("2")
	_, shown, _ := strings.Cut(lead.Get(one).Body.String(), `name="shown" value="`)
	shown, _, _ = strings.Cut(shown, `"`)
	if a := lead.Prove(t, "Paul", one+"/approve/begin", url.Values{"number": {"2"}, "shown": {shown}}, one+"/approve/2"); a.Code != http.StatusOK {
		t.Errorf("the approval: %d %s", a.Code, a.Body)
	}
	if a := operator.Get("/ops/payments/x"); a.Code != http.StatusNotFound {
		t.Errorf("an unknown payment: %d", a.Code)
	}

	// And an invited person makes passkeys.
	invited, err := identity.InviteStaff(t.Context(), w.Pool, w.Keys, identity.By{Actor: registries.Actor}, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Nadège", Agency: "impots", Roles: []identity.Role{identity.RoleReader}}}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := w.NewBrowser()
	b.Post("/join/accept", url.Values{"link": {invited.Secret.Reveal()}})
	made, err := device.NewDevice(uuid.MustParse(invited.StaffID), office.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := made.Register(b.Post("/join/passkey/begin", nil).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if a := b.Send("/join/passkey", answer); a.Code != http.StatusOK {
		t.Errorf("a passkey of an invited person: %d %s", a.Code, a.Body)
	}
	readBatches(t, w)
	changePeople(t, w)
	decideStatements(t, w, lead, operator)
	sendAgain(t, w, lead, operator)
	if a := lead.Post("/sign-out", nil); a.Code != http.StatusSeeOther {
		t.Errorf("the sign-out: %d", a.Code)
	}
}

// readBatches reads the pages of batches, which compare all lines, and keeps and drops a first signature. Commands go to no
// database.
func readBatches(t *testing.T, w *backoffice.World) {
	t.Helper()
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Ama", "Blaise")
	for n, name := range []string{"Ama", "Blaise"} {
		w.Write(t, `UPDATE staff SET number = $2 WHERE id = $1`, w.IDs[name], fmt.Sprint(n))
	}
	b := w.Enter(t, "Ama")
	people := "/agency/batches/people"
	fields := url.Values{"kind": {"people"}, "mode": {"live"}, "number": {"1"}, "own_roles": {"chief"}, "person": {w.IDs["Blaise"]}, "roles": {"chief"}}
	if a := b.Press(t, "Ama", people+"/propose/begin", fields, people+"/propose"); a.Code != http.StatusOK {
		t.Errorf("proposing the first people: %d %s", a.Code, a.Body)
	}
	for path, want := range map[string]int{"/agency/batches": http.StatusOK, people: http.StatusOK, "/agency/batches/none": http.StatusNotFound} {
		if a := b.Get(path); a.Code != want {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	if a := b.Post(people+"/drop", fields); a.Code != http.StatusSeeOther {
		t.Errorf("dropping a proposal: %d", a.Code)
	}
	// What a key was sealed for opens with the keys of the role, and the role seals lines of files itself.
	sealed, err := w.Lines.SealLine(t.Context(), "dsb_1:0", []byte(`{}`), personal.Payee{}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := w.Lines.Lines(t.Context(), []personal.SealedLine{{ID: "dsb_1:0", Sealed: sealed}, {ID: "dsb_1:1", Sealed: sealed}})
	if err != nil || string(opened[0]) != `{}` || opened[1] != nil {
		t.Errorf("the lines of a batch are %q, %v", opened, err)
	}
	imported := []lines.Line{{Content: digest.Line{LineRef: "a", Name: "NGOMA", Amount: 1, Currency: "XAF", MSISDN: "242066000001"}}}
	for _, q := range []func() error{
		func() error {
			_, err := w.Batches.Lines(t.Context(), "dsb_1", disbursements.LineQuery{Size: 1})
			return err
		},
		func() error { _, err := w.Batches.Steps(t.Context(), "dsb_1"); return err },
		// what papers are made of
		func() error {
			return w.Batches.Snapshot(t.Context(), func(at *disbursements.Store) error {
				_, err := at.Stands(t.Context(), w.Lines, nil, disbursements.Batch{Batch: disbursement.Batch{ID: "dsb_1", ReleasedAt: w.Now()}})
				return err
			})
		},
		// what an import stores beside its commands, and reads of earlier ones
		func() error {
			return w.Files.Payees.Keep(t.Context(), disbursement.Batch{ID: "dsb_1", TenantID: registries.AgencyA, Date: "2026-11-30"}, imported)
		},
		func() error {
			_, err := w.Files.Payees.Known(t.Context(), registries.AgencyA, false, "2026-11-30", imported)
			return err
		},
		func() error {
			return w.Batches.KeepNotes(t.Context(), disbursement.Batch{ID: "dsb_1", Date: "2026-11-30"}, &disbursements.Notes{})
		},
		func() error { _, err := w.Batches.Notes(t.Context(), "dsb_1"); return err },
	} {
		if err := q(); err != nil {
			t.Error(err)
		}
	}
}

// changePeople does all that the page about people offers.
func changePeople(t *testing.T, w *backoffice.World) {
	t.Helper()
	managers := []identity.Role{identity.RoleAgencyAdmin}
	w.Add(t, "impots", managers, "Awa", "Ben")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Chloé", "Dan")
	w.GivePasskey(t, "Awa", "Clé 3", registries.Epoch)
	// Dan has a key of before, which the sink cases cannot end: it opens nothing once Dan is revoked.
	w.Write(t, `INSERT INTO api_keys (id, hash, staff_id, live, agencies, created_at) VALUES (gen_random_uuid(), sha256('x'), $1, true, '{}', $2)`, w.IDs["Dan"], registries.Epoch)
	w.Write(t, `INSERT INTO staff_contacts (id, staff_id, sealed, masked, locale, set_at) VALUES (gen_random_uuid(), $1, '\x01', 'd…', 'fr', $2)`, w.IDs["Dan"], registries.Epoch)
	browsers := map[string]*backoffice.Browser{"Awa": w.Enter(t, "Awa"), "Ben": w.Enter(t, "Ben")}
	hidden := regexp.MustCompile(`name="([a-z]+)" value="([^"]*)">`)
	id := ""
	fill := func(name, path, action string, more ...string) url.Values {
		t.Helper()
		_, page, found := strings.Cut(browsers[name].Get(path).Body.String(), `action="`+action)
		if !found {
			t.Fatalf("%s has no form for %s", path, name)
		}
		page, _, _ = strings.Cut(page, "</form>")
		form := url.Values{}
		for _, field := range hidden.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(field[0], "checkbox") {
				form.Set(field[1], field[2])
			}
		}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		id = form.Get("id")
		return form
	}
	ends := func(name string) {
		t.Helper()
		waits.Until(t, "the end of a request", func() bool {
			return strings.Contains(browsers[name].Get("/requests/"+id).Body.String(), "C’est fait.")
		})
	}
	press := func(name, path string, more ...string) {
		t.Helper()
		if a := browsers[name].Press(t, name, "/people/ask/begin", fill(name, path, "/people/ask", more...), "/people/ask"); a.Code != http.StatusOK {
			t.Fatalf("%s by %s: %d %s", path, name, a.Code, a.Body)
		}
		ends(name)
	}
	press("Awa", "/people/"+w.IDs["Chloé"]+"/suspend", "reason", "r")
	press("Ben", "/people/"+w.IDs["Chloé"]+"/lift", "reason", "r")
	press("Awa", "/people/"+w.IDs["Dan"]+"/revoke", "reason", "r")
	press("Ben", "/people/changes/"+id)
	press("Awa", "/people/"+w.IDs["Chloé"]+"/roles", "add", "accountant", "remove", "reader", "reason", "r")
	press("Ben", "/people/changes/"+id)
	keys, spare := fill("Awa", "/passkeys", "/passkeys/remove"), ""
	if err := w.Pool.QueryRow(t.Context(), `SELECT id FROM staff_passkeys WHERE name = 'Clé 3'`).Scan(&spare); err != nil {
		t.Fatal(err)
	}
	keys.Set("subject", spare) // not that of the session, which would end
	if a := browsers["Awa"].Press(t, "Awa", "/passkeys/begin", keys, "/passkeys/remove"); a.Code != http.StatusOK {
		t.Fatalf("removing a passkey: %d %s", a.Code, a.Body)
	}
	ends("Awa")
	press("Awa", "/people/invite", "name", "Eric", "add", "reader")
	invitation := id
	w.Write(t, `UPDATE staff_invitations SET accepted_at = invited_at, passkeys = (SELECT jsonb_agg(jsonb_build_object('name', name, 'host', host, 'spki_hash', encode(sha256(spki_hash), 'base64'),
		'credential', jsonb_set(credential, '{id}', to_jsonb('x' || right(id::text, 7))), 'created_at', '2026-03-01T12:00:00Z')) FROM staff_passkeys WHERE staff_id = $2) WHERE id = $1`, invitation, w.IDs["Ben"])
	list, err := identity.ListInvitations(t.Context(), w.Pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(list, func(i identity.InvitationEntry) bool { return i.ID == invitation })
	press("Ben", "/people/invitations/"+invitation, "digits", list[n].Digits())
	press("Ben", "/people/invite", "name", "Fanny")
	end := fill("Awa", "/people/invitations/"+id, "/people/end")
	if a := browsers["Awa"].Post("/people/end", end); a.Code != http.StatusSeeOther {
		t.Fatalf("withdrawing: %d %s", a.Code, a.Body)
	}
	ends("Awa")
	for _, path := range []string{"/people", "/people/" + w.IDs["Chloé"], "/work", "/passkeys"} {
		if a := browsers["Awa"].Get(path); a.Code != http.StatusOK {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	people, err := identity.ListStaff(t.Context(), w.Pool, signed.NewVerifier(w.Keys))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range people {
		if e.Forged || e.Name == "Dan" && e.State() != identity.StaffStateRevoked || e.Name == "Eric" && !e.InForce() {
			t.Errorf("%+v", e)
		}
	}
}

// sendAgain has people send deliveries again in bulk, which the sink schedule carries out with its rights.
func sendAgain(t *testing.T, w *backoffice.World, lead, operator *backoffice.Browser) {
	t.Helper()
	w.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT '2026-02-28', 'dlv_' || n, 'webhook', $1, 'evt_' || n, 'checkout.failed', $2, $3, 'chs_' || n, true, '2026-02-28T12:00Z', CASE WHEN n = 1 THEN 'exhausted' ELSE 'needs_operator' END, 4, 0, '2026-02-28T18:00Z', 503, 'body' FROM generate_series(1, 1002) n`,
		w.Endpoint, registries.AppA, registries.AgencyA)
	pool, keys := as(t, w.House, "schedule")
	r, err := jobs.NewRunner(jobs.RunnerConfig{Pool: pool, Keys: keys, Deliveries: deliveries.NewStore(pool, DeliveryKinds(nil)), Service: "schedule", Now: w.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(state string) string {
		t.Helper()
		a := operator.Post("/ops/jobs", url.Values{"id": {uuid.NewString()}, "state": {state}})
		path, _, _ := strings.Cut(a.Header().Get("Location"), "?")
		if a.Code != http.StatusSeeOther || !strings.HasPrefix(path, "/ops/jobs/") {
			t.Fatalf("preparing: %d %s", a.Code, a.Body)
		}
		return path
	}
	one, two := prepare("exhausted"), prepare("needs_operator")
	if a := operator.Post(one+"/start", nil); a.Code != http.StatusSeeOther {
		t.Errorf("starting: %d %s", a.Code, a.Body)
	}
	if a := operator.Press(t, "Olive", two+"/sign/begin", url.Values{"count": {"1001"}}, two+"/sign"); a.Code != http.StatusOK {
		t.Errorf("asking: %d %s", a.Code, a.Body)
	}
	if a := lead.Press(t, "Paul", two+"/approve/begin", nil, two+"/approve"); a.Code != http.StatusOK {
		t.Errorf("approving: %d %s", a.Code, a.Body)
	}
	if more, err := r.Advance(t.Context()); err != nil || !more {
		t.Errorf("carrying out: %v, %v", more, err)
	}
	if a := lead.Post(two+"/stop", nil); a.Code != http.StatusSeeOther {
		t.Errorf("stopping: %d %s", a.Code, a.Body)
	}
	if err := r.Tidy(t.Context()); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{one: "Terminée\u00a0: 1 faits, 0 refusés", two: "Arrêtée", "/ops/jobs": "Olive", "/ops/deliveries": "checkout.failed"} {
		if a := operator.Get(path); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), want) {
			t.Errorf("%s: %d, without %q", path, a.Code, want)
		}
	}
}

// decideStatements has two people decide about files of statements on pages. The sink cases opens one with its rights, and the
// sink match believes what was decided with its own.
func decideStatements(t *testing.T, w *backoffice.World, lead, operator *backoffice.Browser) {
	t.Helper()
	root := "/ops/imports/"
	accepted := w.Import(t, backoffice.Statement(1, 0, 300, 200), statements.VerdictAccepted)
	held, other := backoffice.Statement(1, 0, 400, 200), backoffice.Statement(1, 0, 500, 200)
	released, dismissed := w.Import(t, held, statements.VerdictQuarantined), w.Import(t, other, statements.VerdictQuarantined)
	asks := func(id string, kind intake.Kind) string {
		t.Helper()
		fields := url.Values{"request": {uuid.NewString()}, "reason": {"MTN le dit"}}
		path := root + id + "/ask/" + string(kind)
		if a := operator.Press(t, "Olive", path+"/begin", fields, path); a.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Code, a.Body)
		}
		return fields.Get("request")
	}
	two := func(id string, kind intake.Kind) string {
		t.Helper()
		request := asks(id, kind)
		d, err := w.Importer.Detail(t.Context(), identity.Staff{}, id, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		r, known := d.Asked(kind, request)
		path := root + id + "/" + string(kind) + "/" + request + "/approve"
		if a := lead.Press(t, "Paul", path+"/begin", url.Values{"shown": {r.Shown}}, path); !known || a.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Code, a.Body)
		}
		return request
	}
	for _, path := range []string{"/ops/imports", "/ops/imports?state=quarantined&day=2026-03-01&agency=" + registries.AgencyA, root + released, "/work"} {
		if a := lead.Get(path); a.Code != http.StatusOK {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	two(released, intake.KindRelease)
	if a := operator.Post(root+released+"/release/"+asks(released, intake.KindReading)+"/reject", nil); a.Code != http.StatusNotFound {
		t.Errorf("a reading is no release: %d", a.Code)
	}
	again := w.Import(t, held, statements.VerdictAccepted)
	dismisses := func() {
		t.Helper()
		fields := url.Values{"request": {uuid.NewString()}, "reason": {"la première est juste"}}
		if a := lead.Press(t, "Paul", root+dismissed+"/dismiss/begin", fields, root+dismissed+"/dismiss"); a.Code != http.StatusOK {
			t.Fatalf("a dismissal: %d %s", a.Code, a.Body)
		}
	}
	dismisses()
	if a := operator.Post(root+dismissed+"/reopen", url.Values{"reason": {"une faute"}}); a.Code != http.StatusSeeOther {
		t.Errorf("taking a dismissal back: %d", a.Code)
	}
	dismisses()
	request := two(accepted, intake.KindReading)
	pool, keys := as(t, w.House, "cases")
	readings, err := intake.NewReadings(intake.ReadingsConfig{Pool: pool, Keys: keys, Now: w.Now, Log: servers.Logger(t)})
	if err == nil {
		err = readings.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := operator.Get(root + accepted + "/files/" + request); a.Code != http.StatusOK || a.Body.String() != backoffice.Statement(1, 0, 300, 200) {
		t.Errorf("the file: %d %s", a.Code, a.Body)
	}
	if a := operator.Post(root+again+"/withdrawal/"+asks(again, intake.KindWithdrawal)+"/reject", nil); a.Code != http.StatusSeeOther {
		t.Errorf("taking a request back: %d %s", a.Code, a.Body)
	}
	two(again, intake.KindWithdrawal)
	if done, err := w.Importer.CarryOut(t.Context(), w.Now()); err != nil || len(done) != 1 || done[0].Err != nil || done[0].Lines == 0 {
		t.Errorf("carrying out: %+v, %v", done, err)
	}
	pool, keys = as(t, w.House, "match")
	c, err := intake.Cover(t.Context(), pool, keys, registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: "mtn"}, "2026-02-01", "2026-02-28", w.Now())
	if err != nil || len(c.Quarantined) != 0 || len(c.Statements) != 1 {
		t.Errorf("the coverage is %+v, %v", c, err)
	}
}
