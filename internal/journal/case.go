package journal

import (
	"fmt"
	"time"
)

// caseRow is a row of case_rows: an event of an operator case, with what the view cases
// shows. It is a part of the event's entry.
type caseRow struct {
	CaseID        string            `ch:"case_id"`
	ID            string            `ch:"entry_id"`
	OccurredAt    time.Time         `ch:"occurred_at"`
	Event         string            `ch:"event"`
	TenantID      string            `ch:"tenant_id"`
	ApplicationID string            `ch:"application_id"`
	Livemode      bool              `ch:"livemode"`
	SessionID     string            `ch:"session_id"`
	OrderID       string            `ch:"order_id"`
	OperatorRef   string            `ch:"operator_ref"`
	Currency      string            `ch:"currency"`
	TotalAmount   int64             `ch:"total_amount"`
	Detail        map[string]string `ch:"detail"`
}

// caseRowsOf returns the rows of the entries that are events of cases. Other events may name
// a case too, such as the checkout.completed that comes from one: they have no case_kind.
func caseRowsOf(entries []Entry) (rows []caseRow) {
	for i := range entries {
		e := &entries[i]
		if e.Type != EntryTypeEvent || e.Detail["case_id"] == "" || e.Detail["case_kind"] == "" {
			continue
		}
		rows = append(rows, caseRow{
			CaseID: e.Detail["case_id"], ID: e.ID, OccurredAt: e.OccurredAt, Event: e.Event, TenantID: e.TenantID, ApplicationID: e.ApplicationID, Livemode: e.Livemode,
			SessionID: e.SessionID, OrderID: e.OrderID, OperatorRef: e.OperatorRef, Currency: e.Currency, TotalAmount: e.TotalAmount, Detail: e.Detail,
		})
	}
	return rows
}

// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
func (r *caseRow) Validate() error {
	if r.ID == "" {
		return fmt.Errorf("%w: no id", ErrInvalidEntry)
	}
	return validTimes(r.ID, &r.OccurredAt)
}

func (r *caseRow) key() string { return r.ID }
