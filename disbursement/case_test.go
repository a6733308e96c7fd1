package disbursement_test

import (
	"testing"

	"quittance/disbursement"
)

// Two people with evidence decide about money; every kind of case has an exit.
func TestCases(t *testing.T) {
	t.Parallel()
	c := disbursement.Cases()
	for _, kind := range c.Kinds {
		allowed := c.Allowed(kind)
		if len(allowed) == 0 {
			t.Errorf("%s has no exit", kind)
		}
		for _, r := range allowed {
			e, _ := c.Exit(kind, r)
			if money := r == disbursement.ResolutionPaid || r == disbursement.ResolutionRefused; money && (!e.NeedsTwo || !e.NeedsReference) {
				t.Errorf("%s of %s: %+v", r, kind, e)
			}
		}
	}
}

// Integrators are told of four events, each once.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, e := range disbursement.EventTypes() {
		if name := e.Webhook(); name != "" && names[name] {
			t.Errorf("%s twice", name)
		} else if name != "" {
			names[name] = true
		}
	}
	for _, want := range []string{"disbursement.completed", "disbursement.line_refused", "disbursement.line_returned", "disbursement.held"} {
		if !names[want] {
			t.Errorf("nobody is told of %s", want)
		}
	}
	if len(names) != 4 {
		t.Errorf("%v", names)
	}
}

// No statement proves a refusal, or the operator answers by letter: two people decide, and the line is paid again or is paid.
func TestSettleUnproven(t *testing.T) {
	t.Parallel()
	for paid, want := range map[bool]disbursement.LineStatus{true: disbursement.LinePaid, false: disbursement.LineRefused} {
		w := one(t)
		w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Unproven: true})
		do := disbursement.Settle{Paid: paid, Reference: "letter 7", ProposedBy: "ben"}
		w.no(disbursement.CodeNeedsTwo, disbursement.Command{Batch: "b", Do: do})
		do.Approved = "cleo"
		w.ok(disbursement.Command{Batch: "b", Do: do})
		w.want("b", want)
		if !paid {
			w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
		}
	}
}
