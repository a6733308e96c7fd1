package cases_test

import (
	"errors"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/test/registries"
)

// refusedWith waits until a proposal is refused with a code. The session must be as it was, no event says that it was
// approved, and the refusal is in the audit table.
func (w *world) refusedWith(t *testing.T, session, id string, number int, want checkout.Code) {
	t.Helper()
	w.within(t, "the refusal of "+id, func() bool {
		d := w.show(t, id)
		return len(d.Proposals) >= number && d.Proposals[number-1].State == cases.ProposalRefused
	})
	if p := w.show(t, id).Proposals[number-1]; p.Refusal != string(want) {
		t.Errorf("refused with %s, want %s", p.Refusal, want)
	}
	if s := w.Session(session); s.Paid() || !s.Cases[0].Open() {
		t.Errorf("the session is %+v", s)
	}
	var rows int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'case.refused' AND subject = $1 AND detail ->> 'refusal' = $2 AND actor = 'cases'`, id, string(want)).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows of the refusal, %v", rows, err)
	}
}

// proposed returns a late payment whose honour is proposed by one and approved by another. Nothing is carried out, as
// the sink does not run.
func (w *world) proposed(t *testing.T, n int, approve bool) (session, id string) {
	t.Helper()
	stop := w.runs(t, w)
	session, id = w.late(t, n)
	w.within(t, "the case", func() bool { return w.show(t, id).ID != "" })
	stop()
	if _, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now()); err != nil {
		t.Fatal(err)
	}
	if approve {
		if _, err := w.store.Approve(t.Context(), w.two, id, 0, w.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return session, id
}

// Whoever could write to Postgres marked a late payment as agreed on, and the service completed the session: a debt was
// paid with money that nobody had looked at. Each of these rows is refused now, and nothing is decided.
func TestForgedDecisions(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO case_proposals (case_id, number, state, session_id, resolution, reason, proposed_by, proposer, proposed_at, decided_by, decider, decided_at)
		SELECT $1, 1, 'approved', $2, 'honour', 'r', $3, 'One', now(), $4, 'Two', now()`
	for name, attack := range map[string]struct {
		want     checkout.Code
		approved bool
		do       func(t *testing.T, w *world, session, id string)
	}{
		"an approved proposal is inserted": {checkout.CodeUnsigned, false, func(t *testing.T, w *world, session, id string) {
			w.Exec(t, `DELETE FROM case_proposals`)
			w.Exec(t, insert, id, session, w.one.Staff.ID, w.two.Staff.ID)
		}},
		"a proposal is approved by hand": {checkout.CodeUnsigned, false, func(t *testing.T, w *world, _, _ string) {
			w.Exec(t, `UPDATE case_proposals SET state = 'approved', decided_by = $1, decider = 'Two', decided_at = now(), noted = 2`, w.two.Staff.ID)
		}},
		"the proposal's own signature stands for the approval": {checkout.CodeUnsigned, false, func(t *testing.T, w *world, _, _ string) {
			w.Exec(t, `UPDATE case_proposals SET state = 'approved', decided_by = proposed_by, decider = proposer, decided_at = proposed_at, decided_signature = proposed_signature, alone = true`)
		}},
		"the resolution is changed after the approval": {checkout.CodeOtherContent, true, func(t *testing.T, w *world, _, _ string) {
			w.Exec(t, `UPDATE case_proposals SET resolution = 'refund', reference = 'my account'`)
		}},
		"the content and its digest are changed": {checkout.CodeUnsigned, true, func(t *testing.T, w *world, _, id string) {
			w.Exec(t, `UPDATE case_proposals SET reason = 'x'`)
			a, err := w.store.Agreement(t.Context(), id, 1, w.Now())
			if err != nil {
				t.Fatal(err)
			}
			w.Exec(t, `UPDATE case_proposals SET digest = $1`, a.Terms.Digest)
		}},
		"the amount of the case is changed": {checkout.CodeOtherContent, true, func(t *testing.T, w *world, _, id string) {
			w.Exec(t, `UPDATE cases SET amount = 1, sequence = 1000 WHERE id = $1`, id)
		}},
		"the proposer is made the approver's other name": {checkout.CodeUnsigned, true, func(t *testing.T, w *world, _, _ string) {
			w.Exec(t, `UPDATE case_proposals SET decider = proposer`)
		}},
		"the pages propose in a person's name": {checkout.CodeNotProven, false, func(t *testing.T, w *world, _, id string) {
			w.Exec(t, `DELETE FROM case_proposals`)
			pages := w.one
			pages.Signer = w.House.Keys.Subset("office", []secret.Use{{Purpose: secret.PurposeSign, Label: secret.LabelOfficeDecisions}})
			if _, err := w.store.Propose(t.Context(), pages, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now()); err != nil {
				t.Fatal(err)
			}
		}},
		"the approver was revoked before": {checkout.CodeNotInForce, true, func(t *testing.T, w *world, _, _ string) {
			w.Write(t, `UPDATE staff SET revoked_at = created_at WHERE name = 'Two'`)
		}},
		"the approval is of another agency's person": {checkout.CodeUnsigned, true, func(t *testing.T, w *world, _, _ string) {
			w.Write(t, `UPDATE staff SET agency_id = NULL WHERE name = 'Two'`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			session, id := w.proposed(t, 1, attack.approved)
			attack.do(t, w, session, id)
			w.runs(t, w)
			w.refusedWith(t, session, id, 1, attack.want)
		})
	}
}

// An approval is copied to the case of another payment, and to another proposal of the same case.
func TestCopiedApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, first := w.proposed(t, 1, true)
	other, second := w.proposed(t, 2, false)
	w.Exec(t, `UPDATE case_proposals p SET state = 'approved', digest = o.digest, proposed_at = o.proposed_at, proposed_signature = o.proposed_signature, decided_by = o.decided_by, decider = o.decider,
		decided_at = o.decided_at, decided_signature = o.decided_signature FROM case_proposals o WHERE p.case_id = $1 AND o.case_id = $2`, second, first)
	stop := w.runs(t, w)
	w.refusedWith(t, other, second, 1, checkout.CodeOtherContent)
	w.within(t, "the honest decision", func() bool { return w.show(t, first).Resolution == checkout.ResolutionHonour })
	stop()

	third, id := w.proposed(t, 3, true)
	w.Exec(t, `UPDATE case_proposals SET number = 2 WHERE case_id = $1`, id)
	w.Exec(t, `INSERT INTO case_proposals (case_id, number, state, session_id, resolution, reason, proposed_by, proposer, proposed_at, noted) SELECT case_id, 1, 'rejected', session_id, resolution, reason, proposed_by, proposer, proposed_at, 2 FROM case_proposals WHERE case_id = $1`, id)
	w.runs(t, w)
	w.refusedWith(t, third, id, 2, checkout.CodeOtherContent)
}

// One person has two members of staff, whose names differ in case and spaces only. An approval that comes after the life
// of its proposal, and one that is carried out late, are refused too.
func TestOnePersonTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session, id := w.proposed(t, 1, false)
	w.Write(t, `UPDATE staff SET name = 'ONE' WHERE name = 'Two'`)
	again := w.two
	again.Staff.Name = "ONE"
	if _, err := w.store.Approve(t.Context(), again, id, 0, w.Now()); err != nil {
		t.Fatal(err)
	}
	stop := w.runs(t, w)
	w.refusedWith(t, session, id, 1, checkout.CodeSamePerson)
	stop()

	w.Write(t, `UPDATE staff SET name = 'Two' WHERE name = 'ONE'`)
	late, second := w.proposed(t, 2, true)
	w.Lock()
	w.Time = w.Time.Add(8 * 24 * time.Hour)
	w.Unlock()
	w.runs(t, w)
	w.refusedWith(t, late, second, 1, checkout.CodeApprovalLapsed)
}

// Below the agency's limit one person is enough. The mark of it is signed too.
func TestOneIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 6000"))
	session, id := w.proposed(t, 1, false)
	w.runs(t, w)
	w.within(t, "the decision of one", func() bool { return w.show(t, id).Resolution == checkout.ResolutionHonour })
	if s := w.Session(session); !s.Paid() {
		t.Errorf("the session is %+v", s)
	}
}

// Whoever approves is told at once that a proposal was not signed; rejecting it and proposing again is the way back.
func TestApproveRefusesForgedProposal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, id := w.proposed(t, 1, false)
	w.Exec(t, `UPDATE case_proposals SET reference = 'my account'`)
	if _, err := w.store.Approve(t.Context(), w.two, id, 0, w.Now()); !refusedAs(err, "case.proposal_not_believed") {
		t.Errorf("a changed proposal: %v", err)
	}
	keyless := w.two
	keyless.Signer = nil
	if _, err := w.store.Approve(t.Context(), keyless, id, 0, w.Now()); !refusedAs(err, "decision.no_signing_key") {
		t.Errorf("without keys: %v", err)
	}
	role := w.two
	role.Signer = w.House.Keys.Subset("cases", nil)
	if _, err := w.store.Propose(t.Context(), role, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now()); !refusedAs(err, "case.proposal_waits") {
		t.Errorf("while a proposal waits: %v", err)
	}
	if _, err := w.store.Reject(t.Context(), w.two, id, "changed", w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Propose(t.Context(), role, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now()); !refusedAs(err, "decision.no_signing_key") {
		t.Errorf("with the keys of a role: %v", err)
	}
	w.runs(t, w)
	if _, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Approve(t.Context(), w.two, id, 2, w.Now()); err != nil {
		t.Fatal(err)
	}
	w.within(t, "the honest decision", func() bool { return w.show(t, id).Resolution == checkout.ResolutionHonour })
}

func refusedAs(err error, code string) bool {
	var refused *operation.Error
	return errors.As(err, &refused) && refused.Code == code
}
