package disbursements_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	processor "quittance/processors/disbursement"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/approvals"
	"quittance/test/await"
	"quittance/test/backoffice"
)

const peoplePath, propose, confirm = approvals.PeoplePath, approvals.Propose, approvals.Confirm

// enrol enrols Ama, Ben and Cleo and sets a policy, on the pages. Each is in force.
func enrol(t *testing.T, w *approvals.World) {
	t.Helper()
	backoffice.Want(t, w.Browsers["Ama"].Get(peoplePath), http.StatusOK, "Aucun signataire n’est inscrit", "Aucune règle n’est en vigueur")
	w.Press(t, "Ama", peoplePath, propose, "own_roles", "maker", "person", w.IDs["Ben"], "roles", "chief")
	// Only the other one of the two is the second.
	first := w.Form(t, "Ben", peoplePath, confirm)
	backoffice.Lacks(t, w.Browsers["Ama"].Get(peoplePath), confirm+"?")
	backoffice.Lacks(t, w.Browsers["Cleo"].Get(peoplePath), confirm+"?")
	for _, name := range []string{"Ama", "Cleo"} {
		backoffice.Want(t, w.Browsers[name].Post("/"+confirm+"/begin", first), http.StatusConflict, "deux personnes différentes")
	}
	other := url.Values{"kind": first["kind"], "mode": first["mode"], "number": first["number"], "shown": {strings.Repeat("0", 64)}}
	backoffice.Want(t, w.Browsers["Ben"].Post("/"+confirm+"/begin", other), http.StatusConflict)
	w.Press(t, "Ben", peoplePath, confirm)
	backoffice.Want(t, w.Browsers["Rita"].Get(peoplePath), http.StatusOK, "Ama (M-1)", "Ben (M-2)", "Compte à partir du")

	w.SignIn(t, 25*time.Hour)
	w.Press(t, "Ben", peoplePath, propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "chief")
	backoffice.Lacks(t, w.Browsers["Cleo"].Get(peoplePath), confirm+"?") // not of the roster yet
	w.Press(t, "Ama", peoplePath, confirm)
	policy := func(more ...string) url.Values {
		f := w.Form(t, "Ama", peoplePath, propose, append(approvals.PolicyForm(), more...)...)
		return f
	}
	for field, want := range map[[2]string]string{
		{"approve_within", "721"}:     "donnez de 1 à 720 heures",
		{"levels1", "chief 9"}:        "Palier 1",
		{"up_to2", "5"}:               "les montants croissent",
		{"currency", "ZZZ"}:           "un code comme XAF",
		{"pay_within_days", "demain"}: "de 0 à 60 jours",
	} {
		backoffice.Want(t, w.Browsers["Ama"].Post("/"+propose+"/begin", policy(field[0], field[1])), http.StatusConflict, want)
	}
	if a := w.Browsers["Ama"].Press(t, "Ama", "/"+propose+"/begin", policy(), "/"+propose); a.Code != http.StatusOK {
		t.Fatalf("proposing a policy: %d %s", a.Code, a.Body)
	}
	backoffice.Want(t, w.Browsers["Ben"].Get(peoplePath), http.StatusOK, "Règles proposées", "chief 2")
	w.Press(t, "Ben", peoplePath, confirm)
	backoffice.Want(t, w.Browsers["Ben"].Get(peoplePath), http.StatusOK, "Règles à partir du", "Cleo (M-3)", `value="1000000"`, `value="chief 2"`, `value="72"`)
	w.SignIn(t, 25*time.Hour)
	backoffice.Lacks(t, w.Browsers["Ben"].Get(peoplePath), "Règles à partir du", "Compte à partir du")
}

// An agency's people enrol, set a policy, and have a batch paid, on the pages and by the real processor: another than the
// maker approves, two lift a hold, and the maker and another agency can do none of it.
func TestAnAgencyApprovesABatch(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	empty := w.Browsers["Rita"].Get("/agency/batches?mode=test")
	backoffice.Want(t, empty, http.StatusOK, "n’a encore aucun lot dans ce mode", "importe ses lignes")
	enrol(t, w)
	b := w.Sealed(t, "dsb_1", 60)
	path := "/agency/batches/dsb_1"

	backoffice.Want(t, w.Browsers["Rita"].Get("/agency/batches?mode=test"), http.StatusOK, path, "ref-dsb_1", "Scellé")
	backoffice.Want(t, w.Browsers["Rita"].Get("/agency/batches?mode=test&held=1"), http.StatusOK, "Aucun lot ne remplit ces conditions")
	reader := w.Browsers["Rita"].Get(path)
	backoffice.Want(t, reader, http.StatusOK, "Ama (M-1)", "quittance batches show dsb_1", "60", "Vos rôles ne donnent pas accès aux lignes", "disbursement.events")
	backoffice.Lacks(t, reader, "PAYEE", "1234", "/approve", "/hold")
	page := w.Browsers["Ben"].Get(path)
	if text := page.Body.String(); strings.Index(text, "Scellé le") < strings.Index(text, "Ce que personne ne signe") || !strings.Contains(text, "Ce que personne ne signe") {
		t.Error("what nobody signs stands among what is signed")
	}
	backoffice.Want(t, page, http.StatusOK, "PAYEE 000000", "PAYEE 000049", "•••• 1234", "from=51", inFours(b.Digest.String()), "Ben (M-2)", "Cleo (M-3)", "il en manque 1", "N’a pas approuvé", path+"/approve", "<noscript>")
	backoffice.Lacks(t, page, "PAYEE 000050", "24206000", `id="differs"`)
	backoffice.Want(t, w.Browsers["Rita"].Get(path+"?from=x"), http.StatusOK, "Ama (M-1)")
	backoffice.Want(t, w.Browsers["Ben"].Get(path+"?from=51"), http.StatusOK, "PAYEE 000050", "PAYEE 000059")

	// Another agency is answered as if there were nothing.
	one, two := w.Browsers["Zoe"].Get(path), w.Browsers["Zoe"].Get("/agency/batches/dsb_2")
	if one.Code != http.StatusNotFound || !bytes.Equal(bytes.ReplaceAll(one.Body.Bytes(), []byte("dsb_1"), nil), bytes.ReplaceAll(two.Body.Bytes(), []byte("dsb_2"), nil)) {
		t.Errorf("another agency's batch: %d, nothing: %d\n%s\n%s", one.Code, two.Code, one.Body, two.Body)
	}
	approve := w.Form(t, "Ben", path, "agency/batches/dsb_1/approve")
	for _, form := range []string{"approve/begin", "release/begin", "reject/begin", "resume/begin", "hold", "stop", "recall"} {
		if a := w.Browsers["Zoe"].Post(path+"/"+form, approve); a.Code != http.StatusNotFound {
			t.Errorf("%s by another agency: %d", form, a.Code)
		}
	}
	backoffice.Lacks(t, w.Browsers["Zoe"].Get("/agency/batches?mode=test"), "dsb_1")

	// The maker has no button, and is refused by the processor whatever the maker sends.
	backoffice.Lacks(t, w.Browsers["Ama"].Get(path), path+"/approve", path+"/reject")
	backoffice.Want(t, w.Browsers["Ama"].Press(t, "Ama", path+"/approve/begin", approve, path+"/approve"), http.StatusConflict, "qui a préparé le lot ne l’approuve pas")
	backoffice.Want(t, w.Browsers["Rita"].Post(path+"/approve/begin", approve), http.StatusForbidden)

	// A signature of one step is none of another, and one of another person none at all.
	answer := w.Browsers["Ben"].Answer(t, "Ben", path+"/approve/begin", approve)
	reject := url.Values{"digest": approve["digest"], "level": {"0"}, "reason": {"non"}}
	backoffice.Want(t, w.Browsers["Ben"].Send(path+"/reject", backoffice.Pressed(t, reject, answer)), http.StatusConflict)
	backoffice.Want(t, w.Browsers["Cleo"].Send(path+"/approve", backoffice.Pressed(t, approve, answer)), http.StatusConflict)
	backoffice.Want(t, w.Browsers["Ben"].Send(path+"/approve", backoffice.Pressed(t, approve, answer)), http.StatusOK, "done=approve")
	backoffice.Want(t, w.Browsers["Ben"].Send(path+"/approve", backoffice.Pressed(t, approve, answer)), http.StatusConflict)
	got := w.Batch(t, "dsb_1")
	if got.Status != disbursement.StatusApproved || len(got.Sealing.Approvals) != 1 || got.Sealing.Approvals[0].Person != w.IDs["Ben"] {
		t.Fatalf("%+v", got)
	}
	backoffice.Want(t, w.Browsers["Rita"].Get(path), http.StatusOK, "A approuvé le", "Approuvé")

	// One holds, with a reason; two lift, and the maker may be one of them.
	backoffice.Want(t, w.Browsers["Ben"].Post(path+"/hold", url.Values{"reason": {""}}), http.StatusUnprocessableEntity, "Indiquez le motif")
	release := w.Form(t, "Cleo", path, "agency/batches/dsb_1/release")
	if a := w.Browsers["Ben"].Post(path+"/hold", url.Values{"reason": {"une adresse à vérifier"}}); a.Code != http.StatusSeeOther {
		t.Fatalf("hold: %d %s", a.Code, a.Body)
	}
	held := w.Browsers["Cleo"].Get(path)
	backoffice.Want(t, held, http.StatusOK, "Suspendu", "une adresse à vérifier", path+"/resume")
	backoffice.Lacks(t, held, path+"/release")
	backoffice.Want(t, w.Browsers["Cleo"].Post(path+"/release/begin", release), http.StatusConflict) // of before the hold
	w.Press(t, "Ama", path, "agency/batches/dsb_1/resume")
	if !w.Batch(t, "dsb_1").Held() {
		t.Fatal("one person lifts a hold")
	}
	backoffice.Want(t, w.Browsers["Ama"].Get(path), http.StatusOK, "Elle attend la signature d’une autre personne")
	resume := w.Form(t, "Cleo", path, "agency/batches/dsb_1/resume")
	backoffice.Want(t, w.Browsers["Ama"].Press(t, "Ama", path+"/resume/begin", resume, path+"/resume"), http.StatusOK, "resume_first")
	if !w.Batch(t, "dsb_1").Held() {
		t.Fatal("one person lifts a hold by signing twice")
	}
	w.Press(t, "Cleo", path, "agency/batches/dsb_1/resume")
	if w.Batch(t, "dsb_1").Held() {
		t.Fatal("two people do not lift a hold")
	}

	// The maker does not release; another one does.
	backoffice.Lacks(t, w.Browsers["Ama"].Get(path), path+"/release")
	release = w.Form(t, "Cleo", path, "agency/batches/dsb_1/release")
	backoffice.Want(t, w.Browsers["Ama"].Press(t, "Ama", path+"/release/begin", release, path+"/release"), http.StatusConflict, "ne le met pas en paiement")
	w.Press(t, "Cleo", path, "agency/batches/dsb_1/release")
	if s := w.Batch(t, "dsb_1").Status; s != disbursement.StatusReleasing {
		t.Fatalf("after the release: %s", s)
	}
	if a := w.Browsers["Ben"].Post(path+"/stop", nil); a.Code != http.StatusSeeOther {
		t.Errorf("stop: %d %s", a.Code, a.Body)
	}
	backoffice.Want(t, w.Browsers["Ama"].Post(path+"/recall", nil), http.StatusConflict, "son état ne permet plus")

	// A rejection, and the maker's recall.
	w.Sealed(t, "dsb_3", 2)
	w.Press(t, "Cleo", "/agency/batches/dsb_3", "agency/batches/dsb_3/reject", "reason", "mauvaise date")
	backoffice.Want(t, w.Browsers["Rita"].Get("/agency/batches/dsb_3"), http.StatusOK, "Rejeté", "mauvaise date")
	w.Sealed(t, "dsb_4", 2)
	if a := w.Browsers["Ama"].Post("/agency/batches/dsb_4/recall", nil); a.Code != http.StatusSeeOther {
		t.Errorf("recall: %d %s", a.Code, a.Body)
	}
	if s := w.Batch(t, "dsb_4").Status; s != disbursement.StatusRecalled {
		t.Errorf("after the recall: %s", s)
	}

	// Whoever is revoked signs nothing more, and the batches are held.
	w.Sealed(t, "dsb_5", 2)
	w.Browsers["Ben"].Post("/agency/batches/people/revoke", url.Values{"mode": {"test"}, "person": {w.IDs["Cleo"]}})
	backoffice.Want(t, w.Browsers["Rita"].Get(peoplePath), http.StatusOK, "Retiré le")
	backoffice.Lacks(t, w.Browsers["Cleo"].Get("/agency/batches/dsb_5"), "/approve", "/resume")

	// Each thing that was done is in the audit table once, with who did it; nothing that was refused is.
	want := []string{
		"Ama batch.sign_first", "Ben batch.enrol", "Ben batch.sign_first", "Ama batch.enrol", "Ama batch.sign_first", "Ben batch.set_policy",
		"Ben batch.approve dsb_1", "Ben batch.hold dsb_1", "Ama batch.sign_first dsb_1", "Ama batch.sign_first dsb_1", "Cleo batch.resume dsb_1", "Cleo batch.release dsb_1", "Ben batch.stop dsb_1",
		"Cleo batch.reject dsb_3", "Ama batch.recall dsb_4", "Ben batch.revoke",
	}
	if got := audited(t, w); !slices.Equal(got, want) {
		t.Errorf("the audit table has\n%q\nwant\n%q", got, want)
	}
}

// audited returns who has done what about batches, in order.
func audited(t *testing.T, w *approvals.World) (out []string) {
	t.Helper()
	names := map[string]string{}
	for name, id := range w.IDs {
		names[id] = name
	}
	rows, _ := w.Pool.Query(t.Context(), `SELECT actor, action, subject, coalesce(detail ->> 'outcome', '') FROM audit WHERE action LIKE 'batch.%' AND action <> 'batch.read' ORDER BY at, id`)
	var actor, action, subject, outcome string
	_, err := pgx.ForEachRow(rows, []any{&actor, &action, &subject, &outcome}, func() error {
		text := names[actor] + " " + action
		if strings.HasPrefix(subject, disbursement.PrefixBatch) {
			text += " " + subject
		}
		out = append(out, strings.TrimSpace(text+" "+outcome))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func inFours(text string) string {
	var out []string
	for len(text) > 0 {
		out, text = append(out, text[:4]), text[4:]
	}
	return strings.Join(out, " ")
}

// Whoever writes Postgres shows people another batch than the one that is signed: the button goes, and a signature is not
// asked for.
func TestChangedRowsTakeTheButtonAway(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 3)
	path := "/agency/batches/dsb_1"
	form := w.Form(t, "Ben", path, "agency/batches/dsb_1/approve")
	edit := func(change func(*disbursements.Batch)) {
		t.Helper()
		b := w.Batch(t, "dsb_1")
		change(&b)
		x, y := batches.FromBatch(b.Batch), batches.FromSealing(b.Sealing)
		var rows [2][]byte
		for n, r := range []record.Record{&x, &y} {
			var err error
			if rows[n], err = w.Codec.Encode(r); err != nil {
				t.Fatal(err)
			}
		}
		w.Exec(t, `UPDATE disbursement_batches SET snapshot = $1, sealing = $2 WHERE id = 'dsb_1'`, rows[0], rows[1])
	}
	w.Exec(t, `CREATE TABLE kept_batches AS SELECT * FROM disbursement_batches`)
	w.Exec(t, `CREATE TABLE kept_lines AS SELECT * FROM disbursement_lines`)
	restore := func() {
		w.Exec(t, `DELETE FROM disbursement_batches`)
		w.Exec(t, `INSERT INTO disbursement_batches SELECT * FROM kept_batches`)
		w.Exec(t, `DELETE FROM disbursement_lines`)
		w.Exec(t, `INSERT INTO disbursement_lines SELECT * FROM kept_lines`)
	}
	sql := func(text string) func() { return func() { w.Exec(t, text) } }
	for what, x := range map[string]struct {
		do   func()
		says string
	}{
		"the sum of the batch":      {func() { edit(func(b *disbursements.Batch) { b.Sum++ }) }, "les montants"},
		"the count of the batch":    {func() { edit(func(b *disbursements.Batch) { b.Count++ }) }, "le nombre de lignes"},
		"the root of the batch":     {func() { edit(func(b *disbursements.Batch) { b.Tree = digest.Tree{}.Add(digest.Hash{1}) }) }, "le contenu des lignes"},
		"the sum that is signed":    {func() { edit(func(b *disbursements.Batch) { b.Sealing.Content.Sum++ }) }, "l’empreinte"},
		"the root that is signed":   {func() { edit(func(b *disbursements.Batch) { b.Sealing.Content.Root = digest.Hash{1} }) }, "l’empreinte"},
		"the maker that is shown":   {func() { edit(func(b *disbursements.Batch) { b.Maker = w.IDs["Ben"] }) }, "l’empreinte"},
		"who is listed":             {func() { edit(func(b *disbursements.Batch) { b.Sealing.Content.Levels[0].Needed = 2 }) }, "l’empreinte"},
		"a date":                    {func() { edit(func(b *disbursements.Batch) { b.Sealing.Content.PayUntil = "2027-12-31" }) }, "l’empreinte"},
		"an account's sum":          {func() { edit(func(b *disbursements.Batch) { b.Sealing.Content.Accounts[0].Sum-- }) }, "l’empreinte"},
		"the content of a line":     {sql(`UPDATE disbursement_lines SET sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1) WHERE position = 1`), "une ligne illisible"},
		"the contents of two lines": {sql(`UPDATE disbursement_lines l SET sealed = (SELECT k.sealed FROM kept_lines k WHERE k.position = 1 - l.position) WHERE position < 2`), "une ligne illisible"},
		"another payee, sealed":     {func() { resealed(t, w, "dsb_1", 1, func(l *digest.Line) { l.MSISDN = "242069999999" }) }, "le contenu des lignes"},
		"another amount, sealed":    {func() { resealed(t, w, "dsb_1", 1, func(l *digest.Line) { l.Amount++ }) }, "les montants"},
		"a line is missing":         {sql(`DELETE FROM disbursement_lines WHERE position = 2`), "le nombre de lignes"},
		"the first line is missing": {sql(`DELETE FROM disbursement_lines WHERE position = 0`), "une ligne illisible"},
		"the key of a line":         {sql(`UPDATE disbursement_lines SET sealed = '' WHERE position = 2`), "une ligne illisible"},
	} {
		x.do()
		page := w.Browsers["Ben"].Get(path)
		backoffice.Want(t, page, http.StatusOK, `id="differs"`, x.says)
		if strings.Contains(page.Body.String(), path+"/approve") || strings.Contains(page.Body.String(), path+"/reject") {
			t.Errorf("%s: the page asks for a signature", what)
		}
		if a := w.Browsers["Ben"].Post(path+"/approve/begin", form); a.Code != http.StatusConflict {
			t.Errorf("%s: a signature is asked for: %d", what, a.Code)
		}
		restore()
	}
	// A batch and its content that somebody has changed together are not those of the processor.
	edit(func(b *disbursements.Batch) {
		b.Sealing.Content.Levels[0].Needed = 1
		b.Sealing.Content.PayUntil = "2027-12-31"
		b.Digest, _ = b.Sealing.Content.Digest()
	})
	forged := w.Form(t, "Ben", path, "agency/batches/dsb_1/approve")
	backoffice.Want(t, w.Browsers["Ben"].Press(t, "Ben", path+"/approve/begin", forged, path+"/approve"), http.StatusConflict, "n’est pas celle de ce lot")
	restore()
	backoffice.Lacks(t, w.Browsers["Ben"].Get(path), `id="differs"`)
	w.Press(t, "Ben", path, "agency/batches/dsb_1/approve")
}

// resealed seals another content in place of a line's, as whoever has the keys of personal data can.
func resealed(t *testing.T, w *approvals.World, id string, position int, change func(*digest.Line)) {
	t.Helper()
	list, err := w.Batches.Lines(t.Context(), id, disbursements.LineQuery{From: position, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := disbursements.Open(t.Context(), w.Lines, list)
	if err != nil || !opened[0].Opened {
		t.Fatalf("%+v, %v", opened, err)
	}
	change(&opened[0].Content)
	content, err := lines.Content(opened[0].Salt, opened[0].Content)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := w.Lines.SealLine(t.Context(), personal.LineID(id, position), content, personal.Payee{}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE disbursement_lines SET sealed = $3 WHERE batch = $1 AND position = $2`, id, position, sealed)
}

// opened calls done after each time that lines were opened.
type opened struct {
	disbursements.Opener
	done func()
}

func (o opened) Lines(ctx context.Context, lines []personal.SealedLine) ([]json.RawMessage, error) {
	defer o.done()
	return o.Opener.Lines(ctx, lines)
}

// Whoever writes Postgres shows other lines for a moment, and puts the rows back before the page compares them. The page
// shows the lines that it compares, so there is no button; it has read the changed ones.
func TestLinesAreComparedAsShown(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 3)
	w.Sealed(t, "dsb_2", 3)
	path := "/agency/batches/dsb_1"
	w.Exec(t, `CREATE TABLE kept_lines AS SELECT * FROM disbursement_lines`)
	w.Exec(t, `UPDATE disbursement_lines SET sealed = '' WHERE batch = 'dsb_1' AND position = 1`)
	restore := func() {
		w.Exec(t, `DELETE FROM disbursement_lines`)
		w.Exec(t, `INSERT INTO disbursement_lines SELECT * FROM kept_lines`)
	}
	w.Opener = opened{w.Lines, restore}
	page := w.Browsers["Ben"].Get(path)
	backoffice.Want(t, page, http.StatusOK, "Contenu illisible ou effacé", `id="differs"`)
	backoffice.Lacks(t, page, path+"/approve")

	// What a page asks by itself has neither lines nor forms, which stay as they were compared.
	w.Browsers["Ben"].Header.Set("Quittance-Asks", "1")
	again := w.Browsers["Ben"].Get(path)
	w.Browsers["Ben"].Header.Del("Quittance-Asks")
	backoffice.Want(t, again, http.StatusOK, `id="progress"`)
	backoffice.Lacks(t, again, "PAYEE", path+"/approve")
}

// The lines of a batch that were compared once are not opened again for a press, while the rows are the same. A row that somebody
// changes then is noticed at the next press, and at the next page.
func TestLinesAreOpenedOnce(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 3)
	calls := 0
	w.Opener = opened{w.Lines, func() { calls++ }}
	const path = "agency/batches/dsb_1"
	form := w.Form(t, "Ben", "/"+path, path+"/approve")
	before := calls
	backoffice.Want(t, w.Browsers["Ben"].Post("/"+path+"/approve/begin", form), http.StatusOK, "challenge")
	if before == 0 || calls != before {
		t.Errorf("lines were opened %d times before the press, %d after", before, calls)
	}
	backoffice.Want(t, w.Browsers["Ben"].Get("/"+path), http.StatusOK, "PAYEE", path+"/approve")
	w.Exec(t, `UPDATE disbursement_lines SET sealed = (SELECT sealed FROM disbursement_lines WHERE batch = 'dsb_1' AND position = 0) WHERE batch = 'dsb_1' AND position = 2`)
	if a := w.Browsers["Ben"].Post("/"+path+"/approve/begin", form); a.Code == http.StatusOK {
		t.Errorf("a changed row is signed: %s", a.Body)
	}
	page := w.Browsers["Ben"].Get("/" + path + "?from=1")
	backoffice.Want(t, page, http.StatusOK, `id="differs"`)
	backoffice.Lacks(t, page, path+"/approve")
}

// A first signature that somebody has changed in Postgres moves nothing: the second person signs what the page shows, and the
// processor wants the same of both.
func TestForgedFirstSignature(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Press(t, "Ama", peoplePath, propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "director")
	form := w.Form(t, "Ben", peoplePath, confirm)
	w.Exec(t, `UPDATE disbursement_signatures SET content = jsonb_set(content, '{people,0,Roles}', '["chief", "director"]')`)
	backoffice.Want(t, w.Browsers["Ben"].Post("/"+confirm+"/begin", form), http.StatusConflict) // another one than the page has shown
	backoffice.Want(t, w.Browsers["Ben"].Press(t, "Ben", "/"+confirm+"/begin", w.Form(t, "Ben", peoplePath, confirm), "/"+confirm), http.StatusConflict, "n’est pas celle de ce lot ou de ce changement")
	backoffice.Lacks(t, w.Browsers["Ben"].Get(peoplePath), "/"+confirm, "director")

	// A proposal that is dropped is not signed any more.
	w.Press(t, "Ama", peoplePath, propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "director")
	form = w.Form(t, "Ben", peoplePath, confirm)
	w.Browsers["Ben"].Post("/agency/batches/people/drop", form)
	backoffice.Want(t, w.Browsers["Ben"].Post("/"+confirm+"/begin", form), http.StatusConflict)
}

// A delegate stands for one person until a day, and then approves in that person's place.
func TestADelegate(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	until := w.Now().AddDate(0, 0, 10).Format(time.DateOnly)
	fields := func(more ...string) []string {
		return append([]string{"kind", "people", "person", w.IDs["Cleo"], "roles", "", "for", w.IDs["Ben"], "until", until}, more...)
	}
	for name, wrong := range map[string][]string{
		"stands for the same person": {"for", w.IDs["Cleo"]},
		"stands for nobody known":    {"for", w.IDs["Rita"]},
		"ended before":               {"until", "2026-01-01"},
		"without an end":             {"until", ""},
	} {
		a := w.Browsers["Ama"].Post("/"+propose+"/begin", w.Form(t, "Ama", peoplePath, propose, fields(wrong...)...))
		if a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), "une date de fin à venir") {
			t.Errorf("a delegate who %s: %d %s", name, a.Code, a.Body)
		}
	}
	w.Press(t, "Ama", peoplePath, propose, fields()...)
	backoffice.Want(t, w.Browsers["Ben"].Get(peoplePath), http.StatusOK, "à la place de Ben (M-2) jusqu’au")
	w.Press(t, "Ben", peoplePath, confirm)
	w.SignIn(t, 25*time.Hour)
	w.Sealed(t, "dsb_1", 2)
	path := "/agency/batches/dsb_1"
	backoffice.Want(t, w.Browsers["Cleo"].Get(path), http.StatusOK, "à la place de Ben (M-2)")
	w.Press(t, "Cleo", path, "agency/batches/dsb_1/approve")
	if b := w.Batch(t, "dsb_1"); len(b.Sealing.Approvals) != 1 || b.Sealing.Approvals[0].For != w.IDs["Ben"] || b.Status != disbursement.StatusApproved {
		t.Errorf("%+v", b)
	}
	backoffice.Want(t, w.Browsers["Rita"].Get(path), http.StatusOK, "Compte déjà par une autre approbation")
}

// When nobody answers, the page says that it is not known what happened, in both languages.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 1)
	w.Processor = nil
	backoffice.Want(t, w.Browsers["Ben"].Post("/agency/batches/dsb_1/hold?lang=fr", url.Values{"reason": {"r"}}), http.StatusServiceUnavailable, "on ne sait pas si la demande")
	backoffice.Want(t, w.Browsers["Ben"].Post("/agency/batches/dsb_1/hold?lang=en", url.Values{"reason": {"r"}}), http.StatusServiceUnavailable, "it is not known whether")
	path := "/agency/batches/dsb_1"
	form := w.Form(t, "Ben", path, "agency/batches/dsb_1/approve")
	backoffice.Want(t, w.Browsers["Ben"].Press(t, "Ben", path+"/approve/begin", form, path+"/approve"), http.StatusServiceUnavailable, "on ne sait pas si la demande")
	if got := audited(t, w); !slices.Equal(got[len(got)-3:], []string{"Ben batch.hold dsb_1 unknown", "Ben batch.hold dsb_1 unknown", "Ben batch.approve dsb_1 unknown"}) {
		t.Errorf("the audit table has %q", got)
	}
}

// An operator contradicts itself about a line. Two people sign what became of it, over the line as they saw it; then one has it
// paid again. One alone, the same person twice, and another agency decide nothing.
func TestTwoPeopleDecideAboutALine(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	b := w.Sealed(t, "dsb_1", 3)
	path := "/agency/batches/dsb_1"
	w.Press(t, "Ben", path, "agency/batches/dsb_1/approve")
	w.Press(t, "Cleo", path, "agency/batches/dsb_1/release")
	await.Until(t, "three sent lines", func() bool { return w.Batch(t, "dsb_1").Lines.Sent.Count == 3 })
	say := func(position int, word disbursement.Word) {
		word.Position, word.Source, word.Currency = position, disbursement.FromEnquiry, "XAF"
		w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", word))
	}
	backoffice.Want(t, w.Browsers["Ben"].Get(path+"/lines/99999999999"), http.StatusNotFound)
	say(0, disbursement.Word{Attempt: 1, Kind: disbursement.WordPaid, Amount: 999}) // another amount
	underway := w.Browsers["Ben"].Get(path + "/lines/1")
	backoffice.Want(t, underway, http.StatusOK, "une demande de paiement est en cours", "Signer «\u00a0payée")
	backoffice.Lacks(t, underway, "Signer «\u00a0non payée")
	w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", disbursement.Word{Attempt: 1, Try: 1, Source: disbursement.FromRequest, Kind: disbursement.WordPending}))
	w.SignIn(t, disbursement.RequestLife+time.Minute) // no event says that a request is answered: the page waits for its end
	say(1, disbursement.Word{Attempt: 1, Kind: disbursement.WordRefused, Unproven: true, Code: "E-17"})
	for _, kind := range []disbursement.WordKind{disbursement.WordNoDebit, disbursement.WordNoProof} { // a statement, which is withdrawn
		w.Shows(t, w.Installation.OK(processor.SenderMatch, "dsb_1", disbursement.Word{Position: 1, Attempt: 1, Source: disbursement.FromStatement, Kind: kind}))
	}
	say(2, disbursement.Word{Attempt: 1, Kind: disbursement.WordRefused, Code: "E-18"})

	batch := w.Browsers["Ben"].Get(path + "?cases=1")
	backoffice.Want(t, batch, http.StatusOK, path+"/lines/1", path+"/lines/2", "Toutes les lignes")
	backoffice.Lacks(t, batch, path+"/lines/3")
	one, two, three := path+"/lines/1", path+"/lines/2", path+"/lines/3"
	backoffice.Want(t, w.Browsers["Ben"].Get(two), http.StatusOK, "Les relevés ne montrent pas le versement.", "Refus à prouver de nouveau", "Le relevé qui prouvait le refus a été retiré.")
	const settle = "agency/batches/dsb_1/lines/1/settle"
	page := w.Browsers["Ben"].Get(one)
	backoffice.Want(t, page, http.StatusOK, "L’opérateur ou un relevé contredit", "Montant indiqué\u00a0: 999", "PAYEE 000000", "•••• 1234", "Signer «\u00a0payée", "Signer «\u00a0non payée", "QD")
	backoffice.Lacks(t, page, "242060001234", "/retry", "/cancel")
	backoffice.Want(t, w.Browsers["Rita"].Get(one), http.StatusForbidden)
	for _, nothing := range []string{path + "/lines/4", path + "/lines/0", path + "/lines/x", "/agency/batches/dsb_2/lines/1"} {
		backoffice.Want(t, w.Browsers["Ben"].Get(nothing), http.StatusNotFound)
	}
	form := w.Form(t, "Ben", one, settle, "outcome", "refused", "reference", "statement of 2 December, line 14")
	for _, form := range []string{"settle/begin", "settle/drop", "retry", "cancel", "acknowledge"} {
		backoffice.Want(t, w.Browsers["Zoe"].Post(one+"/"+form, url.Values{}), http.StatusNotFound)
	}
	backoffice.Want(t, w.Browsers["Zoe"].Get(one), http.StatusNotFound)

	// Without evidence, or about a line that has changed since, nothing is signed.
	for name, value := range map[string]string{"reference": " ", "shown": "sent 2 0 1", "outcome": "returned", "digest": strings.Repeat("0", 64)} {
		wrong := maps.Clone(form)
		wrong.Set(name, value)
		backoffice.Want(t, w.Browsers["Ben"].Post(one+"/settle/begin", wrong), http.StatusConflict)
	}
	backoffice.Want(t, w.Browsers["Ben"].Post(one+"/settle/begin", url.Values{"digest": form["digest"], "shown": form["shown"], "outcome": form["outcome"], "reference": {"relevé"}}), http.StatusConflict, "sans accent")

	// A signature of one outcome is none of the other.
	answer := w.Browsers["Ben"].Answer(t, "Ben", one+"/settle/begin", form)
	paid := maps.Clone(form)
	paid.Set("outcome", "paid")
	backoffice.Want(t, w.Browsers["Ben"].Send(one+"/settle", backoffice.Pressed(t, paid, answer)), http.StatusConflict)
	backoffice.Want(t, w.Browsers["Ben"].Send(one+"/settle", backoffice.Pressed(t, form, answer)), http.StatusOK, "settle_first")
	backoffice.Want(t, w.Browsers["Ben"].Get(one), http.StatusOK, "Elle attend la signature d’une autre personne", "line 14")
	backoffice.Want(t, w.Browsers["Ben"].Press(t, "Ben", one+"/settle/begin", form, one+"/settle"), http.StatusOK, "settle_first") // twice is one
	line := func(position int) disbursements.OpenLine {
		l, err := w.Batches.Line(t.Context(), w.Lines, w.Batch(t, "dsb_1"), position)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := line(0); l.Status != disbursement.LineSent || !l.Contested {
		t.Fatalf("one person decides: %+v", l.Line)
	}
	// The second sees who has signed what, and signs the same or nothing.
	backoffice.Want(t, w.Browsers["Cleo"].Get(one), http.StatusOK, "Ben (M-2)", "line 14", one+"/settle/drop")
	backoffice.Lacks(t, w.Browsers["Cleo"].Get(one), "Signer «\u00a0payée")
	backoffice.Want(t, w.Browsers["Cleo"].Press(t, "Cleo", one+"/settle/begin", paid, one+"/settle"), http.StatusConflict)
	if a := w.Browsers["Cleo"].Post(one+"/settle/drop", nil); a.Code != http.StatusSeeOther {
		t.Errorf("drop: %d %s", a.Code, a.Body)
	}
	w.Press(t, "Ama", one, settle, "outcome", "refused", "reference", "letter of MTN")
	w.Press(t, "Cleo", one, settle)
	if l := line(0); l.Status != disbursement.LineRefused || l.Contested || l.Case != "" || l.Settled != 1 {
		t.Fatalf("two people do not decide: %+v", l.Line)
	}
	backoffice.Lacks(t, w.Browsers["Cleo"].Get(one), "/settle")

	// A refusal that is proven is paid again; one that is not only when two people say so.
	backoffice.Lacks(t, w.Browsers["Ben"].Get(two), "/retry")
	backoffice.Want(t, w.Browsers["Ben"].Post(two+"/retry", nil), http.StatusConflict, "le refus n’est pas prouvé")
	w.Press(t, "Cleo", two, "agency/batches/dsb_1/lines/2/settle", "outcome", "paid", "reference", "the payee has it")
	w.Press(t, "Ben", two, "agency/batches/dsb_1/lines/2/settle")
	if l := line(1); l.Status != disbursement.LinePaid {
		t.Errorf("%+v", l.Line)
	}
	for _, again := range []string{one, three} {
		backoffice.Want(t, w.Browsers["Ben"].Get(again), http.StatusOK, again+"/retry", again+"/cancel")
	}
	if a := w.Browsers["Ben"].Post(one+"/retry", nil); a.Code != http.StatusSeeOther {
		t.Errorf("retry: %d %s", a.Code, a.Body)
	}
	if a := w.Browsers["Ben"].Post(three+"/cancel", nil); a.Code != http.StatusSeeOther {
		t.Errorf("cancel: %d %s", a.Code, a.Body)
	}
	await.Until(t, "a second attempt", func() bool { return line(0).Attempt == 2 })
	if l := line(2); l.Status != disbursement.LineCancelled {
		t.Errorf("%+v", l.Line)
	}
	say(0, disbursement.Word{Attempt: 2, Kind: disbursement.WordPaid, Amount: b.Sum/3 - 1})
	backoffice.Want(t, w.Browsers["Ben"].Post(one+"/acknowledge", nil), http.StatusConflict, "aucun cas")
	if got := w.Batch(t, "dsb_1"); got.Status != disbursement.StatusDone {
		t.Errorf("%s", got.Status)
	}
	want := []string{
		"Ben batch.approve dsb_1", "Cleo batch.release dsb_1", "Ben batch.sign_first dsb_1", "Ben batch.sign_first dsb_1", "Cleo batch.drop_first dsb_1",
		"Ama batch.sign_first dsb_1", "Cleo batch.settle_line dsb_1", "Cleo batch.sign_first dsb_1", "Ben batch.settle_line dsb_1", "Ben batch.retry_line dsb_1", "Ben batch.cancel_line dsb_1",
	}
	if got := audited(t, w); len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		t.Errorf("the audit table ends with\n%q\nwant\n%q", got, want)
	}
}

// Whoever writes Postgres shows another line than the one that was approved: nobody decides about it. A line whose content is
// erased is still decided about.
func TestChangedLinesAreNotDecided(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 3)
	w.Press(t, "Ben", "/agency/batches/dsb_1", "agency/batches/dsb_1/approve")
	w.Press(t, "Cleo", "/agency/batches/dsb_1", "agency/batches/dsb_1/release")
	await.Until(t, "three sent lines", func() bool { return w.Batch(t, "dsb_1").Lines.Sent.Count == 3 })
	w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", disbursement.Word{Position: 1, Attempt: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordPaid, Amount: 1, Currency: "XAF"}))
	const path, settle = "/agency/batches/dsb_1/lines/2", "agency/batches/dsb_1/lines/2/settle"
	form := w.Form(t, "Ben", path, settle, "reference", "a letter")
	w.Exec(t, `CREATE TABLE kept_lines AS SELECT * FROM disbursement_lines`)
	for what, do := range map[string]func(){
		"another payee": func() { resealed(t, w, "dsb_1", 1, func(l *digest.Line) { l.MSISDN = "242069999999" }) },
		"the leaf of another": func() {
			w.Exec(t, `UPDATE disbursement_lines SET snapshot = (SELECT snapshot FROM kept_lines WHERE position = 0) WHERE position = 1`)
		},
		"a line of another account": func() { swapAccount(t, w, 1) },
		"a line before is erased":   func() { w.Exec(t, `DELETE FROM disbursement_lines WHERE position = 0`) },
	} {
		do()
		page := w.Browsers["Ben"].Get(path)
		if body := page.Body.String(); strings.Contains(body, "/settle/begin") {
			t.Errorf("%s: the page asks for a signature", what)
		}
		if a := w.Browsers["Ben"].Post("/"+settle+"/begin", form); a.Code < http.StatusBadRequest {
			t.Errorf("%s: a signature is asked for: %d", what, a.Code)
		}
		w.Exec(t, `DELETE FROM disbursement_lines`)
		w.Exec(t, `INSERT INTO disbursement_lines SELECT * FROM kept_lines`)
	}
	w.Exec(t, `UPDATE disbursement_lines SET sealed = (SELECT sealed FROM kept_lines WHERE position = 0) WHERE position = 1`)
	backoffice.Want(t, w.Browsers["Ben"].Get(path), http.StatusOK, "Contenu illisible ou effacé")
	w.Press(t, "Ben", path, settle, "outcome", "paid", "reference", "a letter")
	w.Press(t, "Cleo", path, settle)
}

// The first page of a signatory has what may be signed, what is to be decided and what waits for a second signature; others
// have none of it.
func TestWorkHasBatches(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 2)
	w.Sealed(t, "dsb_2", 2)
	one, two := "/agency/batches/dsb_1", "/agency/batches/dsb_2"
	backoffice.Want(t, w.Browsers["Ben"].Get("/work"), http.StatusOK, "Lots de paiements\u00a0: à décider par vous", one, two, "Approuver")
	for _, other := range []string{"Ama", "Rita", "Zoe"} {
		backoffice.Lacks(t, w.Browsers[other].Get("/work"), "/agency/batches/dsb_") // the maker, a reader, another agency
	}
	w.Press(t, "Ben", one, "agency/batches/dsb_1/approve")
	backoffice.Want(t, w.Browsers["Cleo"].Get("/work"), http.StatusOK, one, "Mettre en paiement")
	w.Press(t, "Cleo", one, "agency/batches/dsb_1/release")
	backoffice.Lacks(t, w.Browsers["Cleo"].Get("/work"), one)

	await.Until(t, "two sent lines", func() bool { return w.Batch(t, "dsb_1").Lines.Sent.Count == 2 })
	w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", disbursement.Word{Position: 1, Attempt: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordPaid, Amount: 1, Currency: "XAF"}))
	for _, name := range []string{"Ama", "Ben", "Cleo"} {
		backoffice.Want(t, w.Browsers[name].Get("/work"), http.StatusOK, one, "cases=1", "Lignes à décider\u00a0: 1")
	}
	open, err := w.Batches.OpenCases(t.Context())
	if err != nil || open[disbursements.CaseCount{Kind: "payout_conflict"}] != 1 || open[disbursements.CaseCount{Kind: "payout_held"}] != 0 {
		t.Errorf("%v, %v", open, err)
	}
	w.Press(t, "Ben", one+"/lines/2", "agency/batches/dsb_1/lines/2/settle", "outcome", "paid", "reference", "a letter")
	backoffice.Want(t, w.Browsers["Ben"].Get("/work"), http.StatusOK, "vos signatures en attente", one+"/lines/2", "Décision sur une ligne", "Ligne 2 du lot dsb_1")
	// The operator contradicts itself about another attempt: what Ben signed is of the line as it was, and nobody can add to it.
	kept, err := w.Batches.Lines(t.Context(), "dsb_1", disbursements.LineQuery{From: 1, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	changed := kept[0]
	changed.Doubt++
	storeLine(t, w, changed)
	backoffice.Lacks(t, w.Browsers["Ben"].Get("/work"), "Décision sur une ligne")
	storeLine(t, w, kept[0])
	w.Press(t, "Cleo", one+"/lines/2", "agency/batches/dsb_1/lines/2/settle")
	for _, name := range []string{"Ama", "Ben", "Cleo"} {
		backoffice.Lacks(t, w.Browsers[name].Get("/work"), one)
	}
	w.Press(t, "Ben", approvals.PeoplePath, approvals.Propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "chief, director")
	backoffice.Want(t, w.Browsers["Ama"].Get("/work"), http.StatusOK, "Changement de signataires")
}

// An operator refuses the settings of an account: the pages of the batch and of what waits say so, and a person of the agency has it
// tried again. Readers and the maker's page have no such button, and another agency sees nothing.
func TestAClosedAccountIsTriedByAPerson(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 2)
	const path = "/agency/batches/dsb_1"
	w.Press(t, "Ben", path, "agency/batches/dsb_1/approve")
	w.Press(t, "Cleo", path, "agency/batches/dsb_1/release")
	await.Until(t, "two sent lines", func() bool { return w.Batch(t, "dsb_1").Lines.Sent.Count == 2 })
	account := w.Batch(t, "dsb_1").Accounts[0].Code
	try := path + "/accounts/" + account + "/try"
	backoffice.Lacks(t, w.Browsers["Ben"].Get(path), try, "est fermé")
	backoffice.Want(t, w.Browsers["Ben"].Post(try, nil), http.StatusConflict, "il n’est pas fermé")
	w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", disbursement.Word{Attempt: 1, Try: 1, Source: disbursement.FromRequest, Kind: disbursement.WordClosed, Absent: true, Code: "ROUTER115"}))
	backoffice.Want(t, w.Browsers["Ben"].Get(path), http.StatusOK, "Le compte "+account+" est fermé", "ROUTER115", try, "Compte fermé\u00a0: "+account)
	backoffice.Lacks(t, w.Browsers["Rita"].Get(path), try)
	for _, name := range []string{"Ama", "Ben", "Cleo"} {
		backoffice.Want(t, w.Browsers[name].Get("/work"), http.StatusOK, "Compte fermé\u00a0: "+account, path)
	}
	backoffice.Lacks(t, w.Browsers["Zoe"].Get("/work"), "Compte fermé")
	backoffice.Want(t, w.Browsers["Rita"].Post(try, nil), http.StatusForbidden)
	backoffice.Want(t, w.Browsers["Zoe"].Post(try, nil), http.StatusNotFound)
	backoffice.Want(t, w.Browsers["Ben"].Post(path+"/accounts/none/try", nil), http.StatusConflict, "le lot ne l’a pas")
	backoffice.Want(t, w.Browsers["Ben"].Post(try, nil), http.StatusSeeOther)
	await.Until(t, "the line is sent again", func() bool { return w.Batch(t, "dsb_1").Lines.Sent.Count == 2 })
	backoffice.Lacks(t, w.Browsers["Ben"].Get("/work"), "Compte fermé")
	backoffice.Want(t, w.Browsers["Ben"].Get(path), http.StatusOK, "ne paie plus", "Le compte est essayé de nouveau")
	var rows int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'batch.try_account' AND subject = 'dsb_1' AND detail ->> 'account' = $1`, account).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("the audit table has %d rows, want 1: %v", rows, err)
	}
}

// swapAccount has the row of a line name the other payout account of the batch.
func swapAccount(t *testing.T, w *approvals.World, position int) {
	t.Helper()
	list, err := w.Batches.Lines(t.Context(), "dsb_1", disbursements.LineQuery{From: position, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	list[0].Account = 1 - list[0].Account
	storeLine(t, w, list[0])
}

// storeLine has the row of a line be another one.
func storeLine(t *testing.T, w *approvals.World, l disbursement.Line) {
	t.Helper()
	r := batches.FromLine(l)
	r.Sealed = nil
	snapshot, err := w.Codec.Encode(&r)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE disbursement_lines SET snapshot = $1 WHERE batch = $2 AND position = $3`, snapshot, l.Batch, l.Position)
}
