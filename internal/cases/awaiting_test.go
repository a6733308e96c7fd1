package cases_test

import (
	"slices"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/test/registries"
)

// AwaitingApproval returns what can be approved, and MayApprove says of each person what Approve
// would: the proposer, a clerk who took the cash and another agency's staff may not.
func TestAwaitingApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clerk, jean := w.staff(t, "Clerk", "impots", "impots/c01"), w.staff(t, "Jean", "impots")
	op, second := w.staff(t, "Op", ""), w.staff(t, "Second", "")
	everybody := map[string]cases.By{"clerk": clerk, "jean": jean, "op": op, "second": second}
	cash := late("cash", 100)
	cash.Clerks = []string{"c01"}
	w.apply(t, cash, lost("lost"), late("plain", 100), late("nobody-proposed", 100), late("rejected", 100), late("done", 100))
	at := registries.Epoch
	propose := func(by cases.By, id string) {
		t.Helper()
		if _, err := w.Propose(t.Context(), by, refund(id), at); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Minute)
	}
	propose(jean, "cash")
	propose(op, "lost")
	propose(clerk, "plain")
	propose(jean, "rejected")
	propose(jean, "done")
	if _, err := w.Reject(t.Context(), clerk, "rejected", "r", at); err != nil {
		t.Fatal(err)
	}
	w.apply(t, closed(late("done", 100), checkout.ResolutionRefund, "r", "Jean"))
	found, err := w.AwaitingApproval(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, a := range found {
		got[a.CaseID] = []string{}
		for name, by := range everybody {
			may := a.MayApprove(by.Staff)
			if may {
				got[a.CaseID] = append(got[a.CaseID], name)
			}
		}
		slices.Sort(got[a.CaseID])
	}
	want := map[string][]string{"cash": {"op", "second"}, "lost": {"second"}, "plain": {"jean", "op", "second"}}
	for id, names := range want {
		if !slices.Equal(got[id], names) {
			t.Errorf("%s may be approved by %v, want %v", id, got[id], names)
		}
	}
	if len(found) != len(want) || found[0].CaseID != "cash" || found[0].Mode != "live" || found[0].Kind != checkout.CaseLatePayment || !found[0].ProposedAt.Equal(registries.Epoch) {
		t.Errorf("%+v", found)
	}
	for _, by := range []cases.By{jean, clerk} { // Approve agrees
		if _, err := w.Approve(t.Context(), by, "cash", 0, at); err == nil {
			t.Errorf("%s approved", by.Staff.Name)
		}
	}
	// A proposal lapses after seven days, or when its proposer is revoked.
	if _, _, err := identity.RevokeStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "Jean", at); err != nil {
		t.Fatal(err)
	}
	if found, err = w.AwaitingApproval(t.Context(), at); err != nil || len(found) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = w.AwaitingApproval(t.Context(), at.Add(7*24*time.Hour)); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Somebody writes into Postgres that the account of the counters is an acquirer's. A clerk is still not told that a
// decision about it waits, as Approve refuses the clerk.
func TestAwaitingOfForgedAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jean, clerk := w.staff(t, "Jean", "impots"), w.staff(t, "Clerk", "impots", "impots/c01")
	other := w.staff(t, "Other", "")
	c := late("counted", 100)
	c.Kind, c.InSession, c.SessionID, c.Mode = cases.KindBreak, false, "", "test"
	c.Evidence = map[string]string{cases.EvidenceLedger: "guichets", cases.EvidenceTenant: registries.AgencyA}
	w.apply(t, c)
	if _, err := w.Propose(t.Context(), jean, cases.Request{CaseID: "counted", Resolution: cases.ResolutionExplain, Reference: "ref", Reason: "r"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE statement_accounts SET kind = 'acquirer' WHERE code = 'guichets'`)
	found, err := w.AwaitingApproval(t.Context(), registries.Epoch)
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if found[0].MayApprove(clerk.Staff) || !found[0].MayApprove(other.Staff) {
		t.Errorf("clerk: %t, other: %t", found[0].MayApprove(clerk.Staff), found[0].MayApprove(other.Staff))
	}
}
