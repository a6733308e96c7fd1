package intake_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/statements"
	desks "quittance/test/office"
	"quittance/test/registries"
	"quittance/test/servers"
)

// page is the pages of staff for tests: Awa and Ben of an agency have two passkeys each, and sign in.
type page struct {
	*office
	desk  desks.Office
	s     *intake.Store // of commands
	pages *intake.Store
	keys  *secret.Keys // of the role office
	cases *secret.Keys // of the role cases
}

func newPage(t *testing.T) page {
	t.Helper()
	d := desks.Open(t, "impots", []identity.Role{identity.RoleAccountant, identity.RoleApprover}, "Awa", "Ben")
	verify := func(labels ...string) (out []secret.Use) {
		for _, label := range labels {
			out = append(out, secret.Use{Purpose: secret.PurposeVerify, Label: label})
		}
		return out
	}
	rows := verify(secret.LabelDecisions, secret.LabelOfficeDecisions, secret.LabelRegistryRows, secret.LabelStaffRows, secret.LabelPeopleRows)
	reading := secret.Use{Purpose: secret.PurposeSeal, Label: intake.LabelReading}
	p := page{
		office: officeIn(t, d.House), desk: d,
		keys:  d.Keys.Subset("office", append([]secret.Use{{Purpose: secret.PurposeSign, Label: secret.LabelOfficeDecisions}, reading}, rows...)),
		cases: d.Keys.Subset("cases", append([]secret.Use{{Purpose: secret.PurposeSeal, Label: intake.Originals.Label}, reading}, rows...)),
	}
	p.s = p.closing("", "")
	p.pages = p.store(func(c *intake.Config) {
		c.Keys, c.Closed = p.keys, func(context.Context, registry.StatementAccountKey) (string, error) { return "", nil }
	})
	return p
}

// now is the time of the service's clock.
func (p page) now() time.Time { return p.desk.Now() }

// by is a person who is signed in, with the id of a new request.
func (p page) by(name string) intake.By {
	p.t.Helper()
	by := intake.OnPage(p.desk.Acting(p.t, name))
	by.RequestID = uuid.NewString()
	return by
}

// withKeyOf is the same person with an st_ key.
func (p page) withKeyOf(name string) intake.By { return withKey(p.by(name).Staff) }

// presses has the person's passkey sign a step, and returns who takes it.
func (p page) presses(name string, take func(intake.By) error) intake.By {
	p.t.Helper()
	by := p.by(name)
	s, err := intake.Prepare(by, take)
	if err != nil {
		p.t.Fatal(err)
	}
	by.Acting = p.desk.Signs(p.t, by.Acting, name, s)
	return by
}

// takes has the person's passkey sign a step, and takes it.
func (p page) takes(name string, take func(intake.By) error) {
	p.t.Helper()
	if err := take(p.presses(name, take)); err != nil {
		p.t.Fatal(err)
	}
}

// The steps of the pages, as values for takes.
func (p page) requestsRelease(importID, reason string, r *intake.Release) func(intake.By) error {
	return func(by intake.By) (err error) {
		*r, err = intake.RequestRelease(p.t.Context(), p.Pool, p.keys, by, importID, reason, p.now())
		return err
	}
}

func (p page) approvesRelease(r *intake.Release) func(intake.By) error {
	return func(by intake.By) error {
		_, err := intake.ApproveRelease(p.t.Context(), p.Pool, p.keys, by, r.ID, p.now())
		return err
	}
}

func (p page) dismisses(importID, reason string) func(intake.By) error {
	return func(by intake.By) error {
		return intake.Dismiss(p.t.Context(), p.Pool, p.keys, by, importID, reason, p.now())
	}
}

func (p page) requestsWithdrawal(importID string, w *intake.Withdrawal) func(intake.By) error {
	return func(by intake.By) (err error) {
		*w, err = p.pages.RequestWithdrawal(p.t.Context(), by, importID, "the wrong day", p.now())
		return err
	}
}

func (p page) approvesWithdrawal(w *intake.Withdrawal) func(intake.By) error {
	return func(by intake.By) error {
		_, _, err := p.pages.ApproveWithdrawal(p.t.Context(), by, w.ID, p.now())
		return err
	}
}

func (p page) requestsFile(importID string, r *intake.OriginalRequest) func(intake.By) error {
	return func(by intake.By) (err error) {
		*r, err = intake.RequestOriginal(p.t.Context(), p.Pool, p.keys, by, importID, "line 7 is disputed", p.now())
		return err
	}
}

func (p page) approvesFile(r *intake.OriginalRequest) func(intake.By) error {
	return func(by intake.By) error {
		_, err := intake.ApproveOriginal(p.t.Context(), p.Pool, p.keys, by, r.ID, p.now())
		return err
	}
}

// opens has the sink cases open the files that may be read on pages.
func (p page) opens() {
	p.t.Helper()
	r, err := intake.NewReadings(intake.ReadingsConfig{Pool: p.Pool, Keys: p.cases, Now: p.desk.Now, Log: servers.Logger(p.t)})
	if err == nil {
		err = r.Open(p.t.Context())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// reads reads a file on a page.
func (p page) reads(name, requestID string) (string, error) {
	var file bytes.Buffer
	err := intake.ReadOriginal(p.t.Context(), p.Pool, p.keys, p.by(name), requestID, p.now(), &file)
	return file.String(), err
}

// judged is what would become of a file.
func (p page) judged(text string) statements.Verdict {
	p.t.Helper()
	req := p.request("mtn", text)
	req.Try, req.Now = true, p.now()
	got, err := p.s.Import(p.t.Context(), req)
	if err != nil {
		p.t.Fatal(err)
	}
	return got.State
}

// The statement of a day waited for ever in an agency whose people have passkeys: keys only propose there, and no page had
// the decision. Two passkeys release it. A key proposes still, and one passkey is not enough.
func TestPasskeysRelease(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	_, held, id := p.quarantined(p.s)
	var r intake.Release
	request := p.requestsRelease(id, "MTN says so", &r)
	p.refusedAs(request(p.by("Awa")), "decision.passkey_needed")
	p.takes("Awa", request)
	approve := p.approvesRelease(&r)
	_, err := intake.ApproveRelease(t.Context(), p.Pool, p.Keys, p.withKeyOf("Ben"), r.ID, p.now())
	p.refusedAs(err, "staff.keys_propose")
	p.refusedAs(approve(p.by("Ben")), "decision.passkey_needed")
	_, err = intake.Prepare(p.by("Awa"), approve)
	p.refusedAs(err, "statement.release_second_person")
	if got := p.judged(held); got != statements.VerdictQuarantined {
		t.Errorf("after one person it is %s", got)
	}
	p.takes("Ben", approve)
	p.imports(p.s, "mtn", held, statements.VerdictAccepted)
	var proofs int
	if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit a JOIN decisions d ON d.id::text = a.detail ->> 'proof' WHERE a.action IN ('statements.release.request', 'statements.release') AND d.kind = 'statement_release'`).Scan(&proofs); err != nil || proofs != 2 {
		t.Errorf("%d proofs are in the audit table, %v", proofs, err)
	}

	// A command has proposed; a passkey approves, and whoever has proposed with a key takes it back.
	third := exported(0, row{1, 0, 500}, row{1, 1, 200})
	another := p.imports(p.s, "mtn", third, statements.VerdictQuarantined).ImportID
	r, err = intake.RequestRelease(t.Context(), p.Pool, p.Keys, p.withKeyOf("Awa"), another, "r", p.now())
	if err != nil {
		t.Fatal(err)
	}
	_, err = intake.RejectRelease(t.Context(), p.Pool, p.Keys, p.withKeyOf("Ben"), r.ID, p.now())
	p.refusedAs(err, "staff.keys_propose")
	p.takes("Ben", approve)
	if got := p.judged(third); got != statements.VerdictAccepted {
		t.Errorf("it is %s", got)
	}
	detail := func() intake.Detail {
		d, err := p.s.Detail(t.Context(), p.by("Awa").Staff, another, p.now())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := detail(); d.Lapsed || d.Unsigned || d.Quarantined() {
		t.Errorf("%+v", d)
	}
	p.desk.MoveTo(p.now().Add(25 * time.Hour))
	if d := detail(); !d.Lapsed || d.Unsigned || !d.Quarantined() {
		t.Errorf("a day later: %+v", d)
	}
	p.Exec(t, `CREATE TABLE kept AS TABLE statement_exits`)
	p.Exec(t, `UPDATE statement_exits SET decided_proof = NULL`)
	if d := detail(); d.Lapsed || !d.Unsigned {
		t.Errorf("a release that one person has signed: %+v", d)
	}
	p.Exec(t, `UPDATE statement_exits e SET decided_proof = k.decided_proof FROM kept k WHERE k.id = e.id`)
	if got := p.judged(third); got != statements.VerdictQuarantined {
		t.Errorf("a day later it is %s", got)
	}
}

// One person dismisses a file with a passkey; with a key of such a group nobody does. Another person takes it back.
func TestPasskeysDismiss(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	_, held, id := p.quarantined(p.s)
	p.refusedAs(intake.Dismiss(t.Context(), p.Pool, p.Keys, p.withKeyOf("Awa"), id, "r", p.now()), "staff.keys_propose")
	p.refusedAs(p.dismisses(id, "r")(p.by("Awa")), "decision.passkey_needed")
	p.desk.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Chloe")
	_, err := intake.Prepare(p.by("Chloe"), p.dismisses(id, "r"))
	p.refusedAs(err, "staff.not_permitted")
	p.takes("Awa", p.dismisses(id, "the first one is right"))
	if c := p.covers(); len(c.Quarantined) != 0 {
		t.Errorf("%+v", c)
	}
	if got := p.judged(held); got != statements.VerdictRefused {
		t.Errorf("it is %s", got)
	}
	for how, attack := range map[string]string{
		"without the proof": `UPDATE statement_exits SET requested_proof = NULL`,
		"another reason":    `UPDATE statement_exits SET reason = 'x'`,
		"as a command":      fmt.Sprintf(`UPDATE statement_exits SET requested_proof = NULL, requested_signature = '\x%x'`, p.commandSigns(id)),
	} {
		p.Exec(t, `CREATE TABLE kept AS TABLE statement_exits`)
		p.Exec(t, attack)
		if c := p.covers(); !slices.Equal(c.Quarantined, []string{id}) {
			t.Errorf("%s the dismissal counts: %+v", how, c)
		}
		p.Exec(t, `UPDATE statement_exits e SET requested_proof = k.requested_proof, reason = k.reason, requested_signature = k.requested_signature FROM kept k WHERE k.id = e.id; DROP TABLE kept`)
	}
	// The function of the owner with which the pages note a decision changes no accepted import, and knows no other state.
	for _, state := range []string{"dismissed", "accepted", "withdrawn"} {
		_, err := p.Pool.Exec(t.Context(), `SELECT decide_statement_import(id, $1, 'x', 'x', now()) FROM statement_imports`, state)
		if (err != nil) != (state != "dismissed") {
			t.Errorf("%s: %v", state, err)
		}
	}
	var accepted int
	if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM statement_imports WHERE state = 'accepted'`).Scan(&accepted); err != nil || accepted != 1 {
		t.Errorf("%d accepted imports are left, %v", accepted, err)
	}
	if err := intake.Reopen(t.Context(), p.Pool, p.keys, p.by("Ben"), id, "MTN withdrew the first one", p.now()); err != nil {
		t.Fatal(err)
	}
	if c := p.covers(); !slices.Equal(c.Quarantined, []string{id}) {
		t.Errorf("%+v", c)
	}
}

// commandSigns returns the signature of the dismissal of an import, as a command makes it with the master keys.
func (p page) commandSigns(importID string) []byte {
	p.t.Helper()
	a, s := casework.Agreement{Kind: "statement_dismissal"}, casework.Signed{Group: registries.AgencyA}
	if err := p.Pool.QueryRow(p.t.Context(), `SELECT e.id::text, e.digest, s.id::text, s.name, e.requested_at FROM statement_exits e JOIN staff s ON s.id = e.requested_by WHERE e.import_id = $1`, importID).
		Scan(&a.Subject, &a.Digest, &s.Person, &s.Name, &s.At); err != nil {
		p.t.Fatal(err)
	}
	signed, err := decisions.Sign(p.Keys, a, casework.DecisionProposed, s)
	if err != nil {
		p.t.Fatal(err)
	}
	return signed.Signature
}

// Two people agree on a page to withdraw an import; the pages write no statement. A command carries it out, once, also if it
// dies in between.
func TestPasskeysWithdraw(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"", intake.StepPending, intake.StepCommitted} {
		t.Run(dies, func(t *testing.T) {
			t.Parallel()
			p := newPage(t)
			id := p.imports(p.s, "mtn", mtn(1), statements.VerdictAccepted).ImportID
			var w intake.Withdrawal
			p.takes("Awa", p.requestsWithdrawal(id, &w))
			_, _, err := p.s.ApproveWithdrawal(t.Context(), p.withKeyOf("Ben"), w.ID, p.now())
			p.refusedAs(err, "staff.keys_propose")
			_, err = intake.Prepare(p.by("Awa"), p.approvesWithdrawal(&w))
			p.refusedAs(err, "statement.withdrawal_second_person")
			if done, err := p.s.CarryOut(t.Context(), p.now()); err != nil || len(done) != 0 {
				t.Errorf("one person has agreed: %+v, %v", done, err)
			}
			p.takes("Ben", p.approvesWithdrawal(&w))
			p.counts("mtn", 3, 2970)
			_, err = p.pages.RejectWithdrawal(t.Context(), p.by("Awa"), w.ID, p.now())
			p.refusedAs(err, "statement.withdrawal_decided")
			if dies != "" {
				dying := p.closing("", "")
				dying.Kill(func(at string) bool { return at == dies })
				if done, err := dying.CarryOut(t.Context(), p.now()); err != nil || len(done) != 1 || !errors.Is(done[0].Err, intake.ErrKilled) {
					t.Fatalf("%+v, %v", done, err)
				}
				if c := p.covers(); !c.Pending {
					t.Error("a withdrawal that was interrupted is not pending")
				}
			}
			p.Exec(t, `UPDATE statement_withdrawals SET actor = '[]'`) // nobody signs this column
			if done, err := p.carriesOut(w.ID); err != nil || done.Lines != 3 {
				t.Fatalf("%+v, %v", done, err)
			}
			var by string
			if err := p.Pool.QueryRow(t.Context(), `SELECT actor_kind || ' ' || actor FROM audit WHERE action = 'statements.withdraw'`).Scan(&by); err != nil || by != "service statements" {
				t.Errorf("%q, %v", by, err)
			}
			p.counts("mtn", 0, 0)
			if done, err := p.s.CarryOut(t.Context(), p.now()); err != nil || len(done) != 0 {
				t.Errorf("again: %+v, %v", done, err)
			}
			if n := p.audits("statements.withdraw"); n != 1 || p.audits("statements.withdraw.refuse") != 0 {
				t.Errorf("%d withdrawals are in the audit table", n)
			}
			if got := p.unproved(); got != "" {
				t.Errorf("%s is unproved", got)
			}
		})
	}
}

// carriesOut carries out the one thing that people have agreed on, also where a process died before.
func (p page) carriesOut(id string) (intake.Agreed, error) {
	p.t.Helper()
	done, err := p.s.CarryOut(p.t.Context(), p.now())
	if err == nil && (len(done) != 1 || done[0].ID != id) {
		err = fmt.Errorf("carried out: %+v", done)
	}
	if err != nil {
		return intake.Agreed{}, err
	}
	return done[0], done[0].Err
}

// meanwhile is a store that does something once, when it has read a withdrawal that it decides about and has not written it.
func (p page) meanwhile(keys *secret.Keys, do func()) *intake.Store {
	var once sync.Once
	return p.store(func(c *intake.Config) {
		c.Keys, c.Closed = keys, func(context.Context, registry.StatementAccountKey) (string, error) {
			once.Do(do)
			return "", nil
		}
	})
}

// A command approved a withdrawal that its requester had just taken back on the page, and a page approved one that a command was
// carrying out: the later one overwrote what the other had written. Of two requests about one import one is agreed on.
func TestWithdrawalDecidedByPageAndCommand(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	olga := withKey(p.person("Olga", ""))
	id := p.imports(p.s, "mtn", mtn(1), statements.VerdictAccepted).ImportID
	var w, second intake.Withdrawal
	p.takes("Awa", p.requestsWithdrawal(id, &w))
	command := p.meanwhile(p.Keys, func() {
		if _, err := p.pages.RejectWithdrawal(t.Context(), p.by("Awa"), w.ID, p.now()); err != nil {
			t.Error(err)
		}
	})
	_, _, err := command.ApproveWithdrawal(t.Context(), olga, w.ID, p.now())
	p.refusedAs(err, "statement.withdrawal_decided")
	p.counts("mtn", 3, 2970)

	p.takes("Awa", p.requestsWithdrawal(id, &w))
	p.takes("Awa", p.requestsWithdrawal(id, &second))
	ben := p.presses("Ben", p.approvesWithdrawal(&w))
	pages := p.meanwhile(p.keys, func() {
		command := p.closing("", "")
		command.SetPatience(6 * time.Second)
		if _, _, err := command.ApproveWithdrawal(t.Context(), olga, w.ID, p.now()); err == nil {
			t.Error("a command approves what a page is approving")
		}
	})
	if _, _, err := pages.ApproveWithdrawal(t.Context(), ben, w.ID, p.now()); err != nil {
		t.Error(err)
	}
	p.counts("mtn", 3, 2970)
	_, _, err = p.s.ApproveWithdrawal(t.Context(), olga, second.ID, p.now())
	p.refusedAs(err, "statement.withdrawal_decided")
	_, err = intake.Prepare(p.by("Ben"), p.approvesWithdrawal(&second))
	p.refusedAs(err, "statement.withdrawal_decided")
	_, err = intake.Prepare(p.by("Ben"), p.requestsWithdrawal(id, &second))
	p.refusedAs(err, "statement.withdrawal_decided")
	if done, err := p.carriesOut(w.ID); err != nil || done.Lines != 3 {
		t.Errorf("%+v, %v", done, err)
	}
	p.counts("mtn", 0, 0)
}

// What two people have agreed on is not carried out a day later, and neither is what nobody has signed with a passkey, or what
// was signed about something else.
func TestForgedProofsOfStatements(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	id := p.imports(p.s, "mtn", mtn(1), statements.VerdictAccepted).ImportID
	other := p.imports(p.s, "mtn", mtn(2), statements.VerdictAccepted).ImportID
	var before, w intake.Withdrawal
	p.takes("Awa", p.requestsWithdrawal(other, &before))
	p.takes("Ben", p.approvesWithdrawal(&before))
	p.Exec(t, `UPDATE statement_withdrawals SET state = 'rejected'`) // its proofs are there
	var file intake.OriginalRequest
	p.takes("Awa", p.requestsFile(other, &file))
	p.takes("Ben", p.approvesFile(&file))
	p.opens()
	if text, err := p.reads("Awa", file.ID); err != nil || text != mtn(2) {
		t.Fatalf("%q, %v", text, err)
	}
	p.takes("Awa", p.requestsWithdrawal(other, &w))
	p.takes("Ben", p.approvesWithdrawal(&w))
	attacks := map[string]string{
		"without the approver's proof": `UPDATE statement_withdrawals SET decided_proof = NULL WHERE state = 'agreed'`,
		"without the requester's":      `UPDATE statement_withdrawals SET requested_proof = NULL WHERE state = 'agreed'`,
		"the proofs exchanged":         `UPDATE statement_withdrawals SET decided_proof = requested_proof, requested_proof = decided_proof WHERE state = 'agreed'`,
		"the proofs of an earlier request": `UPDATE statement_withdrawals w SET requested_proof = b.requested_proof, decided_proof = b.decided_proof, digest = b.digest, requested_signature = b.requested_signature,
			decided_signature = b.decided_signature, requested_at = b.requested_at, decided_at = b.decided_at FROM statement_withdrawals b WHERE b.state = 'rejected' AND w.state = 'agreed'`,
		"the proofs of a reading":     `UPDATE statement_withdrawals w SET requested_proof = r.requested_proof, decided_proof = r.approved_proof FROM statement_original_requests r WHERE w.state = 'agreed'`,
		"another import":              `UPDATE statement_withdrawals SET import_id = '` + id + `' WHERE state = 'agreed'`,
		"another reason":              `UPDATE statement_withdrawals SET reason = 'x' WHERE state = 'agreed'`,
		"another place of records":    `UPDATE statement_imports SET from_offset = from_offset + 1 WHERE id = '` + other + `'`,
		"another signature":           `UPDATE decisions SET assertion = set_byte(assertion, 9, get_byte(assertion, 9) # 1)`,
		"a passkey of the other one":  `UPDATE decisions SET passkey_id = (SELECT id FROM staff_passkeys k WHERE k.staff_id <> decisions.staff_id LIMIT 1)`,
		"a passkey that was inserted": `UPDATE staff_passkeys SET spki_hash = sha256(spki_hash)`,
		"a person who was revoked":    `UPDATE staff SET revoked_at = approved_at`,
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			for _, table := range []string{"statement_withdrawals", "statement_imports", "decisions", "staff_passkeys", "staff"} {
				p.Exec(t, `CREATE TABLE kept_`+table+` AS TABLE `+table)
			}
			p.Exec(t, attack)
			done, err := p.s.CarryOut(t.Context(), p.now())
			if err != nil || len(done) != 1 {
				t.Fatalf("%+v, %v", done, err)
			}
			var refused *operation.Error
			if !errors.As(done[0].Err, &refused) || refused.Code != "statement.not_believed" {
				t.Errorf("carried out: %v", done[0].Err)
			}
			p.Exec(t, `UPDATE decisions d SET assertion = k.assertion, passkey_id = k.passkey_id FROM kept_decisions k WHERE k.id = d.id`)
			p.Exec(t, `UPDATE staff_passkeys p SET spki_hash = k.spki_hash FROM kept_staff_passkeys k WHERE k.id = p.id`)
			p.Exec(t, `UPDATE staff s SET revoked_at = k.revoked_at FROM kept_staff k WHERE k.id = s.id`)
			p.Exec(t, `UPDATE statement_imports i SET from_offset = k.from_offset FROM kept_statement_imports k WHERE k.id = i.id`)
			p.Exec(t, `DELETE FROM statement_withdrawals; INSERT INTO statement_withdrawals TABLE kept_statement_withdrawals`)
			p.Exec(t, `DROP TABLE kept_statement_withdrawals, kept_statement_imports, kept_decisions, kept_staff_passkeys, kept_staff`)
		})
	}
	p.counts("mtn", 6, 5940)
	p.desk.MoveTo(p.now().Add(25 * time.Hour))
	if done, err := p.s.CarryOut(t.Context(), p.now()); err != nil || len(done) != 0 {
		t.Errorf("a day later: %+v, %v", done, err)
	}
	p.desk.MoveTo(registries.Epoch)
	if done, err := p.carriesOut(w.ID); err != nil || done.Lines != 3 {
		t.Errorf("the true one: %+v, %v", done, err)
	}
}

// What a passkey has signed is one request: of this kind, import, id and reason. Each other one would be a press that nobody
// has made.
func TestAPressIsOfOneStatement(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	_, _, id := p.quarantined(p.s)
	other := p.imports(p.s, "mtn", exported(0, row{1, 0, 500}, row{1, 1, 200}), statements.VerdictQuarantined).ImportID
	var r intake.Release
	var file intake.OriginalRequest
	request := p.requestsRelease(id, "MTN says so", &r)
	for name, take := range map[string]func(intake.By) error{
		"another reason":     p.requestsRelease(id, "MTN asks", &r),
		"another import":     p.requestsRelease(other, "MTN says so", &r),
		"a dismissal":        p.dismisses(id, "MTN says so"),
		"reading the file":   p.requestsFile(id, &file),
		"another request id": func(by intake.By) error { by.RequestID = uuid.NewString(); return request(by) },
		"no request id":      func(by intake.By) error { by.RequestID = ""; return request(by) },
	} {
		t.Run(name, func(t *testing.T) { p.refusedAs(take(p.presses("Awa", request)), "record.changed") })
	}
	by := p.presses("Awa", request)
	if err := request(by); err != nil {
		t.Fatal(err)
	}
	first := r
	p.refusedAs(request(by), "record.changed") // sent again: the page leads to the first one
	again := p.by("Ben")
	again.RequestID = first.ID
	_, err := intake.Prepare(again, request)
	p.refusedAs(err, "record.changed")

	// An approval is of one release, and of an approval.
	var none intake.Release
	p.takes("Awa", p.requestsRelease(other, "MTN says so", &r))
	p.refusedAs(p.approvesRelease(&r)(p.presses("Ben", p.approvesRelease(&first))), "record.changed")
	p.refusedAs(p.approvesRelease(&r)(p.presses("Ben", p.requestsRelease(other, "MTN says so", &none))), "record.changed")
	var n int
	if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM statement_exits WHERE state = 'requested'`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d requests wait, %v", n, err)
	}
}

// Whoever takes the pages signs with their key. With one press of Ben it takes no file out of quarantine in Awa's name, also
// in a group that has no passkeys; and a press of a passkey that does not approve yet is not dated ahead.
func TestOnePressDoesNotReleaseForTwo(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	_, held, id := p.quarantined(p.s)
	awa := p.withKeyOf("Awa")
	r, err := intake.RequestRelease(t.Context(), p.Pool, p.keys, awa, id, "r", p.now()) // signed with the key of the pages
	if err != nil {
		t.Fatal(err)
	}
	approve := p.approvesRelease(&r)
	_, err = intake.Prepare(p.by("Ben"), approve)
	p.refusedAs(err, "statement.not_believed")
	p.approveBySQL(r.ID, "Ben", p.now())
	if got := p.judged(held); got != statements.VerdictQuarantined {
		t.Errorf("with one press it is %s", got)
	}

	p.Exec(t, `DELETE FROM statement_exits`)
	p.takes("Awa", p.requestsRelease(id, "r", &r))
	p.approveBySQL(r.ID, "Ben", p.now())
	if got := p.judged(held); got != statements.VerdictAccepted {
		t.Errorf("with two presses it is %s", got)
	}
	p.Exec(t, `DELETE FROM statement_exits`)
	p.takes("Awa", p.requestsRelease(id, "r", &r))
	p.approveBySQL(r.ID, "Ben", p.now().Add(20*time.Hour))
	if got := p.judged(held); got != statements.VerdictQuarantined {
		t.Errorf("approved ahead of time it is %s", got)
	}
}

// approveBySQL has the person's passkey sign the approval of a release at a time, and writes it past the noun, signed with the
// key of the pages.
func (p page) approveBySQL(releaseID, name string, at time.Time) {
	p.t.Helper()
	before := p.now()
	var digest []byte
	if err := p.Pool.QueryRow(p.t.Context(), `SELECT digest FROM statement_exits WHERE id = $1`, releaseID).Scan(&digest); err != nil {
		p.t.Fatal(err)
	}
	a := p.desk.Acting(p.t, name)
	p.desk.MoveTo(at)
	s := identity.Statement{Kind: "statement_release", Subject: releaseID, Digest: hex.EncodeToString(digest), Verdict: string(casework.DecisionApproved), AgencyID: registries.AgencyA}
	proof, err := p.desk.Prove(p.t, p.desk.Signs(p.t, a, name, s), s)
	if err != nil {
		p.t.Fatal(err)
	}
	p.desk.MoveTo(before)
	signed, err := decisions.Sign(p.keys, casework.Agreement{Kind: s.Kind, Subject: s.Subject, Digest: digest}, casework.DecisionApproved,
		casework.Signed{Person: a.Person.ID, Name: a.Person.Name, Group: a.Person.AgencyID, At: at})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Exec(p.t, `UPDATE statement_exits SET state = 'approved', decided_by = $2, decided_at = $3, decided_signature = $4, decided_proof = $5 WHERE id = $1`, releaseID, a.Person.ID, at, signed.Signature, proof)
	p.Exec(p.t, `UPDATE statement_imports SET state = 'released', released_at = now(), released_by = 'Awa', released_reason = 'r' WHERE id = (SELECT import_id FROM statement_exits WHERE id = $1)`, releaseID)
}

// The pages have no key of files. The sink cases seals that of a file whose reading two passkeys have allowed, for the person who
// asked and for a day; whoever writes Postgres allows nothing.
func TestFilesAreReadOnPages(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	id := p.imports(p.s, "mtn", mtn(1), statements.VerdictAccepted).ImportID
	var r, forged intake.OriginalRequest
	p.takes("Awa", p.requestsFile(id, &r))
	p.opens()
	_, err := p.reads("Awa", r.ID)
	p.refusedAs(err, "statement.request_waits")
	_, err = intake.ApproveOriginal(t.Context(), p.Pool, p.Keys, p.withKeyOf("Ben"), r.ID, p.now())
	p.refusedAs(err, "staff.keys_propose")
	p.takes("Ben", p.approvesFile(&r))
	_, err = p.reads("Awa", r.ID)
	p.refusedAs(err, "statement.file_not_ready")
	p.opens()
	if text, err := p.reads("Awa", r.ID); err != nil || text != mtn(1) {
		t.Errorf("%q, %v", text, err)
	}
	_, err = p.reads("Ben", r.ID)
	p.refusedAs(err, "statement.request_unknown")
	if n := p.audits("statements.original.read"); n != 1 {
		t.Errorf("%d readings are in the audit table", n)
	}

	// The proofs of this request, and its sealed key, serve no other one.
	p.takes("Awa", p.requestsFile(id, &forged))
	p.Exec(t, `UPDATE statement_original_requests f SET approved_by = r.approved_by, approved_at = r.approved_at, approved_signature = r.approved_signature, approved_proof = r.approved_proof, reading = r.reading
		FROM statement_original_requests r WHERE r.id = $1 AND f.id = $2`, r.ID, forged.ID)
	_, err = p.reads("Awa", forged.ID)
	p.refusedAs(err, "statement.not_believed")
	p.Exec(t, `UPDATE statement_original_requests SET reading = NULL WHERE id = $1`, forged.ID)
	p.opens()
	var opened bool
	if err := p.Pool.QueryRow(t.Context(), `SELECT reading IS NOT NULL FROM statement_original_requests WHERE id = $1`, forged.ID).Scan(&opened); err != nil || opened {
		t.Errorf("the file of a forged request is opened, %v", err)
	}
	p.desk.MoveTo(p.now().Add(25 * time.Hour))
	_, err = p.reads("Awa", r.ID)
	p.refusedAs(err, "statement.request_over")
	p.opens()
	var kept int
	if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM statement_original_requests WHERE reading IS NOT NULL`).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d keys of files are kept after their day, %v", kept, err)
	}

	// Whoever writes Postgres has an allowed request name another file, whose row then says what was allowed.
	var moved intake.OriginalRequest
	secretFile := p.imports(p.s, "mtn", mtn(2), statements.VerdictAccepted).ImportID
	p.takes("Awa", p.requestsFile(id, &moved))
	p.takes("Ben", p.approvesFile(&moved))
	p.Exec(t, `UPDATE statement_imports SET digest = 'x' || digest WHERE id = $1`, id)
	p.Exec(t, `UPDATE statement_imports s SET agency_id = x.agency_id, live = x.live, code = x.code, digest = substr(x.digest, 2) FROM statement_imports x WHERE s.id = $1 AND x.id = $2`, secretFile, id)
	p.Exec(t, `UPDATE statement_original_requests SET import_id = $2 WHERE id = $1`, moved.ID, secretFile)
	p.opens()
	if text, err := p.reads("Awa", moved.ID); err == nil || text != "" {
		t.Errorf("the file of another import is read: %q, %v", text, err)
	}
	p.Exec(t, `UPDATE statement_original_requests SET import_id = $2 WHERE id = $1`, moved.ID, id)
	p.Exec(t, `UPDATE statement_imports SET digest = 'y' || digest WHERE id = $1`, secretFile)
	p.Exec(t, `UPDATE statement_imports SET digest = substr(digest, 2) WHERE id = $1`, id)

	// A row that cannot be read does not stop the others.
	var broken, other intake.OriginalRequest
	p.takes("Awa", p.requestsFile(id, &broken))
	p.takes("Ben", p.approvesFile(&broken))
	p.desk.MoveTo(p.now().Add(time.Second))
	p.takes("Awa", p.requestsFile(id, &other))
	p.takes("Ben", p.approvesFile(&other))
	p.Exec(t, `UPDATE statement_original_requests SET requested_at = 'infinity' WHERE id = $1`, broken.ID)
	readings, err := intake.NewReadings(intake.ReadingsConfig{Pool: p.Pool, Keys: p.cases, Now: p.desk.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := readings.Open(t.Context()); err == nil || !strings.Contains(err.Error(), broken.ID) {
		t.Errorf("%v", err)
	}
	if text, err := p.reads("Awa", other.ID); err != nil || text != mtn(1) {
		t.Errorf("%q, %v", text, err)
	}
}

// Two people agree on a page that an earlier version of the last statement is the last one again. A command carries it out,
// once.
func TestPasskeysRestore(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	first := exported(0, row{1, 0, 300}, row{1, 1, 200})
	id := p.imports(p.s, "mtn", first, statements.VerdictAccepted).ImportID
	p.imports(p.s, "mtn", exported(0, row{1, 0, 300}, row{1, 1, 200}, row{1, 2, 50}), statements.VerdictAccepted)
	next := exported(500, row{2, 0, 50})
	if got := p.judged(next); got == statements.VerdictAccepted {
		t.Fatal("the next day follows the first version already")
	}
	var r intake.Release
	p.takes("Awa", p.requestsRelease(id, "MTN withdrew the second one", &r))
	p.takes("Ben", p.approvesRelease(&r))
	if got := p.judged(next); got == statements.VerdictAccepted {
		t.Error("the pages have written the ledger")
	}
	done, err := p.s.CarryOut(t.Context(), p.now())
	if err != nil || len(done) != 1 || done[0].Err != nil || done[0].Of != intake.Released {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := p.judged(next); got != statements.VerdictAccepted {
		t.Errorf("the next day is %s", got)
	}
	if done, err := p.s.CarryOut(t.Context(), p.now()); err != nil || len(done) != 0 || p.audits("statements.release.carry_out") != 1 {
		t.Errorf("again: %+v, %v", done, err)
	}
	var refused *operation.Error
	if _, err := intake.RejectRelease(t.Context(), p.Pool, p.keys, p.by("Awa"), r.ID, p.now()); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}
