package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/registries"
)

// world has a registry, staff and cases.
type world struct {
	registries.House
	*cases.Store
}

func newWorld(t *testing.T) world {
	t.Helper()
	h := registries.SetUp(t)
	h.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 0"))
	return world{h, cases.NewStore(h.Pool).Verifying(h.Keys)}
}

// staff makes a member of staff.
func (w world) staff(t *testing.T, name, agency string, clerks ...string) cases.By {
	t.Helper()
	m, err := identity.AddStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: agency, Clerks: clerks}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	return cases.By{Staff: m.Staff, Origin: "desk", Signer: w.Keys}
}

func (w world) apply(t *testing.T, list ...cases.Case) {
	t.Helper()
	if err := w.Apply(t.Context(), list, nil); err != nil {
		t.Fatal(err)
	}
}

// dump returns all rows of cases.
func (w world) dump(t *testing.T) string {
	t.Helper()
	var text string
	if err := w.Pool.QueryRow(t.Context(), `SELECT coalesce(json_agg(c ORDER BY id), '[]')::text FROM cases c`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// late is a late payment at an agency.
func late(id string, amount int64) cases.Case {
	return cases.Case{
		Case: casework.Case{ID: id, Kind: checkout.CaseLatePayment, Amount: amount, Currency: "XAF", OpenedAt: registries.Epoch}, CollectionID: "c-" + id,
		InSession: true, Sequence: 4, SessionID: "chs_" + id, AgencyID: registries.AgencyA, ApplicationID: registries.AppA, OrderID: "o-" + id, Mode: "live",
		Clerks: []string{}, Evidence: map[string]string{},
	}
}

// closed returns a case after its exit.
func closed(c cases.Case, r casework.Resolution, reference, by string) cases.Case {
	c.Sequence++
	c.Resolution, c.Reference, c.ClosedBy, c.ClosedAt = r, reference, by, registries.Epoch.Add(time.Hour)
	return c
}

// lost is a report of a collection of no known session.
func lost(id string) cases.Case {
	return cases.Case{
		Case: casework.Case{ID: id, Kind: checkout.CaseOrphan, Amount: 70, Currency: "XAF", OpenedAt: registries.Epoch}, CollectionID: "x",
		SessionID: "chs_unknown", Mode: "live", Clerks: []string{}, Evidence: map[string]string{"source": "callback", "account": "acc-9", "approved_at": "2026-11-20T08:00:00Z"},
	}
}

func refusedBy(t *testing.T, err error, code string, values ...string) {
	t.Helper()
	var refused *operation.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("error = %v, want %s", err, code)
		return
	}
	for _, v := range values {
		if !strings.Contains(refused.Error(), v) {
			t.Errorf("%q does not hold %q", refused, v)
		}
	}
}

// carryOut records that the exits of approved proposals of cases without a session are
// events, and returns the cases as cases.events has them.
func (w world) carryOut(t *testing.T) (exits []cases.Case) {
	t.Helper()
	due, err := w.Claim(t.Context(), 10, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range due {
		d, err := w.Show(t.Context(), nil, a.CaseID, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		closed := w.reread(t, d.Exit(a))
		w.apply(t, closed...)
		if err := w.Answered(t.Context(), a, checkout.CodeOK, registries.Epoch); err != nil {
			t.Fatal(err)
		}
		exits = append(exits, closed...)
	}
	return exits
}

// reread returns the cases that a reader of cases.events finds in events.
func (w world) reread(t *testing.T, events ...checkout.Event) (out []cases.Case) {
	t.Helper()
	codec, err := schemas.NewCodec(t.Context(), &numbered{}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		value, err := codec.Encode(mapping.FromEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		list, err := cases.ReadCaseEvent(codec, value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list...)
	}
	return out
}

// numbered is a schema registry in memory.
type numbered struct{ n int }

func (n *numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) ID(context.Context, string, string, bool) (int, error) { n.n++; return n.n, nil }

func (n *numbered) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

// note records that each step of each proposal is an event, and returns the steps.
func (w world) note(t *testing.T) (steps []string) {
	t.Helper()
	for {
		notes, err := w.ClaimNotes(t.Context(), 10, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) == 0 {
			return steps
		}
		for _, n := range notes {
			do := n.Command(registries.Epoch).Do.(checkout.NoteProposal)
			steps = append(steps, fmt.Sprintf("%s %d %s %s %s by %s: %s", do.CaseID, do.Number, do.Step, do.Resolution, do.Reference, do.By, do.Reason))
			for range 2 { // the first answer may be lost
				if err := w.Noted(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func refund(id string) cases.Request {
	return cases.Request{CaseID: id, Resolution: checkout.ResolutionRefund, Reference: "wire 7", Reason: "paid twice"}
}

// One person proposes and another approves. The processor's answer ends the proposal.
func TestTwoPeopleResolveACase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jean, mireille := w.staff(t, "Jean", "impots"), w.staff(t, "Mireille", "")
	w.apply(t, late("a", 5075))
	for req, code := range map[cases.Request]string{
		{CaseID: "b", Resolution: checkout.ResolutionHonour, Reason: "r"}:                                      "case.unknown",
		{CaseID: "a\x00", Resolution: checkout.ResolutionHonour, Reason: "r"}:                                  "case.unknown",
		{CaseID: "a", Resolution: checkout.ResolutionApproved, Reason: "r"}:                                    "case.resolution_not_allowed",
		{CaseID: "a", Resolution: checkout.ResolutionCashReturned, Reason: "r"}:                                "case.resolution_not_allowed",
		{CaseID: "a", Resolution: checkout.ResolutionHonour}:                                                   "case.reason_malformed",
		{CaseID: "a", Resolution: checkout.ResolutionHonour, Reason: "a\nb"}:                                   "case.reason_malformed",
		{CaseID: "a", Resolution: checkout.ResolutionRefund, Reason: "r"}:                                      "case.reference_missing",
		{CaseID: "a", Resolution: checkout.ResolutionRefund, Reason: "r", Reference: strings.Repeat("x", 201)}: "case.reference_malformed",
		{CaseID: "a", Resolution: casework.ResolutionWriteOff, Reason: "r", Reference: ""}:                     "case.reference_missing",
	} {
		_, err := w.Propose(t.Context(), jean, req, registries.Epoch)
		refusedBy(t, err, code)
	}
	_, err := w.Approve(t.Context(), mireille, "a", 0, registries.Epoch)
	refusedBy(t, err, "case.no_proposal")
	d, err := w.Propose(t.Context(), jean, refund("a"), registries.Epoch)
	if err != nil || len(d.Proposals) != 1 || d.Proposals[0].State != cases.ProposalOpen || d.Proposals[0].Proposer != "Jean" {
		t.Fatalf("%+v, %v", d, err)
	}
	_, err = w.Propose(t.Context(), mireille, refund("a"), registries.Epoch)
	refusedBy(t, err, "case.proposal_waits", "proposer=Jean")
	_, err = w.Approve(t.Context(), jean, "a", 0, registries.Epoch)
	refusedBy(t, err, "case.second_person")
	if due, err := w.Claim(t.Context(), 10, 0); err != nil || len(due) != 0 {
		t.Fatalf("claimed %+v, %v", due, err)
	}
	if d, err = w.Approve(t.Context(), mireille, "a", 0, registries.Epoch); err != nil || d.Proposals[0].State != cases.ProposalApproved || d.Proposals[0].Decider != "Mireille" {
		t.Fatalf("%+v, %v", d, err)
	}
	_, err = w.Reject(t.Context(), jean, "a", "too late", registries.Epoch)
	refusedBy(t, err, "case.no_proposal")

	// Proposing and approving are events before the resolution is.
	if due, err := w.Claim(t.Context(), 10, 0); err != nil || len(due) != 0 {
		t.Fatalf("claimed %+v, %v", due, err)
	}
	if steps := w.note(t); !slices.Equal(steps, []string{"a 1 proposed refund wire 7 by Jean: paid twice", "a 1 approved refund wire 7 by Mireille: paid twice"}) {
		t.Errorf("the steps are %q", steps)
	}
	due, err := w.Claim(t.Context(), 10, time.Hour)
	if err != nil || len(due) != 1 {
		t.Fatalf("claimed %+v, %v", due, err)
	}
	if again, err := w.Claim(t.Context(), 10, time.Hour); err != nil || len(again) != 0 {
		t.Errorf("another instance claims %+v, %v", again, err)
	}
	want := checkout.Resolve{CaseID: "a", Resolution: checkout.ResolutionRefund, Reference: "wire 7", Reason: "paid twice", By: "Jean", ApprovedBy: "Mireille", Number: 1}
	if cmd := due[0].Command(registries.Epoch); cmd.SessionID != "chs_a" || !reflect.DeepEqual(cmd.Do, want) {
		t.Errorf("the command is %+v", cmd)
	}
	// The event comes before the answer, and the answer twice.
	w.apply(t, closed(late("a", 5075), checkout.ResolutionRefund, "wire 7", "Jean"))
	for range 2 {
		if err := w.Answered(t.Context(), due[0], checkout.CodeOK, registries.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	if d, err = w.Show(t.Context(), &jean.Staff, "a", registries.Epoch); err != nil || d.State() != cases.StateClosed || d.Proposals[0].State != cases.ProposalCarriedOut || d.ClosedBy != "Jean" {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = w.Propose(t.Context(), jean, refund("a"), registries.Epoch)
	refusedBy(t, err, "case.closed", "resolution=refund")
	if got := w.Audited(t); !slices.Equal(got[len(got)-3:], []string{"case.propose", "case.approve", "case.carried_out"}) {
		t.Errorf("recorded %v", got)
	}
}

// Whoever took or gave back the cash does not resolve it. An agency's staff see and resolve
// the cases of their agency only.
func TestWhoMayResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clerk, jean := w.staff(t, "Clerk", "impots", "impots/c01"), w.staff(t, "Jean", "impots")
	operations := w.staff(t, "Op", "", "impots/c02")
	cash := late("cash", 100)
	cash.Clerks = []string{"c01", "c02"}
	foreign := late("foreign", 100)
	foreign.AgencyID = registries.AgencyB
	foreign.Clerks = []string{"c01"} // another agency's clerk of that name
	w.apply(t, cash, foreign, lost("lost"))
	for _, by := range []cases.By{clerk, operations} {
		_, err := w.Propose(t.Context(), by, refund("cash"), registries.Epoch)
		refusedBy(t, err, "case.own_cash")
	}
	if _, err := w.Propose(t.Context(), jean, refund("cash"), registries.Epoch); err != nil {
		t.Fatal(err)
	}
	_, err := w.Approve(t.Context(), clerk, "cash", 0, registries.Epoch)
	refusedBy(t, err, "case.own_cash")
	for _, id := range []string{"foreign", "lost"} {
		_, err := w.Propose(t.Context(), jean, refund(id), registries.Epoch)
		refusedBy(t, err, "case.unknown")
		_, err = w.Show(t.Context(), &jean.Staff, id, registries.Epoch)
		refusedBy(t, err, "case.unknown")
		_, err = w.Reject(t.Context(), jean, id, "r", registries.Epoch)
		refusedBy(t, err, "case.unknown")
		if _, err := w.Propose(t.Context(), operations, refund(id), registries.Epoch); err != nil {
			t.Errorf("operations: %v", err)
		}
	}
	count := func(viewer *identity.Staff, f cases.Filter) int {
		list, err := w.List(t.Context(), viewer, f)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for want, got := range map[int]int{
		3: count(nil, cases.Filter{}), 1: count(&jean.Staff, cases.Filter{}), 2: count(&operations.Staff, cases.Filter{Kind: checkout.CaseLatePayment}),
		0: count(&jean.Staff, cases.Filter{AgencyID: registries.AgencyB}) + count(nil, cases.Filter{State: cases.StateClosed}),
	} {
		if got != want {
			t.Errorf("listed %d, want %d", got, want)
		}
	}
	for f, want := range map[cases.Filter]int{
		{SessionID: "chs_cash"}: 1, {Reference: "c-foreign"}: 1, {Reference: "lost"}: 1, {Reference: "nothing"}: 0, {SessionID: "chs_cash", Reference: "lost"}: 0,
	} {
		if got := count(nil, f); got != want {
			t.Errorf("%+v: listed %d, want %d", f, got, want)
		}
	}
	if n := count(&jean.Staff, cases.Filter{Reference: "c-foreign"}); n != 0 {
		t.Errorf("another agency's case is found by %d", n)
	}
	// A revoked person acts no more, also with an authentication from before.
	if _, _, err := identity.RevokeStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "Op", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	_, err = w.Reject(t.Context(), operations, "foreign", "r", registries.Epoch)
	refusedBy(t, err, "staff.revoked")
}

// A proposal lapses after seven days, or when its proposer is revoked. After a second
// proposal the approver names the one that is meant.
func TestProposalsLapse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jean, mireille, paul := w.staff(t, "Jean", "impots"), w.staff(t, "Mireille", "impots"), w.staff(t, "Paul", "")
	w.apply(t, late("a", 5075))
	propose := func(by cases.By, at time.Time) {
		t.Helper()
		if _, err := w.Propose(t.Context(), by, refund("a"), at); err != nil {
			t.Fatal(err)
		}
	}
	propose(jean, registries.Epoch)
	week := registries.Epoch.Add(7 * 24 * time.Hour)
	_, err := w.Approve(t.Context(), mireille, "a", 0, week)
	refusedBy(t, err, "case.proposal_over", "state=lapsed")
	propose(mireille, week)
	_, err = w.Approve(t.Context(), jean, "a", 0, week)
	refusedBy(t, err, "case.which_proposal")
	_, err = w.Approve(t.Context(), jean, "a", 3, week)
	refusedBy(t, err, "case.proposal_unknown", "most=2")
	_, err = w.Approve(t.Context(), jean, "a", 1, week)
	refusedBy(t, err, "case.proposal_over", "number=1")
	if _, _, err := identity.RevokeStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "Mireille", week); err != nil {
		t.Fatal(err)
	}
	_, err = w.Approve(t.Context(), jean, "a", 2, week)
	refusedBy(t, err, "case.proposal_over", "state=lapsed")
	propose(paul, week)
	if _, err := w.Reject(t.Context(), paul, "a", "withdrawn", week); err != nil {
		t.Fatal(err)
	}
	propose(jean, week)
	d, err := w.Approve(t.Context(), paul, "a", 4, week.Add(7*24*time.Hour-time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	var states []cases.ProposalState
	for _, p := range d.Proposals {
		states = append(states, p.State)
	}
	if want := []cases.ProposalState{cases.ProposalLapsed, cases.ProposalLapsed, cases.ProposalRejected, cases.ProposalApproved}; !slices.Equal(states, want) {
		t.Errorf("the proposals are %v", states)
	}
}

// Once two people of a group have two passkeys each, its keys propose and take back only: nobody approves or rejects with one, and
// no proposal approves itself. A suspended person's proposal lapses, also when the suspension is lifted before anybody looks.
func TestKeysOfAGroupWithPasskeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 1000"))
	jean, mireille := w.staff(t, "Jean", "impots"), w.staff(t, "Mireille", "impots")
	w.apply(t, late("a", 500), late("b", 5_000), late("c", 5_000))
	propose := func(by cases.By, id string) (cases.Detail, error) {
		return w.Propose(t.Context(), by, cases.Request{Case: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, registries.Epoch)
	}
	if _, err := propose(jean, "b"); err != nil {
		t.Fatal(err)
	}
	w.GivePasskeys(t, jean.Staff.ID, mireille.Staff.ID)
	d, err := propose(jean, "a")
	if err != nil || d.Proposals[0].State != cases.ProposalOpen {
		t.Fatalf("a proposal below the limit: %+v, %v", d.Proposals, err)
	}
	for _, id := range []string{"a", "b"} {
		_, err = w.Approve(t.Context(), mireille, id, 0, registries.Epoch)
		refusedBy(t, err, "staff.keys_propose", "url=https://staff.example/")
		_, err = w.Reject(t.Context(), mireille, id, "no", registries.Epoch)
		refusedBy(t, err, "staff.keys_propose")
	}
	if _, err := w.Reject(t.Context(), jean, "a", "taken back", registries.Epoch); err != nil {
		t.Error(err)
	}
	if _, err := propose(mireille, "c"); err != nil {
		t.Fatal(err)
	}
	commandLine := identity.By{Actor: registries.Actor}
	if _, err := identity.SuspendStaff(t.Context(), w.Pool, w.Keys, commandLine, "Mireille", "lost", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	_, err = propose(mireille, "a")
	refusedBy(t, err, "staff.suspended")
	if err := w.Lapse(t.Context(), registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LiftSuspension(t.Context(), w.Pool, w.Keys, commandLine, "Mireille", "found", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	_, err = w.Approve(t.Context(), jean, "c", 0, registries.Epoch)
	refusedBy(t, err, "case.proposal_over", "state=lapsed")
}

// Below the agency's single_approval_below one person is enough, in XAF only.
func TestSingleApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 1000"))
	jean := w.staff(t, "Jean", "impots")
	dear, euros, unconfirmed := late("dear", 1000), late("euros", 5), late("unconfirmed", 5)
	euros.Currency, unconfirmed.Kind = "EUR", checkout.CaseConfirmation
	w.apply(t, late("cheap", 999), dear, euros, unconfirmed)
	for id, want := range map[string]cases.ProposalState{"cheap": cases.ProposalApproved, "dear": cases.ProposalOpen, "euros": cases.ProposalOpen} {
		d, err := w.Propose(t.Context(), jean, refund(id), registries.Epoch)
		if err != nil || d.Proposals[0].State != want {
			t.Errorf("%s: %+v, %v", id, d.Proposals, err)
		}
	}
	// Two people record what the ERP says, whatever the amount. A retry needs no evidence.
	d, err := w.Propose(t.Context(), jean, cases.Request{CaseID: "unconfirmed", Resolution: checkout.ResolutionRecordedByHand, Reference: "GL 7", Reason: "r"}, registries.Epoch)
	if err != nil || d.Proposals[0].State != cases.ProposalOpen {
		t.Errorf("%+v, %v", d.Proposals, err)
	}
	if _, err := w.Reject(t.Context(), jean, "unconfirmed", "withdrawn", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	_, err = w.Propose(t.Context(), jean, cases.Request{CaseID: "unconfirmed", Resolution: checkout.ResolutionRecordedByHand, Reason: "r"}, registries.Epoch)
	refusedBy(t, err, "case.reference_missing")
	d, err = w.Propose(t.Context(), jean, cases.Request{CaseID: "unconfirmed", Resolution: checkout.ResolutionRetry, Reason: "r"}, registries.Epoch)
	if err != nil || d.Proposals[1].State != cases.ProposalApproved {
		t.Errorf("%+v, %v", d.Proposals, err)
	}
	steps := w.note(t)
	slices.Sort(steps)
	if want := []string{
		"cheap 1 approved refund wire 7 by Jean: paid twice", "cheap 1 proposed refund wire 7 by Jean: paid twice",
		"dear 1 proposed refund wire 7 by Jean: paid twice", "euros 1 proposed refund wire 7 by Jean: paid twice",
		"unconfirmed 1 proposed recorded_by_hand GL 7 by Jean: r", "unconfirmed 1 rejected recorded_by_hand GL 7 by Jean: withdrawn",
		"unconfirmed 2 approved retry  by Jean: r", "unconfirmed 2 proposed retry  by Jean: r",
	}; !slices.Equal(steps, want) {
		t.Errorf("the steps are %q", steps)
	}
}

// Somebody writes into Postgres that one person is enough, or that an account of the counters is none.
// The row does not verify: two people decide, and no clerk.
func TestForgedLimitDoesNotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 1000"))
	jean := w.staff(t, "Jean", "impots")
	w.apply(t, late("before", 999), late("after", 999))
	if d, err := w.Propose(t.Context(), jean, refund("before"), registries.Epoch); err != nil || d.Proposals[0].State != cases.ProposalApproved {
		t.Fatalf("%+v, %v", d.Proposals, err)
	}
	w.Exec(t, `UPDATE agencies SET single_approval_below = 1000000000`)
	if d, err := w.Propose(t.Context(), jean, refund("after"), registries.Epoch); err != nil || d.Proposals[0].State != cases.ProposalOpen {
		t.Errorf("one person approved: %+v, %v", d.Proposals, err)
	}
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	till := registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: "guichets"}
	if cash, err := till.TakesCash(t.Context(), tx, w.Keys); !cash || err != nil {
		t.Errorf("before: %v, %v", cash, err)
	}
	if _, err := tx.Exec(t.Context(), `UPDATE statement_accounts SET kind = 'acquirer' WHERE code = 'guichets'`); err != nil {
		t.Fatal(err)
	}
	if cash, err := till.TakesCash(t.Context(), tx, w.Keys); !cash || err != nil {
		t.Errorf("an account of the counters is none: %v, %v", cash, err)
	}
}

// A case that closes in another way voids its proposals, also approved ones. A refusal of
// the processor leaves the case open for another proposal.
func TestOtherExits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jean, mireille := w.staff(t, "Jean", "impots"), w.staff(t, "Mireille", "impots")
	w.apply(t, late("open", 1), late("approved", 1), late("refused", 1))
	for _, id := range []string{"open", "approved", "refused"} {
		if _, err := w.Propose(t.Context(), jean, refund(id), registries.Epoch); err != nil {
			t.Fatal(err)
		}
		if id != "open" {
			if _, err := w.Approve(t.Context(), mireille, id, 0, registries.Epoch); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.note(t)
	due, err := w.Claim(t.Context(), 10, 0)
	if err != nil || len(due) != 2 {
		t.Fatalf("claimed %+v, %v", due, err)
	}
	w.apply(t, closed(late("open", 1), checkout.ResolutionCashReturned, "", "c02"), closed(late("approved", 1), checkout.ResolutionSuperseded, "", ""))
	for _, a := range due {
		code := checkout.CodeCaseClosed
		if a.CaseID == "refused" {
			code = checkout.CodeInFlight
		}
		if err := w.Answered(t.Context(), a, code, registries.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]cases.ProposalState{"open": cases.ProposalVoid, "approved": cases.ProposalVoid, "refused": cases.ProposalRefused} {
		d, err := w.Show(t.Context(), nil, id, registries.Epoch)
		if err != nil || d.Proposals[0].State != want || d.Open() != (id == "refused") {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
		if id == "refused" && d.Proposals[0].Refusal != string(checkout.CodeInFlight) {
			t.Errorf("the refusal is %q", d.Proposals[0].Refusal)
		}
	}
	if _, err := w.Propose(t.Context(), mireille, refund("refused"), registries.Epoch); err != nil {
		t.Errorf("another proposal: %v", err)
	}
}

// Concurrent proposals and approvals of a case: one of each.
func TestOneProposalAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jean, mireille := w.staff(t, "Jean", "impots"), w.staff(t, "Mireille", "impots")
	w.apply(t, late("a", 1))
	count := func(do func() error) (n int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if do() == nil {
					mu.Lock()
					defer mu.Unlock()
					n++
				}
			})
		}
		wg.Wait()
		return n
	}
	if n := count(func() error { _, err := w.Propose(t.Context(), jean, refund("a"), registries.Epoch); return err }); n != 1 {
		t.Errorf("%d proposals", n)
	}
	if n := count(func() error { _, err := w.Approve(t.Context(), mireille, "a", 0, registries.Epoch); return err }); n != 1 {
		t.Errorf("%d approvals", n)
	}
}

// The events give the same rows however often they are applied, and after a rebuild.
// Proposals survive it. The cases that have no session are closed by cases.events, whose
// records may come before those that opened the cases.
func TestRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.staff(t, "One", ""), w.staff(t, "Two", "")
	record := &kgo.Record{Partition: 0, Offset: 7, Timestamp: registries.Epoch, Headers: []kgo.RecordHeader{
		schemas.Header(schemas.HeaderTopic, "checkout.events"), schemas.Header(schemas.HeaderPartition, "3"), schemas.Header(schemas.HeaderOffset, "99"),
		schemas.Header(schemas.HeaderError, "undecodable \x00\xff"),
	}}
	poison := cases.ReadPoison(schemas.TopicPoisonReadmodel, record)
	history := []cases.Case{late("a", 5075), closed(late("a", 5075), checkout.ResolutionRefund, "r", "One"), late("b", 3), lost("lost"), poison}
	w.apply(t, history...)
	opened, err := w.Unrecorded(t.Context(), 10)
	if err != nil || len(opened) != 2 {
		t.Fatalf("%+v, %v", opened, err)
	}
	var exits []cases.Case
	for _, c := range opened {
		exits = append(exits, w.reread(t, c.Opening())...)
	}
	w.apply(t, exits...)
	if left, err := w.Unrecorded(t.Context(), 10); err != nil || len(left) != 0 {
		t.Errorf("without an event are %+v, %v", left, err)
	}
	for _, req := range []cases.Request{refund("lost"), {CaseID: poison.ID, Resolution: casework.ResolutionAcknowledge, Reason: "mended"}} {
		if _, err := w.Propose(t.Context(), one, req, registries.Epoch); err != nil {
			t.Fatal(err)
		}
		d, err := w.Approve(t.Context(), two, req.CaseID, 0, registries.Epoch)
		if err != nil || d.State() != cases.StateOpen || d.Proposals[0].State != cases.ProposalApproved {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if due, err := w.Claim(t.Context(), 10, 0); err != nil || len(due) != 0 {
		t.Errorf("carried out before their steps are events: %+v, %v", due, err)
	}
	if steps := w.note(t); len(steps) != 4 {
		t.Errorf("the steps are %q", steps)
	}
	exits = append(exits, w.carryOut(t)...)
	for _, id := range []string{"lost", poison.ID} {
		d, err := w.Show(t.Context(), nil, id, registries.Epoch)
		if err != nil || d.State() != cases.StateClosed || d.Proposals[0].State != cases.ProposalCarriedOut || d.ClosedBy != "One" {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if d, err := w.Show(t.Context(), nil, poison.ID, registries.Epoch); err != nil || d.Evidence[cases.EvidenceOffset] != "99" || d.Evidence[cases.EvidencePartition] != "3" ||
		d.Evidence[cases.EvidenceTopic] != "checkout.events" || d.Evidence[cases.EvidencePoisonTopic] != schemas.TopicPoisonReadmodel || !strings.HasPrefix(d.Reason, "undecodable") {
		t.Errorf("%+v, %v", d, err)
	}
	if due, err := w.Claim(t.Context(), 10, 0); err != nil || len(due) != 0 {
		t.Errorf("carried out again: %+v, %v", due, err)
	}
	before := w.dump(t)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(before), &rows); err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	w.apply(t, history...)
	w.apply(t, history[0]) // an old event again
	if got := w.dump(t); got != before {
		t.Errorf("applied again:\n%s\nwas\n%s", got, before)
	}
	for name, order := range map[string][]cases.Case{"openings first": slices.Concat(history, exits), "exits first": slices.Concat(exits, history)} {
		w.Exec(t, `TRUNCATE cases, case_positions`)
		for _, c := range order {
			w.apply(t, c)
		}
		if got := w.dump(t); got != before {
			t.Errorf("rebuilt, %s:\n%s\nwas\n%s", name, got, before)
		}
	}
}

// Positions move with the rows or not at all.
func TestPositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	move := func(from, to int64) []consume.Move {
		return []consume.Move{{Topic: "t", Partition: 1, From: from, To: to}}
	}
	if err := w.Apply(t.Context(), []cases.Case{late("a", 1)}, move(consume.None, 5)); err != nil {
		t.Fatal(err)
	}
	if err := w.Apply(t.Context(), []cases.Case{late("b", 1)}, move(4, 6)); !errors.Is(err, consume.ErrMoved) {
		t.Errorf("another writer's move: %v", err)
	}
	bad := late("c", 1)
	bad.OrderID = "zero \x00 byte"
	if err := w.Apply(t.Context(), []cases.Case{bad}, move(5, 6)); !errors.Is(err, consume.ErrRefused) {
		t.Errorf("an impossible value: %v", err)
	}
	at, err := w.Positions(t.Context(), "t")
	if list, err2 := w.List(t.Context(), nil, cases.Filter{}); err != nil || err2 != nil || len(list) != 1 || at[1] != 5 {
		t.Errorf("positions %v, %d cases, %v, %v", at, len(list), err, err2)
	}
	counts, err := w.CountOpen(t.Context())
	if err != nil || fmt.Sprint(counts) != fmt.Sprint([]cases.Count{{Kind: checkout.CaseLatePayment, N: 1, Oldest: registries.Epoch}}) {
		t.Errorf("%+v, %v", counts, err)
	}
}

// A record that is set aside twice is one case. A tick has no position: each entry has a
// case of its own, and another one on the next day.
func TestPoisonIDs(t *testing.T) {
	t.Parallel()
	id := func(topic, offset, key string, at time.Time, own int64) string {
		r := &kgo.Record{Offset: own, Key: []byte(key), Timestamp: at, Headers: []kgo.RecordHeader{
			schemas.Header(schemas.HeaderTopic, topic), schemas.Header(schemas.HeaderPartition, "0"), schemas.Header(schemas.HeaderOffset, offset),
		}}
		return cases.ReadPoison(schemas.TopicPoisonCommands, r).ID
	}
	day := registries.Epoch
	if id("t", "7", "a", day, 1) != id("t", "7", "a", day.Add(time.Hour), 2) || id("t", "7", "a", day, 1) == id("t", "8", "a", day, 1) {
		t.Error("a record's case does not follow its position")
	}
	tick := id("t", "-1", "a", day, 1)
	if tick != id("t", "-1", "a", day.Add(time.Hour), 2) || tick == id("t", "-1", "b", day, 1) || tick == id("t", "-1", "a", day.Add(24*time.Hour), 1) {
		t.Error("a tick's case does not follow its entry and its day")
	}
	old := cases.ReadPoison(schemas.TopicPoisonJournal, &kgo.Record{Offset: 1})
	if old.ID == cases.ReadPoison(schemas.TopicPoisonJournal, &kgo.Record{Offset: 2}).ID {
		t.Error("records without headers share a case")
	}
}

// migration returns the statements of a migration, up and down.
func migration(t *testing.T, name string) (up, down string) {
	t.Helper()
	b, err := os.ReadFile("../postgres/migrations/" + name)
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ = strings.Cut(string(b), "-- +goose Down")
	return up, down
}

// Earlier releases closed cases without a session in Postgres alone. After the migration
// each of their proposals and exits becomes an event, with its time of then, and the cases
// are closed by it.
func TestExitsOfEarlierReleasesBecomeEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up, down := migration(t, "0030_case_events.sql")
	w.Exec(t, down)
	one, two := w.staff(t, "One", ""), w.staff(t, "Two", "")
	hour := func(n int) time.Time { return registries.Epoch.Add(time.Duration(n) * time.Hour) }
	for _, id := range []string{"lost", "poison", "waits"} {
		kind := checkout.CaseOrphan
		if id == "poison" {
			kind = cases.KindPoison
		}
		w.Exec(t, `INSERT INTO cases (id, kind, in_session, sequence, opened_at) VALUES ($1, $2, false, 0, $3)`, id, string(kind), hour(0))
		w.Exec(t, `INSERT INTO case_proposals (case_id, number, state, resolution, reference, reason, proposed_by, proposer, proposed_at, decided_by, decider, decided_at, decision, finished_at, noted)
			VALUES ($1, 1, 'rejected', 'refund', 'wire', 'r', $2, 'One', $4, $3, 'Two', $5, 'no', $5, 2)`, id, one.Staff.ID, two.Staff.ID, hour(1), hour(2))
		if id != "waits" {
			w.Exec(t, `UPDATE cases SET resolution = 'refund', reference = 'wire', closed_by = 'One', closed_at = $2 WHERE id = $1`, id, hour(4))
			w.Exec(t, `INSERT INTO case_proposals (case_id, number, state, resolution, reference, reason, proposed_by, proposer, proposed_at, decided_by, decider, decided_at, finished_at, noted)
				VALUES ($1, 2, 'carried_out', 'refund', 'wire', 'r', $2, 'One', $4, $3, 'Two', $5, $5, 0)`, id, one.Staff.ID, two.Staff.ID, hour(3), hour(4))
		}
	}
	w.Exec(t, `INSERT INTO cases_positions VALUES ('checkout.events', 0, 7)`)
	// The row of this case is lost, and no topic has it any more.
	w.Exec(t, `INSERT INTO case_proposals (case_id, number, state, resolution, reference, reason, proposed_by, proposer, proposed_at, decided_by, decider, decided_at, finished_at, noted)
		VALUES ('gone', 1, 'carried_out', 'refund', 'wire', 'r', $1, 'One', $3, $2, 'Two', $3, $3, 0)`, one.Staff.ID, two.Staff.ID, hour(1))
	w.Exec(t, up)
	// A command of the earlier release cannot close a case without an event.
	if _, err := w.Pool.Exec(t.Context(), `UPDATE case_proposals SET state = 'carried_out' WHERE case_id = 'lost' AND number = 2`); err == nil {
		t.Error("a case is closed without an event")
	}
	if at, err := w.Positions(t.Context(), "checkout.events"); err != nil || len(at) != 0 {
		t.Errorf("checkout.events is not read again: %v, %v", at, err)
	}
	if notes := w.note(t); len(notes) != 0 {
		t.Errorf("steps before their case is recorded: %q", notes)
	}
	w.apply(t, lost("lost"), lost("waits"))
	opened, err := w.Unrecorded(t.Context(), 10)
	if err != nil || len(opened) != 3 {
		t.Fatalf("%+v, %v", opened, err)
	}
	for _, c := range opened {
		w.apply(t, w.reread(t, c.Opening())...)
	}
	steps := w.note(t)
	slices.Sort(steps)
	if len(steps) != 10 || steps[0] != "lost 1 proposed refund wire by One: r" || steps[1] != "lost 1 rejected refund wire by Two: no" || steps[2] != "lost 2 approved refund wire by Two: r" {
		t.Errorf("the steps are %q", steps)
	}
	if exits := w.carryOut(t); len(exits) != 2 {
		t.Errorf("the exits are %+v", exits)
	}
	for _, id := range []string{"lost", "poison", "waits"} {
		d, err := w.Show(t.Context(), nil, id, hour(5))
		if err != nil || d.Open() != (id == "waits") {
			t.Errorf("%+v, %v", d, err)
		}
		if id != "waits" && (d.ClosedBy != "One" || !d.ClosedAt.Equal(hour(4)) || d.Proposals[1].State != cases.ProposalCarriedOut) {
			t.Errorf("%+v", d)
		}
	}
}

// The pages of a list have each case once, the open ones first, and begin again for nobody else: a
// cursor of other conditions or of another viewer is refused.
func TestPagesOfCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jean := w.staff(t, "Jean", "impots")
	var all []cases.Case
	for n := range 9 {
		c := late(fmt.Sprintf("n%d", n), 100)
		c.OpenedAt = registries.Epoch.Add(time.Duration(n/2) * time.Microsecond) // two at each time
		if n%3 == 0 {
			c = closed(c, checkout.ResolutionRefund, "R", "Jean")
		}
		all = append(all, c)
	}
	w.apply(t, all...)
	ids := func(list []cases.Case) (out []string) {
		for _, c := range list {
			out = append(out, c.ID)
		}
		return out
	}
	want := []string{"n8", "n7", "n4", "n5", "n2", "n1", "n6", "n3", "n0"}
	for size := 1; size < 10; size++ {
		var got []string
		for f := (cases.Filter{Limit: size}); ; {
			list, err := w.List(t.Context(), &jean.Staff, f)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				break
			}
			got = append(got, ids(list)...)
			f.After = f.Cursor(&jean.Staff, list[len(list)-1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", size, got, want)
		}
	}
	cursor := cases.Filter{}.Cursor(&jean.Staff, all[1])
	_, err := w.List(t.Context(), nil, cases.Filter{After: cursor})
	refusedBy(t, err, "list.cursor_foreign", "field=after")
	_, err = w.List(t.Context(), &jean.Staff, cases.Filter{After: cursor, State: cases.StateOpen})
	refusedBy(t, err, "list.cursor_foreign", "field=after")
	_, err = w.List(t.Context(), &jean.Staff, cases.Filter{After: "n1"})
	refusedBy(t, err, "list.cursor_malformed", "field=after")
}
