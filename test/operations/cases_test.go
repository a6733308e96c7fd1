package operations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/test/harness"
)

// Money arrives after the end of its session. Until now its order was blocked for ever.
// Two members of staff honour it on the command line: the session is completed, the
// integrator and the ERP are told, and the order is paid. A completed payment is given
// back in the same way, and its order is free.
func TestOperatorCases(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	up := harness.NewUp(t)
	up.Start(t)
	o := caseOperator{harness.Operator{Up: up}}
	jean, mireille := o.as(t, "Jean Mabiala", "impots"), o.as(t, "Mireille Okemba", "impots")
	o.Refused(t, "QUITTANCE_STAFF_KEY", "staff", "add", "--name", "Paul", "--agency", "impots")
	o.Refused(t, "is active", "staff", "add", "--name", "JEAN mabiala")
	o.Says(t, "Mireille Okemba", "staff", "list")

	late := o.Create(t, "late")
	o.Citizen(late.ID).Pay(t, "06 600 00 10")
	o.Collected(t, late)
	o.Advance(t, 5*time.Minute+2*time.Second) // the operator approves thirty seconds after the window
	o.Becomes(t, late.ID, "failed")
	o.Advance(t, time.Minute)
	c := o.opened(t, late.ID, "late_payment")
	if c.OrderID != "late" || c.Amount == 0 || c.Currency != "XAF" || c.OpenedAt == "" {
		t.Errorf("the case is %+v", c)
	}
	if a := o.Post(t, harness.GuichetKey, `{"order_id":"late","amount":5000,"service_code":"patente"}`); !strings.Contains(string(a.Body), "checkout.order_under_review") {
		t.Errorf("another session of the order: %d %s", a.Status, a.Body)
	}
	o.Refused(t, "set QUITTANCE_STAFF_KEY", "cases", "propose", c.ID, "honour", "--reason", "r")
	jean.Refused(t, "RESOLUTION: a case of kind late_payment is resolved by one of: honour; refund; write_off", "cases", "propose", c.ID, "acknowledge", "--reason", "r")
	jean.Refused(t, "--reference", "cases", "propose", c.ID, "refund", "--reason", "r")
	jean.Says(t, "Another person approves it with `quittance-dev cases approve "+c.ID+"`", "cases", "propose", c.ID, "honour", "--reason", "the citizen waits")
	jean.Refused(t, "another person", "cases", "approve", c.ID)
	mireille.Says(t, "carried_out, approved by Mireille Okemba", "cases", "approve", c.ID)
	o.Becomes(t, late.ID, "completed")
	o.Delivered(t, late.ID, "checkout.completed")
	o.Confirmed(t, late)
	mireille.Refused(t, "was closed at", "cases", "reject", c.ID, "--reason", "r")

	paid := o.Create(t, "returned")
	o.Citizen(paid.ID).Pay(t, "06 600 00 01")
	o.Becomes(t, paid.ID, "completed")
	var opened struct{ ID string }
	jean.JSON(t, &opened, "cases", "open", paid.ID, "--reason", "wrong taxpayer")
	if c := o.opened(t, paid.ID, "refund_request"); c.ID != opened.ID {
		t.Errorf("the case is %+v, want %s", c, opened.ID)
	}
	mireille.Says(t, "refund", "cases", "propose", opened.ID, "refund", "--reason", "wrong taxpayer", "--reference", "wire 7")
	mireille.Says(t, "withdrawn", "cases", "reject", opened.ID, "--reason", "withdrawn")
	mireille.Says(t, "--proposal 2", "cases", "propose", opened.ID, "refund", "--reason", "wrong taxpayer", "--reference", "wire 8")
	jean.Refused(t, "say which", "cases", "approve", opened.ID)
	jean.Says(t, "wire 8", "cases", "approve", opened.ID, "--proposal", "2")
	o.Create(t, "returned")
	// The ERP has a confirmation of the money: a person tells it.
	o.opened(t, paid.ID, "reversal")

	o.Misused(t, "--kind", "cases", "list", "--kind", "nothing")
	o.Refused(t, "no agency", "cases", "list", "--agency", "nobody")
	o.Refused(t, "no case that you may see", "cases", "show", "case_nothing")
	jean.Refused(t, "SESSION: no session", "cases", "open", "chs_nothing", "--reason", "r")
	o.Says(t, "is revoked", "staff", "revoke", "jean mabiala")
	jean.Refused(t, "is revoked", "cases", "list")
}

// caseOperator runs the commands for staff and cases.
type caseOperator struct{ harness.Operator }

// as makes a member of staff, whose commands the result runs.
func (o caseOperator) as(t *testing.T, name, agency string) caseOperator {
	t.Helper()
	var made struct{ ID, Key string }
	o.JSON(t, &made, "staff", "add", "--name", name, "--agency", agency)
	if made.ID == "" || !strings.HasPrefix(made.Key, "st_") {
		t.Fatalf("staff add prints %q and a key of %d letters", made.ID, len(made.Key))
	}
	return caseOperator{harness.Operator{Up: o.Up, StaffKey: made.Key}}
}

// caseShown is a case as `cases list --json` prints it.
type caseShown struct {
	ID, Kind, State, Currency string
	SessionID                 string `json:"session_id"`
	OrderID                   string `json:"order_id"`
	OpenedAt                  string `json:"opened_at"`
	Amount                    int64
}

// opened waits for an open case of a session.
func (o caseOperator) opened(t *testing.T, session, kind string) (c caseShown) {
	t.Helper()
	harness.Eventually(t, "a case of kind "+kind, func() error {
		var list []caseShown
		o.JSON(t, &list, "cases", "list", "--kind", kind, "--state", "open")
		for _, c = range list {
			if c.SessionID == session {
				return nil
			}
		}
		return fmt.Errorf("%+v", list)
	})
	return c
}
