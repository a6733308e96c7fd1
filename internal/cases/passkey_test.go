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

// honour is the proposal to honour a late payment.
func honour(id, reason string) cases.Request {
	return cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: reason}
}

// late makes the case of a late payment.
func (p page) late(t *testing.T, id string, amount int64) {
	t.Helper()
	if err := p.Apply(t.Context(), []cases.Case{late(id, amount)}, nil); err != nil {
		t.Fatal(err)
	}
}

// presses has the person's passkey sign a proposal.
func (p page) presses(t *testing.T, name string, req cases.Request, number int) cases.By {
	t.Helper()
	by := p.by(t, name)
	s, err := p.ProposalStatement(t.Context(), by, req, number, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	by.Acting = p.Signs(t, by.Acting, name, s)
	return by
}

// propose has Awa propose to honour a late payment.
func (p page) propose(t *testing.T, id string, amount int64) {
	t.Helper()
	p.late(t, id, amount)
	req := honour(id, "the citizen paid")
	d, err := p.Propose(t.Context(), p.presses(t, "Awa", req, 1), req, p.Now())
	if err != nil || d.Proposals[0].State != cases.ProposalOpen {
		t.Fatalf("%+v, %v", d.Proposals, err)
	}
}

// forge stores a proposal as whoever has taken the pages does: signed with their key in a person's name, without a press.
func (p page) forge(t *testing.T, name, id string) {
	t.Helper()
	if _, err := p.Propose(t.Context(), cases.By{Staff: p.member(t, name), Origin: "desk", Signer: p.signer}, honour(id, "the citizen paid"), p.Now()); err != nil {
		t.Fatal(err)
	}
}

// noted is why the sink would make no event of the proposal.
func (p page) noted(t *testing.T, id string) checkout.Code {
	t.Helper()
	a, err := p.Agreement(t.Context(), id, 1, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a.CheckProposal(decisions.Verify(p.Keys))
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
		"without the proposer's":    `UPDATE case_proposals SET proposed_proof = NULL`,
		"without the rows":          `UPDATE case_proposals SET decided_proof = NULL, proposed_proof = NULL; DELETE FROM decisions`,
		"the proofs exchanged":      `UPDATE case_proposals SET decided_proof = proposed_proof, proposed_proof = decided_proof`,
		"another signature":         `UPDATE decisions SET assertion = set_byte(assertion, 9, get_byte(assertion, 9) # 1)`,
		"a passkey of Awa":          `UPDATE decisions SET passkey_id = (SELECT id FROM staff_passkeys WHERE staff_id <> decisions.staff_id LIMIT 1)`,
		"a key that was inserted":   `UPDATE staff_passkeys SET spki_hash = sha256('x') WHERE id = (SELECT passkey_id FROM decisions WHERE verdict = 'approved')`,
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

// Whoever takes the pages can sign with their key. Without a passkey it proposes and approves nothing, also for a group
// whose people have none.
func TestStolenPagesApproveNothing(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.Write(t, `DELETE FROM staff_passkeys`)
	two := cases.By{Staff: p.member(t, "Ben"), Origin: "desk", Signer: p.signer}
	p.late(t, "case_1", 9000)
	p.forge(t, "Awa", "case_1")
	_, err := p.Approve(t.Context(), two, "case_1", 0, p.Now())
	refusedBy(t, err, "case.proposal_not_believed", "code=approval.not_proven")

	// A command has signed the proposal, the pages the approval.
	p.Exec(t, `DELETE FROM case_proposals`)
	byKey := cases.By{Staff: p.member(t, "Awa"), Origin: "desk", Signer: p.Keys}
	if _, err := p.Propose(t.Context(), byKey, honour("case_1", "r"), p.Now()); err != nil {
		t.Fatal(err)
	}
	if code := p.noted(t, "case_1"); code != checkout.CodeOK {
		t.Errorf("the proposal of a command is refused with %s", code)
	}
	if _, err := p.Approve(t.Context(), two, "case_1", 0, p.Now()); err != nil {
		t.Fatal(err)
	}
	if code := p.agreed(t, "case_1"); code != checkout.CodeNotProven {
		t.Errorf("carried out: %s", code)
	}
}

// Whoever took the pages proposed in Awa's name, and with one press of Ben had the approval of what two people decide. The
// proposal is believed neither when Ben approves, nor by the sink that makes its event, nor when it is carried out.
func TestOnePressDoesNotDecideForTwo(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.late(t, "case_1", 9000)
	p.forge(t, "Awa", "case_1")
	if code := p.noted(t, "case_1"); code != checkout.CodeNotProven {
		t.Errorf("the proposal becomes an event: %s", code)
	}
	_, err := p.Approve(t.Context(), p.signed(t, "Ben", "case_1"), "case_1", 0, p.Now())
	refusedBy(t, err, "case.proposal_not_believed", "code=approval.not_proven")
	// The pages ask nobody, and write the approval that Ben's passkey has signed.
	s := identity.Statement{Kind: checkout.DecisionOfCase, Subject: checkout.Subject("case_1", 1), Digest: p.shown(t, "case_1"), Verdict: string(casework.DecisionApproved), AgencyID: registries.AgencyA}
	p.approveBySQL(t, "Ben", s)
	if code := p.agreed(t, "case_1"); code != checkout.CodeNotProven {
		t.Errorf("carried out: %s", code)
	}
}

// What a passkey has signed is one proposal: of this case, number and content, and of a proposal. A proof that serves
// another one would be a press that nobody has made.
func TestAPressIsOfOneProposal(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.late(t, "case_1", 9000)
	p.late(t, "case_2", 9000)
	req := honour("case_1", "the citizen paid")
	_, err := p.Propose(t.Context(), p.by(t, "Awa"), req, p.Now())
	refusedBy(t, err, "decision.passkey_needed")
	_, err = p.ProposalStatement(t.Context(), p.by(t, "Awa"), req, 2, p.Now())
	refusedBy(t, err, "case.changed")
	_, err = p.ProposalStatement(t.Context(), p.by(t, "Awa"), honour("case_1", ""), 1, p.Now())
	refusedBy(t, err, "case.reason_malformed")
	p.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Chloe")
	_, err = p.ProposalStatement(t.Context(), p.by(t, "Chloe"), req, 1, p.Now())
	refusedBy(t, err, "staff.not_permitted")

	for name, other := range map[string]cases.Request{
		"another case":       honour("case_2", "the citizen paid"),
		"another reason":     honour("case_1", "the citizen asked"),
		"another resolution": {CaseID: "case_1", Resolution: checkout.ResolutionRefund, Reference: "wire 7", Reason: "the citizen paid"},
		"another reference":  {CaseID: "case_1", Resolution: checkout.ResolutionHonour, Reference: "wire 7", Reason: "the citizen paid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Propose(t.Context(), p.presses(t, "Awa", req, 1), other, p.Now())
			refusedBy(t, err, "record.changed")
		})
	}
	t.Run("another amount", func(t *testing.T) {
		by, changed := p.presses(t, "Awa", req, 1), late("case_1", 9000)
		changed.Sequence, changed.Amount = 5, 8000
		if err := p.Apply(t.Context(), []cases.Case{changed}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := p.Propose(t.Context(), by, req, p.Now())
		refusedBy(t, err, "record.changed")
	})
	t.Run("another number", func(t *testing.T) {
		by := p.presses(t, "Awa", req, 1)
		p.reject(t, "Ben", req)
		_, err := p.Propose(t.Context(), by, req, p.Now())
		refusedBy(t, err, "record.changed")
	})
	t.Run("an approval", func(t *testing.T) {
		by := p.by(t, "Awa")
		s, err := p.ProposalStatement(t.Context(), by, req, 2, p.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.Verdict = string(casework.DecisionApproved)
		by.Acting = p.Signs(t, by.Acting, "Awa", s)
		_, err = p.Propose(t.Context(), by, req, p.Now())
		refusedBy(t, err, "record.changed")
	})
	if d, err := p.Show(t.Context(), nil, "case_1", p.Now()); err != nil || len(d.Proposals) != 1 {
		t.Errorf("%+v, %v", d.Proposals, err)
	}
}

// reject has a person propose and withdraw.
func (p page) reject(t *testing.T, name string, req cases.Request) {
	t.Helper()
	if _, err := p.Propose(t.Context(), p.presses(t, name, req, 1), req, p.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reject(t.Context(), p.by(t, name), req.CaseID, "a mistake", p.Now()); err != nil {
		t.Fatal(err)
	}
}

// Whoever writes Postgres has the proofs of one decision stand for those of another one. Nobody is believed by them. The
// time of the proposal is that which the passkey has signed, and both proofs are in the audit table.
func TestProofsOfOtherProposals(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.propose(t, "case_1", 9000)
	press := honour("case_2", "the citizen paid")
	p.late(t, "case_2", 9000)
	by := p.presses(t, "Awa", press, 1)
	p.MoveTo(p.Now().Add(time.Minute))
	d, err := p.Propose(t.Context(), by, press, p.Now())
	if err != nil || d.Proposals[0].ProposedAt != registries.Epoch {
		t.Fatalf("%+v, %v", d.Proposals, err)
	}
	if _, err := p.Approve(t.Context(), p.signed(t, "Ben", "case_2"), "case_2", 0, p.Now()); err != nil {
		t.Fatal(err)
	}
	if code := p.agreed(t, "case_2"); code != checkout.CodeOK {
		t.Fatalf("refused with %s", code)
	}
	for name, attack := range map[string]string{
		"of the proposal of another case": `UPDATE case_proposals SET proposed_proof = (SELECT proposed_proof FROM case_proposals WHERE case_id = 'case_1') WHERE case_id = 'case_2'`,
		"of the approval":                 `UPDATE case_proposals SET proposed_proof = decided_proof WHERE case_id = 'case_2'`,
	} {
		t.Run(name, func(t *testing.T) {
			p.Exec(t, `CREATE TABLE kept AS TABLE case_proposals`)
			p.Exec(t, attack)
			if one, both := p.noted(t, "case_2"), p.agreed(t, "case_2"); one != checkout.CodeNotProven || both != checkout.CodeNotProven {
				t.Errorf("the proposal counts (%s), or both steps (%s)", one, both)
			}
			p.Exec(t, `UPDATE case_proposals p SET proposed_proof = k.proposed_proof FROM kept k WHERE p.case_id = k.case_id; DROP TABLE kept`)
		})
	}
	var recorded int
	if err := p.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit a JOIN decisions d ON d.id = (a.detail ->> 'proof')::uuid AND a.action = CASE d.verdict WHEN 'proposed' THEN 'case.propose' ELSE 'case.approve' END`).Scan(&recorded); err != nil || recorded != 3 {
		t.Errorf("%d proofs are in the audit table, %v", recorded, err)
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
		p.approveBySQL(t, "Awa", s)
		if code := p.agreed(t, "case_1"); code != want {
			t.Errorf("%d: %s, want %s", amount, code, want)
		}
	}
}

// approveBySQL has the person's passkey sign an approval, and writes it past the noun, signed with the key of the pages.
func (p page) approveBySQL(t *testing.T, name string, s identity.Statement) {
	t.Helper()
	a := p.Signs(t, p.Acting(t, name), name, s)
	proof, err := p.Prove(t, a, s)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := hex.DecodeString(s.Digest)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := decisions.Sign(p.signer, casework.Agreement{Kind: s.Kind, Subject: s.Subject, Digest: digest}, casework.DecisionApproved,
		casework.Signed{Person: a.Person.ID, Name: a.Person.Name, Group: a.Person.AgencyID, At: a.SignedAt(), Alone: s.Alone})
	if err != nil {
		t.Fatal(err)
	}
	p.Exec(t, `UPDATE case_proposals SET state = 'approved', decided_by = $1, decider = $2, decided_at = $3, decided_signature = $4, alone = $5, decided_proof = $6`,
		a.Person.ID, name, a.SignedAt(), signed.Signature, s.Alone, proof)
}
