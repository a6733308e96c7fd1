package journal

import "time"

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

// ofCase reports whether the entry is an event of an operator case. Other events may name a case
// too, such as the checkout.completed that comes from one: they have no case_kind.
func (e *Entry) ofCase() bool {
	return e.Type == EntryTypeEvent && e.Detail["case_id"] != "" && e.Detail["case_kind"] != ""
}

// caseRow returns the row of an event of a case.
func (e *Entry) caseRow() *caseRow {
	return &caseRow{
		CaseID: e.Detail["case_id"], ID: e.ID, OccurredAt: e.OccurredAt, Event: e.Event,
		TenantID: e.TenantID, ApplicationID: e.ApplicationID, Livemode: e.Livemode, SessionID: e.SessionID, OrderID: e.OrderID,
		OperatorRef: e.OperatorRef, Currency: e.Currency, TotalAmount: e.TotalAmount, Detail: e.Detail,
	}
}

var caseTable = tableOf[caseRow]("case_rows").by("occurred_at", "tenant_id", "case_id", "entry_id")

// Validate returns nil: the row is valid when its entry is.
func (r *caseRow) Validate() error { return nil }

func (r *caseRow) table() *table { return caseTable }
func (r *caseRow) key() string   { return r.ID }
