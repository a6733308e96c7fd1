package identity_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/identity"
	"quittance/internal/passkeys"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/test/office"
	"quittance/test/registries"
)

// A member of staff signs in with a passkey, works, and signs out. What a page asks by itself prolongs nothing; a
// session ends after 15 minutes without a request and after eight hours in any case. A fourth one ends the first.
func TestStaffSignIn(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa", "Ben")
	session, err := o.SignInAs(t, "Awa")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(asks bool) error {
		_, err := o.Session(t.Context(), session, asks, "203.0.113.7")
		return err
	}
	a, err := o.Session(t.Context(), session, false, "203.0.113.7")
	if err != nil || a.Person.Name != "Awa" || !slices.Equal(a.Person.Roles, []identity.Role{identity.RoleAccountant}) || a.Actor.Name != o.IDs["Awa"] {
		t.Fatalf("%+v, %v", a, err)
	}
	if !a.Sees(registries.AgencyA) || a.Sees(registries.AgencyB) || a.Sees("") || a.Service() {
		t.Error("a person of an agency sees another one, or not the own one")
	}
	for _, m := range []struct {
		p      identity.Permission
		agency string
		want   string
	}{
		{identity.MayPropose, registries.AgencyA, ""}, {identity.MayPropose, registries.AgencyB, "staff.not_permitted"}, {identity.MayApprove, registries.AgencyA, "staff.not_permitted"},
	} {
		if err := a.May(m.p, m.agency); m.want == "" && err != nil {
			t.Errorf("%s: %v", m.p, err)
		} else if m.want != "" {
			refusedBy(t, err, m.want, "", string(m.p))
		}
	}

	o.MoveTo(registries.Epoch.Add(14 * time.Minute))
	if err := ask(true); err != nil {
		t.Errorf("a page asks: %v", err)
	}
	o.MoveTo(registries.Epoch.Add(15 * time.Minute))
	if err := ask(true); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("what a page asks has prolonged the session: %v", err)
	}
	o.MoveTo(registries.Epoch.Add(14 * time.Minute))
	for at := 14 * time.Minute; at < identity.StaffSessionLifetime; at += 10 * time.Minute {
		o.MoveTo(registries.Epoch.Add(at))
		if err := ask(false); err != nil {
			t.Fatalf("after %s: %v", at, err)
		}
	}
	o.MoveTo(registries.Epoch.Add(identity.StaffSessionLifetime))
	if err := ask(false); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("after eight hours: %v", err)
	}

	o.MoveTo(registries.Epoch.Add(9 * time.Hour))
	var all []secret.Text
	for range identity.MaxStaffSessions + 1 {
		s, err := o.SignInAs(t, "Awa")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		o.MoveTo(o.Now().Add(time.Second))
	}
	for i, s := range all {
		if _, err := o.Session(t.Context(), s, true, ""); (i == 0) != errors.Is(err, identity.ErrStaffSessionEnded) {
			t.Errorf("session %d of %d: %v", i+1, len(all), err)
		}
	}
	last, err := o.Session(t.Context(), all[3], true, "")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := o.Sessions(t.Context(), last); err != nil || len(list) != 3 || !list[0].Own || list[1].Own {
		t.Errorf("%+v, %v", list, err)
	}
	if err := o.SignOutOthers(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Session(t.Context(), all[2], true, ""); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("another session of the person goes on: %v", err)
	}
	if err := o.SignOut(t.Context(), all[3]); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Session(t.Context(), all[3], true, ""); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("after the sign-out: %v", err)
	}
	if err := identity.Sweep(t.Context(), o.Pool, o.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := o.Pool.QueryRow(t.Context(), `SELECT count(*) FROM staff_sessions`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d sessions are left, %v", left, err)
	}
	if !slices.Contains(o.Audited(t), "staff.sign_in") {
		t.Error("a sign-in is not in the audit table")
	}
}

// A challenge is of one browser and answered once. Another person's passkey, one of another host, a removed one, and
// a person who may not act any more open nothing, also in a session that has begun.
func TestStaffSignInRefused(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "", []identity.Role{identity.RoleLead}, "Awa", "Ben", "Chloé")
	options, err := o.BeginSignIn(t.Context(), o.Browser)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := o.Devices["Awa"][0].Answer(options)
	if err != nil {
		t.Fatal(err)
	}
	in := func(browser secret.Text, answer []byte) error {
		_, err := o.SignIn(t.Context(), browser, answer, "/work", "203.0.113.7")
		return err
	}
	refusedBy(t, in(secret.Mint(""), answer), "staff.passkey_refused", "")
	if err := in(o.Browser, answer); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, in(o.Browser, answer), "staff.passkey_refused", "")
	refusedBy(t, in(o.Browser, []byte(`{"id":"x"}`)), "staff.passkey_refused", "")
	refusedBy(t, in(o.Browser, nil), "staff.passkey_refused", "")

	ben := o.Acting(t, "Ben")
	session, err := o.SignInAs(t, "Ben")
	if err != nil {
		t.Fatal(err)
	}
	ended := func(why string) {
		t.Helper()
		if _, err := o.Session(t.Context(), session, false, ""); !errors.Is(err, identity.ErrStaffSessionEnded) {
			t.Errorf("%s: the session goes on: %v", why, err)
		}
	}
	o.Write(t, `UPDATE staff SET suspended_at = $2, suspended_by = $3 WHERE id = $1`, o.IDs["Ben"], registries.Epoch, o.IDs["Awa"])
	ended("suspended")
	_, err = o.SignInAs(t, "Ben")
	refusedBy(t, err, "staff.suspended", "", "Ben")
	err = pgx.BeginFunc(t.Context(), o.Pool, func(tx pgx.Tx) error {
		_, err := ben.Still(t.Context(), tx, identity.MayApprove, "")
		return err
	})
	refusedBy(t, err, "staff.suspended", "", "Ben")
	o.Write(t, `UPDATE staff SET suspended_at = NULL, suspended_by = NULL WHERE id = $1`, o.IDs["Ben"])
	if _, err := o.Session(t.Context(), session, false, ""); err != nil {
		t.Errorf("after the suspension was lifted: %v", err)
	}
	o.Write(t, `UPDATE staff_passkeys SET removed_at = $2 WHERE staff_id = $1`, o.IDs["Ben"], registries.Epoch)
	ended("passkeys removed")
	_, err = o.SignInAs(t, "Ben")
	refusedBy(t, err, "staff.passkey_refused", "")

	o.Write(t, `UPDATE staff_passkeys SET host = 'pay.example' WHERE staff_id = $1`, o.IDs["Chloé"])
	_, err = o.SignInAs(t, "Chloé")
	refusedBy(t, err, "staff.passkey_refused", "")
}

// Whoever writes to Postgres makes a session, a passkey, a role or a challenge. It opens nothing.
func TestForgedSignInsOfStaff(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "", []identity.Role{identity.RoleSupport}, "Awa", "Ben")
	session, err := o.SignInAs(t, "Awa")
	if err != nil {
		t.Fatal(err)
	}
	person := func() (identity.Acting, error) { return o.Session(t.Context(), session, true, "") }
	o.Exec(t, `INSERT INTO staff_roles (staff_id, role, granted_at) VALUES ($1, 'lead', now())`, o.IDs["Awa"])
	if a, err := person(); err != nil || a.May(identity.MayApprove, "") == nil {
		t.Errorf("an inserted role allows an approval: %+v, %v", a.Person.Roles, err)
	}
	// The session of Awa becomes Ben's.
	o.Exec(t, `UPDATE staff_sessions SET staff_id = $1`, o.IDs["Ben"])
	if _, err := person(); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("an edited session: %v", err)
	}
	o.Exec(t, `UPDATE staff_sessions SET staff_id = $1, passkey_id = (SELECT id FROM staff_passkeys WHERE staff_id = $2 LIMIT 1)`, o.IDs["Awa"], o.IDs["Ben"])
	if _, err := person(); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("a session with another passkey: %v", err)
	}
	mine := secret.Mint("")
	sum := sha256.Sum256([]byte(mine.Reveal()))
	o.Exec(t, `INSERT INTO staff_sessions SELECT $1, staff_id, passkey_id, begun_at, used_at, mac FROM staff_sessions`, sum[:])
	if _, err := o.Session(t.Context(), mine, true, ""); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("a copied session: %v", err)
	}
	// A passkey of the thief's becomes one of Ben's.
	o.Exec(t, `UPDATE staff_passkeys SET staff_id = $1 WHERE staff_id = $2`, o.IDs["Ben"], o.IDs["Awa"])
	_, err = o.SignInAs(t, "Awa")
	refusedBy(t, err, "staff.passkey_refused", "")
}

// A decision is signed by the person's passkey: over what the page has shown, once, in this session, with one of two
// passkeys that approve by then.
func TestDecisionsBearThePasskey(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "impots", []identity.Role{identity.RoleApprover}, "Awa", "Ben")
	awa, ben := o.Acting(t, "Awa"), o.Acting(t, "Ben")
	x := office.Statement("case_x#1")
	_, err := o.Prove(t, awa, x)
	refusedBy(t, err, "decision.passkey_needed", "")

	signed := o.Signs(t, awa, "Awa", x)
	if !signed.Proven() || signed.SignedAt() != registries.Epoch {
		t.Errorf("signed at %s", signed.SignedAt())
	}
	_, err = o.Prove(t, signed, office.Statement("case_y#1"))
	refusedBy(t, err, "record.changed", "")
	alone := x
	alone.Alone = true
	_, err = o.Prove(t, signed, alone)
	refusedBy(t, err, "record.changed", "")
	rejected := x
	rejected.Verdict = "rejected"
	_, err = o.Prove(t, signed, rejected)
	refusedBy(t, err, "record.changed", "")
	id, err := o.Prove(t, signed, x)
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	_, err = o.Prove(t, signed, x)
	refusedBy(t, err, "decision.challenge_over", "")

	// The answer of one session in another one, of the same person and of another one.
	options, err := o.Challenge(t.Context(), awa, office.Statement("case_z#1"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := o.Devices["Awa"][0].Answer(options)
	if err != nil {
		t.Fatal(err)
	}
	for who, a := range map[string]identity.Acting{"Ben": ben, "Awa elsewhere": o.Acting(t, "Awa")} {
		if _, err := o.Answered(t.Context(), a, answer); err == nil {
			t.Errorf("%s uses a challenge of another session", who)
		} else {
			refusedBy(t, err, "decision.challenge_over", "")
		}
	}
	// Ben's passkey answers Awa's challenge.
	if answer, err = o.Devices["Ben"][0].Answer(options); err != nil {
		t.Fatal(err)
	}
	foreign, err := o.Answered(t.Context(), awa, answer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Prove(t, foreign, office.Statement("case_z#1"))
	refusedBy(t, err, "decision.not_signed", "")

	late := o.Signs(t, awa, "Awa", office.Statement("case_l#1"))
	o.MoveTo(registries.Epoch.Add(passkeys.ChallengeLifetime))
	_, err = o.Prove(t, late, office.Statement("case_l#1"))
	refusedBy(t, err, "decision.challenge_over", "")

	// Suspended between the press and the transaction.
	pressed := o.Signs(t, ben, "Ben", office.Statement("case_s#1"))
	o.Write(t, `UPDATE staff SET suspended_at = $2, suspended_by = $3 WHERE id = $1`, o.IDs["Ben"], registries.Epoch, o.IDs["Awa"])
	_, err = o.Prove(t, pressed, office.Statement("case_s#1"))
	refusedBy(t, err, "staff.suspended", "", "Ben")

	// With fewer than two passkeys that approve, a person approves nothing.
	o.Write(t, `UPDATE staff_passkeys SET removed_at = $2 WHERE staff_id = $1 AND name = 'Clé 2'`, o.IDs["Awa"], registries.Epoch)
	again, err := o.Session(t.Context(), o.SessionOf(t, "Awa"), true, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Challenge(t.Context(), again, x)
	refusedBy(t, err, "decision.two_passkeys", "", "number=1")
	o.GivePasskey(t, "Awa", "Clé 3", registries.Epoch.Add(24*time.Hour))
	if again, err = o.Session(t.Context(), o.SessionOf(t, "Awa"), true, ""); err != nil {
		t.Fatal(err)
	}
	_, err = o.Challenge(t.Context(), again, x)
	refusedBy(t, err, "decision.not_yet", "", "from=")
}

// Stored proofs are verified by whoever acts on them. Each column that somebody edits is named.
func TestProofsHold(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "impots", []identity.Role{identity.RoleApprover}, "Awa", "Ben")
	x := office.Statement("case_x#1")
	id, err := o.Prove(t, o.Signs(t, o.Acting(t, "Awa"), "Awa", x), x)
	if err != nil {
		t.Fatal(err)
	}
	check := func(ctx context.Context) (faults []identity.ProofFault) {
		err := identity.VerifyProofs(ctx, o.Pool, o.Keys, identity.ProofFilter{Subject: "case_x"}, func(p identity.CheckedProof) error {
			if p.ID != id || p.Host != "staff.example" {
				t.Errorf("%+v", p)
			}
			faults = append(faults, p.Fault)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return faults
	}
	if faults := check(t.Context()); !slices.Equal(faults, []identity.ProofFault{""}) {
		t.Fatalf("%q", faults)
	}
	var columns []string
	if err := o.Pool.QueryRow(t.Context(), `SELECT array_agg(column_name::text ORDER BY column_name) FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'decisions'`).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	harmless := []string{"id", "agency_id"} // who refers to it compares the statement; the group of the person is in the statement
	for _, column := range columns {
		if slices.Contains(harmless, column) {
			continue
		}
		value := `set_byte(` + column + `, length(` + column + `) - 1, get_byte(` + column + `, length(` + column + `) - 1) # 1)`
		switch column {
		case "at":
			value = `at + interval '1 millisecond'`
		case "kind", "verdict":
			value = column + ` || 'x'`
		case "subject":
			value = `'case_x#2'`
		case "staff_id":
			value = `'` + o.IDs["Ben"] + `'`
		case "passkey_id":
			value = `(SELECT id FROM staff_passkeys WHERE staff_id <> decisions.staff_id LIMIT 1)`
		}
		o.Exec(t, `CREATE TABLE kept AS TABLE decisions; UPDATE decisions SET `+column+` = `+value)
		for _, fault := range check(t.Context()) {
			if fault == "" {
				t.Errorf("the edited column %s is believed", column)
			}
		}
		o.Exec(t, `DELETE FROM decisions; INSERT INTO decisions TABLE kept; DROP TABLE kept`)
	}
	// A passkey that somebody has inserted signs for nobody.
	o.Exec(t, `UPDATE staff_passkeys SET approves_from = approves_from - interval '1 day'`)
	if faults := check(t.Context()); !slices.Equal(faults, []identity.ProofFault{identity.ProofOtherPerson}) {
		t.Errorf("an edited passkey: %q", faults)
	}
	if f, err := registry.LookAtRows(t.Context(), o.Pool, o.Keys); err != nil || len(f.Rows) != 4 || !strings.HasPrefix(f.Rows[0].Table, "staff_passkeys") {
		t.Errorf("%+v, %v", f.Rows, err)
	}
}

// The proof of an approval is stored for ever. Whoever can write to Postgres made a challenge of a sign-in of it, and the
// stored answer signed the approver in.
func TestStoredProofSignsNobodyIn(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "", []identity.Role{identity.RoleLead}, "Awa", "Ben")
	x := office.Statement("case_x#1")
	if _, err := o.Prove(t, o.Signs(t, o.Acting(t, "Awa"), "Awa", x), x); err != nil {
		t.Fatal(err)
	}
	var challenge, client, authenticator, signature, credential []byte
	if err := o.Pool.QueryRow(t.Context(), `SELECT d.challenge, d.client_data, d.authenticator_data, d.assertion, k.credential_id FROM decisions d JOIN staff_passkeys k ON k.id = d.passkey_id`).Scan(
		&challenge, &client, &authenticator, &signature, &credential); err != nil {
		t.Fatal(err)
	}
	if _, err := o.BeginSignIn(t.Context(), o.Browser); err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	o.Exec(t, `UPDATE passkey_challenges SET session = jsonb_set(session, '{challenge}', to_jsonb($1::text))`, text(challenge))
	o.Exec(t, `UPDATE staff_passkeys SET sign_count = 0`)
	owner := uuid.MustParse(o.IDs["Awa"])
	answer, err := json.Marshal(map[string]any{"id": text(credential), "rawId": text(credential), "type": "public-key", "response": map[string]string{
		"clientDataJSON": text(client), "authenticatorData": text(authenticator), "signature": text(signature), "userHandle": text(owner[:]),
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.SignIn(t.Context(), o.Browser, answer, "/work", "203.0.113.7")
	refusedBy(t, err, "staff.passkey_refused", "")
}

// A suspension that is lifted brings no session back, which somebody may have copied.
func TestSuspensionEndsSessions(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	session := o.SessionOf(t, "Awa")
	by := identity.By{Actor: registries.Actor}
	if _, err := identity.SuspendStaff(t.Context(), o.Pool, o.Keys, by, "Awa", "a device is lost", o.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LiftSuspension(t.Context(), o.Pool, o.Keys, by, "Awa", "it was found", o.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Session(t.Context(), session, true, ""); !errors.Is(err, identity.ErrStaffSessionEnded) {
		t.Errorf("the session is back: %v", err)
	}
	// Sessions from the future, which somebody else has made, do not end the one that has just begun.
	o.Exec(t, `INSERT INTO staff_sessions SELECT sha256(n::text::bytea), $1, (SELECT id FROM staff_passkeys LIMIT 1), $2, $2, 'x' FROM generate_series(1, 3) n`, o.IDs["Awa"], o.Now().Add(time.Hour))
	if _, err := o.Session(t.Context(), o.SessionOf(t, "Awa"), true, ""); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}
