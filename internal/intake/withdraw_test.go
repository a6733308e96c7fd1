package intake_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/test/await"
	"quittance/test/registries"
)

// closing is a store that takes days of an account for closed.
func (o *office) closing(code, to string) *intake.Store {
	return o.store(func(c *intake.Config) {
		c.Closed = func(_ context.Context, key registry.StatementAccountKey) (string, error) {
			if key.Code == code {
				return to, nil
			}
			return "", nil
		}
	})
}

// refusedAs checks that an operation was refused with a code, and returns its arguments.
func (o *office) refusedAs(err error, want string) operation.Args {
	o.t.Helper()
	var refused *operation.Error
	if !errors.As(err, &refused) || refused.Code != want {
		o.t.Errorf("%v, want %s", err, want)
		return nil
	}
	return refused.Args
}

// counting returns how many lines of an account count by the records in Kafka, and their sum.
func (o *office) counting(code string) (lines int, net int64) {
	o.t.Helper()
	all, _, _ := o.committed()
	rows := map[string]int64{}
	for _, l := range all {
		row, err := journal.LineOf(l, 0, 0)
		if err != nil {
			o.t.Fatal(err)
		}
		if l.Account == code {
			rows[fmt.Sprint(row.Row(), row.Withdrawn)] = row.NetAmount
			lines++
		}
	}
	lines = 0
	for row, amount := range rows {
		net += amount
		if strings.HasSuffix(row, "true") {
			lines--
		} else {
			lines++
		}
	}
	return lines, net
}

// counts waits until some lines of an account count, and checks their sum.
func (o *office) counts(code string, lines int, net int64) {
	o.t.Helper()
	var gotLines int
	var gotNet int64
	if !await.Within(5*time.Second, func() bool {
		gotLines, gotNet = o.counting(code)
		return gotLines == lines && gotNet == net
	}) {
		o.t.Errorf("%d lines of %s with the sum %d count, want %d with %d", gotLines, code, gotNet, lines, net)
	}
}

// people are two people of the agency.
func (o *office) people() (awa, ben identity.Staff) {
	awa, ben = o.person("Awa", "impots"), o.person("Ben", "impots")
	o.checker = ben
	return awa, ben
}

// withdraws withdraws an import by two people. It returns how many lines do not count any more.
func (o *office) withdraws(s *intake.Store, awa, ben identity.Staff, importID string) int {
	o.t.Helper()
	w, err := s.RequestWithdrawal(o.t.Context(), withKey(awa), importID, "the wrong day", time.Now())
	if err != nil {
		o.t.Fatal(err)
	}
	_, lines, err := s.ApproveWithdrawal(o.t.Context(), withKey(ben), w.ID, time.Now())
	if err != nil {
		o.t.Fatal(err)
	}
	return lines
}

// Yesterday's statement was of the wrong day. Two people withdraw it: its lines do not count any more, the account goes
// on from the statement before, and the right file is accepted. The wrong one does not come back by itself.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.closing("", "")
	awa, ben := o.people()
	first := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	wrong := o.imports(s, "mtn", mtn(2), statements.VerdictAccepted)
	later := o.imports(s, "mtn", mtn(3), statements.VerdictAccepted)
	request := func(s *intake.Store, by identity.Staff, id string) (intake.Withdrawal, error) {
		return s.RequestWithdrawal(t.Context(), withKey(by), id, "the wrong day", time.Now())
	}
	_, err := request(s, awa, wrong.ImportID)
	if args := o.refusedAs(err, "statement.continued"); args["import"] != later.ImportID {
		t.Errorf("%v, want %s", args, later.ImportID)
	}
	if n := o.withdraws(s, awa, ben, later.ImportID); n != 3 {
		t.Errorf("%d lines", n)
	}
	other := ben
	other.AgencyID = registries.AgencyB
	_, err = request(s, other, wrong.ImportID)
	o.refusedAs(err, "statement.unknown")
	for _, closed := range []string{"mtn", "banque"} { // the bank's close counts the lines that settle to it
		_, err = request(o.closing(closed, "2026-02-02"), awa, wrong.ImportID)
		o.refusedAs(err, "statement.days_closed")
	}
	w, err := request(o.closing("mtn", "2026-02-01"), awa, wrong.ImportID)
	if err != nil {
		t.Fatal(err)
	}
	approve := func(s *intake.Store, by identity.Staff, at time.Time) (int, error) {
		_, n, err := s.ApproveWithdrawal(t.Context(), withKey(by), w.ID, at)
		return n, err
	}
	_, err = approve(s, awa, time.Now())
	o.refusedAs(err, "statement.withdrawal_second_person")
	_, err = approve(s, other, time.Now())
	o.refusedAs(err, "statement.withdrawal_unknown")
	_, err = approve(s, ben, time.Now().Add(25*time.Hour))
	o.refusedAs(err, "statement.withdrawal_over")
	_, err = approve(o.closing("mtn", "2026-02-02"), ben, time.Now()) // closed meanwhile
	o.refusedAs(err, "statement.days_closed")
	if n, err := approve(s, ben, time.Now()); n != 3 || err != nil {
		t.Fatalf("%d lines, %v", n, err)
	}
	_, err = approve(s, ben, time.Now())
	o.refusedAs(err, "statement.withdrawal_decided")
	_, err = request(s, awa, wrong.ImportID)
	o.refusedAs(err, "statement.not_accepted")
	o.counts("mtn", 3, 2970)
	if c := o.covers(); c.Last != "2026-02-01" || len(c.Statements) != 1 || c.Pending || len(c.Quarantined) != 0 {
		t.Errorf("%+v", c)
	}
	list, err := intake.Show(t.Context(), o.Pool, wrong.ImportID)
	if err != nil || list[0].State != statements.Verdict(intake.Withdrawn) {
		t.Errorf("%+v, %v", list, err)
	}

	// The wrong file comes again, also with other bytes: a person decides.
	again := o.imports(s, "mtn", strings.ReplaceAll(mtn(2), "MABIALA", "M"), statements.VerdictQuarantined)
	if f := again.Faults[0]; f.Kind != statements.FaultWithdrawn || !strings.Contains(f.Detail, "Awa and Ben") || !strings.Contains(f.Detail, wrong.ImportID) {
		t.Errorf("%+v", f)
	}
	o.decidesAs(awa, again.ImportID, intake.Dismissed, "the wrong day", "")
	right := exported(2970, row{2, 0, 40}, row{2, 5, 50}) // with a line of the wrong one, and another
	o.imports(s, "mtn", right, statements.VerdictAccepted)
	o.counts("mtn", 5, 3060)

	// It was the right one after all.
	var id string
	if err := o.Pool.QueryRow(t.Context(), `SELECT id FROM statement_imports WHERE state = 'accepted' ORDER BY id DESC LIMIT 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	o.withdraws(s, awa, ben, id)
	held := o.imports(s, "mtn", mtn(2), statements.VerdictQuarantined)
	o.decidesAs(awa, held.ImportID, intake.Released, "MTN says so", "")
	o.imports(s, "mtn", mtn(2), statements.VerdictAccepted)
	o.imports(s, "mtn", mtn(2), statements.VerdictUnchanged)
	o.counts("mtn", 6, 5940)
	if first.ImportID == "" || o.audits("statements.withdraw") != 3 || o.audits("statements.withdraw.request") != 3 || o.audits("statements.withdraw.approve") != 3 {
		t.Errorf("audit: %v", o.Audited(t))
	}
	var named bool
	if err := o.Pool.QueryRow(t.Context(), `SELECT bool_and(detail ->> 'requested_by' = 'Awa' AND detail ->> 'decided_by' = 'Ben') FROM audit WHERE action = 'statements.withdraw'`).Scan(&named); err != nil || !named {
		t.Errorf("both people are not named: %v", err)
	}
}

// audits returns how often an action is in the audit table.
func (o *office) audits(action string) (n int) {
	o.t.Helper()
	for _, a := range o.Audited(o.t) {
		if a == action {
			n++
		}
	}
	return n
}

// Files of an operator overlap. A withdrawn file takes the lines with it that no other accepted file has, in whatever
// order files are withdrawn.
func TestWithdrawnOverlap(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			s := o.closing("", "")
			awa, ben := o.people()
			files := []string{airtel(1, 2), airtel(2, 3)}
			ids := []string{o.imports(s, "airtel", files[0], statements.VerdictAccepted).ImportID, o.imports(s, "airtel", files[1], statements.VerdictAccepted).ImportID}
			o.counts("airtel", 3, 3*495)
			if n := o.withdraws(s, awa, ben, ids[order[0]]); n != 1 {
				t.Errorf("%d lines of the first one", n)
			}
			o.counts("airtel", 2, 2*495)
			held := o.imports(s, "airtel", files[order[0]], statements.VerdictQuarantined)
			o.decidesAs(awa, held.ImportID, intake.Released, "it was right", "")
			o.imports(s, "airtel", files[order[0]], statements.VerdictAccepted) // one line in its second life, and one in its first
			o.counts("airtel", 3, 3*495)
			if n := o.withdraws(s, awa, ben, ids[order[1]]); n != 1 {
				t.Errorf("%d lines of the second one", n)
			}
			o.counts("airtel", 2, 2*495)
		})
	}
}

// A withdrawal that dies at any step is completed or repeated: its lines count, or they do not, and never twice.
func TestWithdrawalKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{intake.StepPending, intake.StepProduced, intake.StepCommitted} {
		for _, next := range []string{"approve", "import", "reject"} {
			t.Run(step+" then "+next, func(t *testing.T) {
				t.Parallel()
				o := newOffice(t)
				s := o.closing("", "")
				awa, ben := o.people()
				r := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
				w, err := s.RequestWithdrawal(t.Context(), withKey(awa), r.ImportID, "wrong", time.Now())
				if err != nil {
					t.Fatal(err)
				}
				dying := o.closing("", "")
				dying.Kill(func(at string) bool { return at == step })
				if _, _, err := dying.ApproveWithdrawal(t.Context(), withKey(ben), w.ID, time.Now()); !errors.Is(err, intake.ErrKilled) {
					t.Fatal(err)
				}
				if c := o.covers(); !c.Pending {
					t.Error("the account may be closed while nobody knows what counts")
				}
				if _, err := s.Import(t.Context(), intake.Request{Account: o.request("mtn", "").Account, File: strings.NewReader(mtn(2)), Try: true, Now: registries.Epoch}); !errors.Is(err, intake.ErrInterrupted) {
					t.Errorf("tried: %v", err)
				}
				done := step == intake.StepCommitted
				switch next {
				case "approve":
					_, _, err := s.ApproveWithdrawal(t.Context(), withKey(ben), w.ID, time.Now())
					if done {
						o.refusedAs(err, "statement.withdrawal_decided")
					} else if done = true; err != nil {
						t.Error(err)
					}
				case "import":
					o.imports(s, "mtn", mtn(1), map[bool]statements.Verdict{true: statements.VerdictQuarantined, false: statements.VerdictUnchanged}[done])
				case "reject":
					if _, err := s.RejectWithdrawal(t.Context(), withKey(awa), w.ID, time.Now()); !done && err != nil {
						t.Error(err)
					} else if done {
						o.refusedAs(err, "statement.withdrawal_decided")
					}
				}
				lines, net := 3, int64(2970)
				if done {
					lines, net = 0, 0
				}
				o.counts("mtn", lines, net)
				if got := o.audits("statements.withdraw"); got != map[bool]int{true: 1}[done] || o.covers().Pending {
					t.Errorf("%d withdrawals are in the audit table", got)
				}
			})
		}
	}
}

// Two people approve the withdrawal at the same moment, and a third one imports the same file and the next one.
func TestWithdrawnAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.closing("", "")
	awa, ben := o.people()
	olga := o.person("Olga", "")
	r := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	w, err := s.RequestWithdrawal(t.Context(), withKey(awa), r.ImportID, "wrong", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for n, by := range []identity.Staff{ben, olga} {
		store := o.closing("", "")
		wg.Go(func() { _, _, errs[n] = store.ApproveWithdrawal(t.Context(), withKey(by), w.ID, time.Now()) })
	}
	same, next := o.request("mtn", mtn(1)), o.request("mtn", mtn(2))
	results := make([]intake.Result, 2)
	for n, req := range []intake.Request{same, next} {
		store := o.store()
		wg.Go(func() {
			var err error
			if results[n], err = store.Import(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if results[0].State != statements.VerdictUnchanged && results[0].State != statements.VerdictQuarantined {
		t.Errorf("the same file: %+v", results[0])
	}
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		}
	}
	lines, net := o.counting("mtn")
	switch next := results[1].State; {
	case next == statements.VerdictAccepted && done == 0: // it continues the statement, which therefore stays
		o.refusedAs(errs[0], "statement.continued")
		o.refusedAs(errs[1], "statement.continued")
		o.counts("mtn", 6, 5940)
	case next == statements.VerdictAccepted && done == 1: // the first statement of the account
		o.counts("mtn", 3, 2970)
	case done == 1:
		o.counts("mtn", 0, 0)
	default:
		t.Errorf("%s, %v: %d lines, %d", next, errs, lines, net)
	}
}

// A person asks what would become of a file: nothing is stored, and importing it says the same.
func TestTried(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	for _, c := range []struct {
		text string
		want statements.Verdict
	}{
		{mtn(1), statements.VerdictAccepted},
		{mtn(1), statements.VerdictUnchanged},
		{mtn(3), statements.VerdictRefused},
		{strings.ReplaceAll(mtn(1), "08:00", "08:30"), statements.VerdictQuarantined},
	} {
		req := o.request("mtn", c.text)
		req.Try = true
		tried, err := s.Import(t.Context(), req)
		if err != nil || tried.State != c.want {
			t.Fatalf("tried: %+v, %v, want %s", tried, err, c.want)
		}
		var imports int
		if err := o.Pool.QueryRow(t.Context(), `SELECT count(*) FROM statement_imports WHERE digest = $1`, digestOf(c.text)).Scan(&imports); err != nil || imports > 0 && c.want != statements.VerdictUnchanged {
			t.Errorf("%d imports after a try, %v", imports, err)
		}
		got := o.imports(s, "mtn", c.text, c.want)
		if len(got.Faults) != len(tried.Faults) || got.Lines != tried.Lines {
			t.Errorf("%+v, tried %+v", got, tried)
		}
	}
}

func digestOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
