package disbursements_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/identity"
	"quittance/internal/personal"
	processor "quittance/processors/disbursement"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/sinks/readmodel"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/registries"
	"quittance/test/servers"
)

// world is the pages over the processor of batches and its read model. Ama prepares, Ben and Cleo approve, Rita reads; Zoe
// approves for another agency.
type world struct {
	*backoffice.World
	i        *payouts.Installation
	browsers map[string]*backoffice.Browser
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: backoffice.New(t), i: payouts.Install(t)}
	w.Seed(t, registries.Full+"  - {id: "+registries.AgencyB+", slug: douanes, name: Direction générale des douanes}\n")
	w.i.Process()
	w.Processor = w.i.Client(processor.SenderOffice)
	sink, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: w.i.Kafka, Store: disbursements.NewStore(w.Pool, w.i.Codec), Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sink.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the read model: %v", err)
		}
	})
	w.Add(t, "impots", []identity.Role{identity.RolePreparer, identity.RoleApprover}, "Ama")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Ben", "Cleo")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Rita")
	w.Add(t, "douanes", []identity.Role{identity.RoleApprover, identity.RolePreparer}, "Zoe")
	for n, name := range []string{"Ama", "Ben", "Cleo", "Rita", "Zoe"} {
		w.Write(t, `UPDATE staff SET number = $2 WHERE id = $1`, w.IDs[name], fmt.Sprint("M-", n+1))
	}
	w.enter(t, 0)
	return w
}

// enter moves the clock forward and signs everybody in.
func (w *world) enter(t *testing.T, after time.Duration) {
	t.Helper()
	w.i.Advance(after)
	w.MoveTo(w.i.Now())
	w.browsers = map[string]*backoffice.Browser{}
	for _, name := range []string{"Ama", "Ben", "Cleo", "Rita", "Zoe"} {
		w.browsers[name] = w.Enter(t, name)
	}
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// form returns the hidden fields of a form of a page, with more.
func (w *world) form(t *testing.T, name, path, action string, more ...string) url.Values {
	t.Helper()
	page := w.browsers[name].Get(path).Body.String()
	_, form, found := strings.Cut(page, `action="/`+action+`?`)
	if !found {
		t.Fatalf("%s has no form for %s:\n%.9000s", path, action, page)
	}
	form, _, _ = strings.Cut(form, "</form>")
	out := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(form, -1) {
		out.Set(field[1], field[2])
	}
	for i := 0; i < len(more); i += 2 {
		out.Set(more[i], more[i+1])
	}
	return out
}

// press has a person sign a form of a page.
func (w *world) press(t *testing.T, name, path, action string, more ...string) {
	t.Helper()
	a := w.browsers[name].Press(t, name, "/"+action+"/begin", w.form(t, name, path, action, more...), "/"+action)
	if a.Code != http.StatusOK {
		t.Fatalf("%s by %s: %d %s", action, name, a.Code, a.Body)
	}
}

const peoplePath = "/agency/batches/people?mode=test"

// agency enrols Ama, Ben and Cleo and sets a policy, on the pages. Each is in force.
func (w *world) agency(t *testing.T) {
	t.Helper()
	const propose, confirm = "agency/batches/people/propose", "agency/batches/people/confirm"
	backoffice.Want(t, w.browsers["Ama"].Get(peoplePath), http.StatusOK, "Aucun signataire n’est inscrit", "Aucune règle n’est en vigueur")
	w.press(t, "Ama", peoplePath, propose, "own_roles", "maker", "person", w.IDs["Ben"], "roles", "chief")
	// Only the other one of the two is the second.
	first := w.form(t, "Ben", peoplePath, confirm)
	backoffice.Lacks(t, w.browsers["Ama"].Get(peoplePath), confirm+"?")
	backoffice.Lacks(t, w.browsers["Cleo"].Get(peoplePath), confirm+"?")
	for _, name := range []string{"Ama", "Cleo"} {
		backoffice.Want(t, w.browsers[name].Post("/"+confirm+"/begin", first), http.StatusConflict, "deux personnes différentes")
	}
	other := url.Values{"kind": first["kind"], "mode": first["mode"], "number": first["number"], "shown": {strings.Repeat("0", 64)}}
	backoffice.Want(t, w.browsers["Ben"].Post("/"+confirm+"/begin", other), http.StatusConflict)
	w.press(t, "Ben", peoplePath, confirm)
	backoffice.Want(t, w.browsers["Rita"].Get(peoplePath), http.StatusOK, "Ama (M-1)", "Ben (M-2)", "Compte à partir du")

	w.enter(t, 25*time.Hour)
	w.press(t, "Ben", peoplePath, propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "chief")
	backoffice.Lacks(t, w.browsers["Cleo"].Get(peoplePath), confirm+"?") // not of the roster yet
	w.press(t, "Ama", peoplePath, confirm)
	policy := func(more ...string) url.Values {
		f := w.form(t, "Ama", peoplePath, propose, append([]string{
			"kind", "policy", "currency", "XAF", "up_to1", "1 000 000", "levels1", "chief 1", "levels2", "chief 2", "approve_within", "72", "pay_within_days", "5", "name_check", "off", "release", "manual",
		}, more...)...)
		return f
	}
	for field, want := range map[[2]string]string{
		{"approve_within", "721"}:     "donnez de 1 à 720 heures",
		{"levels1", "chief 9"}:        "Palier 1",
		{"up_to2", "5"}:               "les montants croissent",
		{"currency", "ZZZ"}:           "un code comme XAF",
		{"pay_within_days", "demain"}: "de 0 à 60 jours",
	} {
		backoffice.Want(t, w.browsers["Ama"].Post("/"+propose+"/begin", policy(field[0], field[1])), http.StatusConflict, want)
	}
	if a := w.browsers["Ama"].Press(t, "Ama", "/"+propose+"/begin", policy(), "/"+propose); a.Code != http.StatusOK {
		t.Fatalf("proposing a policy: %d %s", a.Code, a.Body)
	}
	backoffice.Want(t, w.browsers["Ben"].Get(peoplePath), http.StatusOK, "Règles proposées", "chief 2")
	w.press(t, "Ben", peoplePath, confirm)
	backoffice.Want(t, w.browsers["Ben"].Get(peoplePath), http.StatusOK, "Règles à partir du", "Cleo (M-3)")
	w.enter(t, 25*time.Hour)
	backoffice.Lacks(t, w.browsers["Ben"].Get(peoplePath), "Règles à partir du", "Compte à partir du")
}

// sealed makes a sealed batch of n lines, which Ama prepares.
func (w *world) sealed(t *testing.T, id string, n int) disbursement.Batch {
	t.Helper()
	list := make([]lines.Line, n)
	for k := range list {
		list[k].Content = digest.Line{
			Amount: int64(1000 + k), Currency: "XAF", LineRef: fmt.Sprintf("%s-%06d", id, k), PayoutAccount: "mtn", PaymentMode: "momo", Name: fmt.Sprintf("PAYEE %06d", k), MSISDN: "242060001234",
		}
	}
	sealed, err := lines.Seal(list, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	open := payroll.Opening("ref-"+id, w.i.Now().Format(time.DateOnly))
	open.Maker = w.IDs["Ama"]
	w.i.OK(processor.SenderOperator, id, open)
	for chunk, err := range sealed.Chunks(func(position int, content []byte) ([]byte, error) {
		return w.Lines.SealLine(t.Context(), personal.LineID(id, position), json.RawMessage(content), personal.Payee{Phone: "242060001234"}, w.i.Now().Add(time.Hour))
	}) {
		if err != nil {
			t.Fatal(err)
		}
		w.i.OK(processor.SenderOperator, id, disbursement.AddLines{ImportID: "i", Position: chunk.Position, Lines: chunk.Lines})
	}
	b := w.i.OK(processor.SenderOperator, id, disbursement.Seal{Count: n, Sum: sealed.Sum, Root: sealed.Root})
	w.shows(t, b)
	return b
}

// shows waits until the read model has a batch.
func (w *world) shows(t *testing.T, b disbursement.Batch) {
	t.Helper()
	await.Until(t, "the batch in the read model", func() bool {
		got, err := w.Batches.Batch(t.Context(), disbursements.Scope{TenantID: registries.AgencyA}, b.ID)
		return err == nil && got.Sequence >= b.Sequence
	})
}

func (w *world) batch(t *testing.T, id string) disbursements.Batch {
	t.Helper()
	b, err := w.Batches.Batch(t.Context(), disbursements.Scope{TenantID: registries.AgencyA}, id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An agency's people enrol, set a policy, and have a batch paid, on the pages and by the real processor: another than the
// maker approves, two lift a hold, and the maker and another agency can do none of it.
func TestAnAgencyApprovesABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := w.browsers["Rita"].Get("/agency/batches?mode=test")
	backoffice.Want(t, empty, http.StatusOK, "n’a encore aucun lot dans ce mode", "importe ses lignes")
	w.agency(t)
	b := w.sealed(t, "dsb_1", 60)
	path := "/agency/batches/dsb_1"

	backoffice.Want(t, w.browsers["Rita"].Get("/agency/batches?mode=test"), http.StatusOK, path, "ref-dsb_1", "Scellé")
	backoffice.Want(t, w.browsers["Rita"].Get("/agency/batches?mode=test&held=1"), http.StatusOK, "Aucun lot ne remplit ces conditions")
	reader := w.browsers["Rita"].Get(path)
	backoffice.Want(t, reader, http.StatusOK, "Ama (M-1)", "quittance batches show dsb_1", "60", "Vos rôles ne donnent pas accès aux lignes", "disbursement.events")
	backoffice.Lacks(t, reader, "PAYEE", "1234", "/approve", "/hold")
	page := w.browsers["Ben"].Get(path)
	backoffice.Want(t, page, http.StatusOK, "PAYEE 000000", "PAYEE 000049", "•••• 1234", "from=51", inFours(b.Digest.String()), "Ben (M-2)", "Cleo (M-3)", "il en manque 1", "N’a pas approuvé", path+"/approve")
	backoffice.Lacks(t, page, "PAYEE 000050", "24206000", `id="differs"`)
	backoffice.Want(t, w.browsers["Ben"].Get(path+"?from=51"), http.StatusOK, "PAYEE 000050", "PAYEE 000059")

	// Another agency is answered as if there were nothing.
	one, two := w.browsers["Zoe"].Get(path), w.browsers["Zoe"].Get("/agency/batches/dsb_2")
	if one.Code != http.StatusNotFound || !bytes.Equal(bytes.ReplaceAll(one.Body.Bytes(), []byte("dsb_1"), nil), bytes.ReplaceAll(two.Body.Bytes(), []byte("dsb_2"), nil)) {
		t.Errorf("another agency's batch: %d, nothing: %d\n%s\n%s", one.Code, two.Code, one.Body, two.Body)
	}
	approve := w.form(t, "Ben", path, "agency/batches/dsb_1/approve")
	for _, form := range []string{"approve/begin", "release/begin", "reject/begin", "resume/begin", "hold", "stop", "recall"} {
		if a := w.browsers["Zoe"].Post(path+"/"+form, approve); a.Code != http.StatusNotFound {
			t.Errorf("%s by another agency: %d", form, a.Code)
		}
	}
	backoffice.Lacks(t, w.browsers["Zoe"].Get("/agency/batches?mode=test"), "dsb_1")

	// The maker has no button, and is refused by the processor whatever the maker sends.
	backoffice.Lacks(t, w.browsers["Ama"].Get(path), path+"/approve", path+"/reject")
	backoffice.Want(t, w.browsers["Ama"].Press(t, "Ama", path+"/approve/begin", approve, path+"/approve"), http.StatusConflict, "qui a préparé le lot ne l’approuve pas")
	backoffice.Want(t, w.browsers["Rita"].Post(path+"/approve/begin", approve), http.StatusForbidden)

	// A signature of one step is none of another, and one of another person none at all.
	answer := w.browsers["Ben"].Answer(t, "Ben", path+"/approve/begin", approve)
	reject := url.Values{"digest": approve["digest"], "level": {"0"}, "reason": {"non"}}
	backoffice.Want(t, w.browsers["Ben"].Send(path+"/reject", backoffice.Pressed(t, reject, answer)), http.StatusConflict)
	backoffice.Want(t, w.browsers["Cleo"].Send(path+"/approve", backoffice.Pressed(t, approve, answer)), http.StatusConflict)
	backoffice.Want(t, w.browsers["Ben"].Send(path+"/approve", backoffice.Pressed(t, approve, answer)), http.StatusOK, "done=approve")
	backoffice.Want(t, w.browsers["Ben"].Send(path+"/approve", backoffice.Pressed(t, approve, answer)), http.StatusConflict)
	got := w.batch(t, "dsb_1")
	if got.Status != disbursement.StatusApproved || len(got.Sealing.Approvals) != 1 || got.Sealing.Approvals[0].Person != w.IDs["Ben"] {
		t.Fatalf("%+v", got)
	}
	backoffice.Want(t, w.browsers["Rita"].Get(path), http.StatusOK, "A approuvé le", "Approuvé")

	// One holds, with a reason; two lift, and the maker may be one of them.
	backoffice.Want(t, w.browsers["Ben"].Post(path+"/hold", url.Values{"reason": {""}}), http.StatusUnprocessableEntity, "Indiquez le motif")
	release := w.form(t, "Cleo", path, "agency/batches/dsb_1/release")
	if a := w.browsers["Ben"].Post(path+"/hold", url.Values{"reason": {"une adresse à vérifier"}}); a.Code != http.StatusSeeOther {
		t.Fatalf("hold: %d %s", a.Code, a.Body)
	}
	held := w.browsers["Cleo"].Get(path)
	backoffice.Want(t, held, http.StatusOK, "Suspendu", "une adresse à vérifier", path+"/resume")
	backoffice.Lacks(t, held, path+"/release")
	backoffice.Want(t, w.browsers["Cleo"].Post(path+"/release/begin", release), http.StatusConflict) // of before the hold
	w.press(t, "Ama", path, "agency/batches/dsb_1/resume")
	if !w.batch(t, "dsb_1").Held() {
		t.Fatal("one person lifts a hold")
	}
	backoffice.Want(t, w.browsers["Ama"].Get(path), http.StatusOK, "Elle attend la signature d’une autre personne")
	resume := w.form(t, "Cleo", path, "agency/batches/dsb_1/resume")
	backoffice.Want(t, w.browsers["Ama"].Press(t, "Ama", path+"/resume/begin", resume, path+"/resume"), http.StatusOK, "resume_first")
	if !w.batch(t, "dsb_1").Held() {
		t.Fatal("one person lifts a hold by signing twice")
	}
	w.press(t, "Cleo", path, "agency/batches/dsb_1/resume")
	if w.batch(t, "dsb_1").Held() {
		t.Fatal("two people do not lift a hold")
	}

	// The maker does not release; another one does.
	backoffice.Lacks(t, w.browsers["Ama"].Get(path), path+"/release")
	release = w.form(t, "Cleo", path, "agency/batches/dsb_1/release")
	backoffice.Want(t, w.browsers["Ama"].Press(t, "Ama", path+"/release/begin", release, path+"/release"), http.StatusConflict, "ne le met pas en paiement")
	w.press(t, "Cleo", path, "agency/batches/dsb_1/release")
	if s := w.batch(t, "dsb_1").Status; s != disbursement.StatusReleasing {
		t.Fatalf("after the release: %s", s)
	}
	if a := w.browsers["Ben"].Post(path+"/stop", nil); a.Code != http.StatusSeeOther {
		t.Errorf("stop: %d %s", a.Code, a.Body)
	}
	backoffice.Want(t, w.browsers["Ama"].Post(path+"/recall", nil), http.StatusConflict, "son état ne permet plus")

	// A rejection, and the maker's recall.
	w.sealed(t, "dsb_3", 2)
	w.press(t, "Cleo", "/agency/batches/dsb_3", "agency/batches/dsb_3/reject", "reason", "mauvaise date")
	backoffice.Want(t, w.browsers["Rita"].Get("/agency/batches/dsb_3"), http.StatusOK, "Rejeté", "mauvaise date")
	w.sealed(t, "dsb_4", 2)
	if a := w.browsers["Ama"].Post("/agency/batches/dsb_4/recall", nil); a.Code != http.StatusSeeOther {
		t.Errorf("recall: %d %s", a.Code, a.Body)
	}
	if s := w.batch(t, "dsb_4").Status; s != disbursement.StatusRecalled {
		t.Errorf("after the recall: %s", s)
	}

	// Whoever is revoked signs nothing more, and the batches are held.
	w.sealed(t, "dsb_5", 2)
	w.browsers["Ben"].Post("/agency/batches/people/revoke", url.Values{"mode": {"test"}, "person": {w.IDs["Cleo"]}})
	backoffice.Want(t, w.browsers["Rita"].Get(peoplePath), http.StatusOK, "Retiré le")
	backoffice.Lacks(t, w.browsers["Cleo"].Get("/agency/batches/dsb_5"), "/approve", "/resume")
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
	w := newWorld(t)
	w.agency(t)
	w.sealed(t, "dsb_1", 3)
	path := "/agency/batches/dsb_1"
	form := w.form(t, "Ben", path, "agency/batches/dsb_1/approve")
	edit := func(change func(*disbursements.Batch)) {
		t.Helper()
		b := w.batch(t, "dsb_1")
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
		"a line is missing":         {sql(`DELETE FROM disbursement_lines WHERE position = 2`), "le nombre de lignes"},
		"the first line is missing": {sql(`DELETE FROM disbursement_lines WHERE position = 0`), "une ligne illisible"},
		"the key of a line":         {sql(`UPDATE disbursement_lines SET sealed = '' WHERE position = 2`), "une ligne illisible"},
	} {
		x.do()
		page := w.browsers["Ben"].Get(path)
		backoffice.Want(t, page, http.StatusOK, `id="differs"`, x.says)
		if strings.Contains(page.Body.String(), path+"/approve") || strings.Contains(page.Body.String(), path+"/reject") {
			t.Errorf("%s: the page asks for a signature", what)
		}
		if a := w.browsers["Ben"].Post(path+"/approve/begin", form); a.Code != http.StatusConflict {
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
	forged := w.form(t, "Ben", path, "agency/batches/dsb_1/approve")
	backoffice.Want(t, w.browsers["Ben"].Press(t, "Ben", path+"/approve/begin", forged, path+"/approve"), http.StatusConflict, "n’est pas celle de ce lot")
	restore()
	backoffice.Lacks(t, w.browsers["Ben"].Get(path), `id="differs"`)
	w.press(t, "Ben", path, "agency/batches/dsb_1/approve")
}

// A first signature that somebody has changed in Postgres moves nothing: the second person signs what the page shows, and the
// processor wants the same of both.
func TestForgedFirstSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(t)
	const propose, confirm = "agency/batches/people/propose", "agency/batches/people/confirm"
	w.press(t, "Ama", peoplePath, propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "director")
	form := w.form(t, "Ben", peoplePath, confirm)
	w.Exec(t, `UPDATE disbursement_signatures SET content = jsonb_set(content, '{people,0,Roles}', '["chief", "director"]')`)
	backoffice.Want(t, w.browsers["Ben"].Post("/"+confirm+"/begin", form), http.StatusConflict) // another one than the page has shown
	backoffice.Want(t, w.browsers["Ben"].Press(t, "Ben", "/"+confirm+"/begin", w.form(t, "Ben", peoplePath, confirm), "/"+confirm), http.StatusConflict, "n’est pas celle de ce lot ou de ce changement")
	backoffice.Lacks(t, w.browsers["Ben"].Get(peoplePath), "/"+confirm, "director")

	// A proposal that is dropped is not signed any more.
	w.press(t, "Ama", peoplePath, propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "director")
	form = w.form(t, "Ben", peoplePath, confirm)
	w.browsers["Ben"].Post("/agency/batches/people/drop", form)
	backoffice.Want(t, w.browsers["Ben"].Post("/"+confirm+"/begin", form), http.StatusConflict)
}

// When nobody answers, the page says that it is not known what happened, in both languages.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(t)
	w.sealed(t, "dsb_1", 1)
	w.Processor = nil
	backoffice.Want(t, w.browsers["Ben"].Post("/agency/batches/dsb_1/hold?lang=fr", url.Values{"reason": {"r"}}), http.StatusServiceUnavailable, "on ne sait pas si la demande")
	backoffice.Want(t, w.browsers["Ben"].Post("/agency/batches/dsb_1/hold?lang=en", url.Values{"reason": {"r"}}), http.StatusServiceUnavailable, "it is not known whether")
	path := "/agency/batches/dsb_1"
	form := w.form(t, "Ben", path, "agency/batches/dsb_1/approve")
	backoffice.Want(t, w.browsers["Ben"].Press(t, "Ben", path+"/approve/begin", form, path+"/approve"), http.StatusServiceUnavailable, "on ne sait pas si la demande")
}
