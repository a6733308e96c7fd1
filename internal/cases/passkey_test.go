package cases_test

import (
	"encoding/hex"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/office"
	"quittance/test/registries"
)

// page is a staff page for tests: people of an agency sign in and decide on cases.
type page struct {
	office.Office
	*cases.Store
	signer *secret.Keys // what the pages sign with
}

func newPage(t *testing.T) page {
	t.Helper()
	o := office.Open(t, "impots", []identity.Role{identity.RoleAccountant, identity.RoleApprover}, "Awa", "Ben")
	signer := o.Keys.Subset("office", []secret.Use{
		{Purpose: secret.PurposeSign, Label: secret.LabelOfficeDecisions},
		{Purpose: secret.PurposeVerify, Label: secret.LabelOfficeDecisions},
		{Purpose: secret.PurposeVerify, Label: secret.LabelDecisions},
	})
	return page{o, cases.NewStore(o.Pool).Verifying(o.Keys), signer}
}

// by is a person who is signed in.
func (p page) by(t *testing.T, name string) cases.By {
	t.Helper()
	a := p.Acting(t, name)
	return cases.By{Staff: a.Person, Origin: "203.0.113.7", Signer: p.signer, Acting: a}
}

// shown is the digest that the page has.
func (p page) shown(t *testing.T, id string) string {
	t.Helper()
	d, err := p.Show(t.Context(), nil, id, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d.Shown(len(d.Proposals))
}

// signed has the person's passkey sign the approval of what the page shows.
func (p page) signed(t *testing.T, name, id string) cases.By {
	t.Helper()
	by := p.by(t, name)
	s, err := p.Statement(t.Context(), by, id, 0, p.shown(t, id), p.Now())
	if err != nil {
		t.Fatal(err)
	}
	by.Acting = p.Signs(t, by.Acting, name, s)
	return by
}

// propose has Awa propose to honour a late payment.
func (p page) propose(t *testing.T, id string, amount int64) {
	t.Helper()
	if err := p.Apply(t.Context(), []cases.Case{late(id, amount)}, nil); err != nil {
		t.Fatal(err)
	}
	d, err := p.Propose(t.Context(), p.by(t, "Awa"), cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "the citizen paid"}, p.Now())
	if err != nil || d.Proposals[0].State != cases.ProposalOpen {
		t.Fatalf("%+v, %v", d.Proposals, err)
	}
}

// agreed is why the last proposal would not be carried out.
func (p page) agreed(t *testing.T, id string) checkout.Code {
	t.Helper()
	a, err := p.Agreement(t.Context(), id, 1, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a.Check(decisions.Verify(p.Keys))
}

// Two people decide on a page. The second one's passkey signs what the page has shown; whoever carries it out verifies
// that. With a key of the command line nobody of the group approves any more.
func TestApprovalsBearAPasskey(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.propose(t, "case_1", 9000)
	_, err := p.Approve(t.Context(), p.by(t, "Ben"), "case_1", 0, p.Now())
	refusedBy(t, err, "decision.passkey_needed")
	ben := p.by(t, "Ben")
	byKey := cases.By{Staff: ben.Staff, Origin: "desk", Signer: p.Keys}
	_, err = p.Approve(t.Context(), byKey, "case_1", 0, p.Now())
	refusedBy(t, err, "staff.keys_propose")
	_, err = p.Statement(t.Context(), p.by(t, "Awa"), "case_1", 0, p.shown(t, "case_1"), p.Now())
	refusedBy(t, err, "case.second_person")
	_, err = p.Statement(t.Context(), ben, "case_1", 0, "00", p.Now())
	refusedBy(t, err, "record.changed")

	signed := p.signed(t, "Ben", "case_1")
	p.MoveTo(p.Now().Add(time.Minute))
	d, err := p.Approve(t.Context(), signed, "case_1", 0, p.Now())
	if err != nil || d.Proposals[0].State != cases.ProposalApproved || d.Proposals[0].DecidedAt != registries.Epoch {
		t.Fatalf("%+v, %v", d.Proposals, err)
	}
	if code := p.agreed(t, "case_1"); code != checkout.CodeOK {
		t.Errorf("refused with %s", code)
	}
	for name, attack := range map[string]string{
		"without the proof":         `UPDATE case_proposals SET decided_proof = NULL`,
		"without the row":           `UPDATE case_proposals SET decided_proof = NULL; DELETE FROM decisions`,
		"another signature":         `UPDATE decisions SET assertion = set_byte(assertion, 9, get_byte(assertion, 9) # 1)`,
		"a passkey of Awa":          `UPDATE decisions SET passkey_id = (SELECT id FROM staff_passkeys WHERE staff_id <> decisions.staff_id LIMIT 1)`,
		"a key that was inserted":   `UPDATE staff_passkeys SET spki_hash = sha256('x') WHERE id = (SELECT passkey_id FROM decisions)`,
		"approved by hand as Awa's": `UPDATE case_proposals SET decided_by = proposed_by, decider = proposer`,
	} {
		t.Run(name, func(t *testing.T) {
			p.Exec(t, `CREATE TABLE kept_p AS TABLE case_proposals; CREATE TABLE kept_d AS TABLE decisions; CREATE TABLE kept_k AS TABLE staff_passkeys`)
			p.Exec(t, attack)
			if code := p.agreed(t, "case_1"); code == checkout.CodeOK {
				t.Error("it is carried out")
			}
			p.Exec(t, `DELETE FROM case_proposals; DELETE FROM decisions; UPDATE staff_passkeys k SET spki_hash = o.spki_hash FROM kept_k o WHERE o.id = k.id;
				INSERT INTO decisions TABLE kept_d; INSERT INTO case_proposals TABLE kept_p; DROP TABLE kept_p, kept_d, kept_k`)
		})
	}
	if code := p.agreed(t, "case_1"); code != checkout.CodeOK {
		t.Errorf("refused with %s", code)
	}
}

// The page changes between the look and the press, or between the signature and the transaction: nobody approves what
// nobody has seen.
func TestAPageThatChanged(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.propose(t, "case_1", 9000)
	signed := p.signed(t, "Ben", "case_1")
	changed := late("case_1", 9000)
	changed.Sequence, changed.Amount = 5, 8000
	if err := p.Apply(t.Context(), []cases.Case{changed}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Approve(t.Context(), signed, "case_1", 0, p.Now()); err == nil {
		t.Error("Ben approved another amount than the page showed")
	}
}

// Below the agency's limit one person decides, with one signature of the passkey; above it does not.
func TestOnePersonBelowTheLimit(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.propose(t, "case_small", 4000)
	if _, err := p.Approve(t.Context(), p.signed(t, "Awa", "case_small"), "case_small", 0, p.Now()); err != nil {
		t.Fatal(err)
	}
	if code := p.agreed(t, "case_small"); code != checkout.CodeOK {
		t.Errorf("refused with %s", code)
	}
}

// Whoever takes the pages can sign with their key. Without a passkey it approves nothing, also for a group whose
// people have none.
func TestStolenPagesApproveNothing(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.Write(t, `DELETE FROM staff_passkeys`)
	one := cases.By{Staff: p.member(t, "Awa"), Origin: "desk", Signer: p.signer}
	two := cases.By{Staff: p.member(t, "Ben"), Origin: "desk", Signer: p.signer}
	if err := p.Apply(t.Context(), []cases.Case{late("case_1", 9000)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Propose(t.Context(), one, cases.Request{CaseID: "case_1", Resolution: checkout.ResolutionHonour, Reason: "r"}, p.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Approve(t.Context(), two, "case_1", 0, p.Now()); err != nil {
		t.Fatal(err)
	}
	if code := p.agreed(t, "case_1"); code != checkout.CodeNotProven {
		t.Errorf("carried out: %s", code)
	}
}

// member reads a person.
func (p page) member(t *testing.T, name string) identity.Staff {
	t.Helper()
	list, err := identity.ListStaff(t.Context(), p.Pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.Name == name {
			return m.Staff
		}
	}
	t.Fatal("nobody is called " + name)
	return identity.Staff{}
}

// Whoever takes the pages has one press of a person sign an approval by this person alone, of any sum. Whoever carries it
// out reads the agency's limit again.
func TestOnePressAboveTheLimit(t *testing.T) {
	t.Parallel()
	for amount, want := range map[int64]checkout.Code{4000: checkout.CodeOK, 9000: checkout.CodeSamePerson} {
		p := newPage(t)
		p.propose(t, "case_1", amount)
		s := identity.Statement{Kind: checkout.DecisionOfCase, Subject: checkout.Subject("case_1", 1), Digest: p.shown(t, "case_1"), Verdict: string(casework.DecisionApproved), AgencyID: registries.AgencyA, Alone: true}
		a := p.Signs(t, p.Acting(t, "Awa"), "Awa", s)
		proof, err := p.Prove(t, a, s)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := hex.DecodeString(s.Digest)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := decisions.Sign(p.signer, casework.Agreement{Kind: s.Kind, Subject: s.Subject, Digest: digest}, casework.DecisionApproved,
			casework.Signed{Person: a.Person.ID, Name: a.Person.Name, Group: a.Person.AgencyID, At: a.SignedAt(), Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		p.Exec(t, `UPDATE case_proposals SET state = 'approved', decided_by = $1, decider = 'Awa', decided_at = $2, decided_signature = $3, alone = true, decided_proof = $4`,
			a.Person.ID, a.SignedAt(), signed.Signature, proof)
		if code := p.agreed(t, "case_1"); code != want {
			t.Errorf("%d: %s, want %s", amount, code, want)
		}
	}
}
