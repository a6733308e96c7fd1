package crash_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quittance/dev/payday"
	"quittance/disbursement"
)

// The payees of the simulated operators, by their last two digits, as far as the verdict needs them.
const (
	payeeWaits  = "03" // the operator decides when the test tells it to
	payeeDoubt  = "09" // is said to be refused, for a reason that proves nothing, and is paid
	payeeUnpaid = "10" // is said to be paid, and is not: only a statement shows it
)

// wanted is a line of a file. Its amount is that of no other line, so that the ledgers of the operators tell whose a
// payout is without any id of the service.
type wanted struct {
	ref    string
	amount int64
	payee  string // the payee's number without the leading zero
	digits string // its last two
}

// paidOut is all that a run of batches leaves: what was wanted, what the operators did, and what the service says.
type paidOut struct {
	lines   []wanted
	ledger  []payday.Payout
	states  map[string]disbursement.Line // by line_ref
	batches map[string]disbursement.Status
	// undecided are the line_refs about which people were asked after a day.
	undecided map[string]bool
}

// settlement is the verdict about a run of batches.
type settlement struct {
	lines, paid, returned int
	twice, lost, stuck    int
	cases, faults, unseen int
	// misasked counts lines about which people are asked for no reason, and those about which they are not.
	misasked                 int
	strangers, retries, dups int
	findings                 []string
}

// clean reports whether nobody was paid twice, nothing is lost or stuck, and people are asked about what the operators'
// faults leave in doubt, and about nothing else.
func (s settlement) clean() bool {
	return s.twice == 0 && s.lost == 0 && s.stuck == 0 && s.strangers == 0 && s.misasked == 0
}

func (s settlement) String() string {
	cases := strconv.Itoa(s.cases) + " of " + strconv.Itoa(s.faults)
	if s.misasked == 0 {
		cases = "faults"
	}
	return fmt.Sprintf("lines=%d paid=%d returned=%d paid_twice=%d lost=%d stuck=%d cases=%s (%d)", s.lines, s.paid, s.returned, s.twice, s.lost, s.stuck, cases, s.cases)
}

func (s *settlement) find(format string, args ...any) {
	if len(s.findings) < maxFindings {
		s.findings = append(s.findings, fmt.Sprintf(format, args...))
	}
}

// paidTo are the payments of a line in the ledgers.
type paidTo struct{ payments, payouts int }

// settled judges a run of batches. Who was paid, and how often, is read from the ledgers of the operators alone.
func settled(r paidOut) (s settlement) {
	s.lines = len(r.lines)
	byAmount := map[string]int{}
	for i, l := range r.lines {
		byAmount[strconv.FormatInt(l.amount, 10)] = i
	}
	paid := make([]paidTo, len(r.lines))
	for _, p := range r.ledger {
		s.dups += p.Duplicates
		if p.ReturnedAt != nil {
			s.returned++
		}
		i, known := byAmount[p.Amount]
		if !known || !strings.HasSuffix(p.Payee, r.lines[i].payee) {
			s.strangers++
			s.find("%s has a payout of %s to a payee whom no line names", p.Operator, p.Amount)
			continue
		}
		paid[i].payments += p.Payments
		paid[i].payouts++
	}
	for i, l := range r.lines {
		s.line(r, l, paid[i])
	}
	for id, status := range r.batches {
		if status != disbursement.StatusDone {
			s.stuck++
			s.find("the batch %s is %s", id, status)
		}
	}
	slices.Sort(s.findings)
	return s
}

// line judges one line.
func (s *settlement) line(r paidOut, l wanted, by paidTo) {
	s.retries += max(0, by.payouts-1)
	if by.payments > 0 {
		s.paid++
	}
	if by.payments > 1 {
		s.twice++
		s.find("line %s was paid %d times", l.ref, by.payments)
	}
	now, known := r.states[l.ref]
	fault := l.digits == payeeDoubt || l.digits == payeeWaits
	asked := l.digits == payeeWaits && r.undecided[l.ref] || now.Unproven || now.Contested || now.Case != ""
	if fault {
		s.faults++
	}
	if asked {
		s.cases++
	}
	if fault != asked {
		s.misasked++
		s.find("line %s, payee %s: people are asked %t", l.ref, l.digits, asked)
	}
	if !known {
		s.lost++
		s.find("line %s is not in the read model", l.ref)
		return
	}
	says := now.Status == disbursement.LinePaid || now.Status == disbursement.LineReturned
	switch {
	case now.Unproven || now.Contested || now.Case != "":
		if l.digits != payeeDoubt {
			s.find("people are asked about line %s, payee %s: unproven %t, contested %t, case %q", l.ref, l.digits, now.Unproven, now.Contested, now.Case)
		}
	case now.Status == disbursement.LineReady || now.Status == disbursement.LineSent:
		s.stuck++
		s.find("line %s, payee %s, is %s in attempt %d", l.ref, l.digits, now.Status, now.Attempt)
	case says && by.payments == 0 && l.digits == payeeUnpaid:
		s.unseen++
	case says != (by.payments > 0):
		s.lost++
		s.find("line %s, payee %s, is %s, and the operator has paid it %d times", l.ref, l.digits, now.Status, by.payments)
	}
}

// report renders the verdict as text.
func (s settlement) report(title string, more []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", title)
	for _, r := range slices.Concat(more, []row{
		{"requests that the operators had already", s.dups},
		{"further attempts of a line", s.retries},
		{"payouts to nobody's line", s.strangers},
		{"said to be paid, and not: for a statement", s.unseen},
	}) {
		fmt.Fprintf(&b, "  %-42s %10d\n", r.what, r.count)
	}
	for _, f := range s.findings {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	fmt.Fprintf(&b, "%s\n", s)
	return b.String()
}

// byRef orders lines as an import does.
func byRef(a, b wanted) int { return cmp.Compare(a.ref, b.ref) }
