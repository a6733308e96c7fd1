package sessions

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"quittance/checkout"
	"quittance/internal/deliveries"
	"quittance/money/localtime"
)

// derived is a table of the read model: its rows are those that checkout.events makes. The sink writes
// the rows, and a verification compares them.
type derived struct {
	name string
	// columns that events decide, those of the primary key first.
	columns []string
	// key is the number of columns that name a row.
	key int
	// session is the index of the column with the session's id.
	session int
}

// Tables of the read model.
var (
	sessionsTable = &derived{name: "sessions", key: 1, columns: []string{
		"id", "application_id", "livemode", "order_id", "customer_id", "payment_ref", "status", "sequence", "snapshot", "citizen_id", "dues",
		"transactions", "paid_at", "reversed_at", "returned", "returned_at", "completed_at", "undecided_since",
	}}
	eventsTable = &derived{name: "session_events", key: 2, columns: []string{
		"session_id", "sequence", "application_id", "livemode", "event_id", "event", "occurred_at", "body",
	}}
	cashTable = &derived{name: "cash_movements", key: 3, columns: []string{
		"session_id", "collection_id", "kind", "agency_id", "livemode", "clerk", "at", "day", "amount", "payment_ref", "notice_refs", "service_label", "counter", "receipt",
	}}
	reversalsTable = &derived{name: "cashin_reversals", key: 1, columns: []string{
		"session_id", "application_id", "livemode", "number", "external_number", "amount", "reason", "reversed_at",
	}}
	// The sink schedule writes accepted_at, too, so it is not among the columns.
	confirmationsTable = &derived{name: "erp_confirmations", key: 1, session: 1, columns: deliveries.CompletionColumns()}

	derivedTables = []*derived{sessionsTable, eventsTable, cashTable, reversalsTable, confirmationsTable}
)

// Columns of rows that a verification looks at.
const (
	eventSequence = 1
	eventBody     = 7
)

// list returns the columns for a statement.
func (t *derived) list() string { return strings.Join(t.columns, ", ") }

// insert begins the statement that adds a row.
func (t *derived) insert() string {
	marks := make([]string, len(t.columns))
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	return fmt.Sprintf("INSERT INTO %s AS s (%s) VALUES (%s) ", t.name, t.list(), strings.Join(marks, ", "))
}

// upsertSession replaces the row of a session by that of a later event.
var upsertSession = func() string {
	set := make([]string, 0, len(sessionsTable.columns))
	for _, c := range sessionsTable.columns[sessionsTable.key:] {
		set = append(set, c+" = excluded."+c)
	}
	return sessionsTable.insert() + "ON CONFLICT (id) DO UPDATE SET " + strings.Join(set, ", ") + " WHERE s.sequence < excluded.sequence"
}()

// Statements that add a row once. A stored row stays as it is.
var (
	insertEvent    = eventsTable.insert() + "ON CONFLICT DO NOTHING"
	insertCash     = cashTable.insert() + "ON CONFLICT DO NOTHING"
	insertReversal = reversalsTable.insert() + "ON CONFLICT DO NOTHING"
)

// row is a row of a table, with a value for each of its columns.
type row struct {
	table  *derived
	values []any
}

// sessionRow returns the row of a session after an event.
func sessionRow(s Snapshot) row {
	transactions, paidAt, reversedAt := paidIn(s.Session)
	returned, returnedAt := returnedIn(s.Session)
	return row{sessionsTable, []any{
		s.ID, s.ApplicationID, s.Live, s.OrderID, optionalText(s.CustomerID), s.PaymentRef, string(s.Status), s.Sequence, s.Value, optionalText(s.CitizenID), duesOf(s.Session),
		transactions, paidAt, reversedAt, returned, returnedAt, completedAt(s.Session), optional(s.UndecidedSince()),
	}}
}

// eventRow returns the row of the event that integrators are told of.
func eventRow(s Snapshot, e *Event) row {
	return row{eventsTable, []any{s.ID, e.Sequence, s.ApplicationID, s.Live, e.ID, string(e.Type), e.OccurredAt, e.Body}}
}

// cashRows returns the rows of a session's movements of cash. Movements never change.
func cashRows(s Snapshot) (out []row) {
	for _, m := range s.Cash() {
		out = append(out, row{cashTable, []any{
			m.SessionID, m.CollectionID, string(m.Kind), m.AgencyID, m.Live, m.Clerk, m.At, localtime.Day(m.At), m.Amount, m.PaymentRef,
			strings.Join(m.NoticeRefs, " "), storable(m.ServiceLabel), storable(m.Counter), storable(m.Receipt),
		}})
	}
	return out
}

// reversalRows returns the row of a payment of the deprecated cash-in surface whose money was given back. A
// session is reversed once.
func reversalRows(s Snapshot) []row {
	if s.Cashin == nil || s.Status != checkout.StatusCompleted || s.ReversedAt.IsZero() {
		return nil
	}
	return []row{{reversalsTable, []any{
		s.ID, s.ApplicationID, s.Live, s.Cashin.Number, storable(s.OrderID), s.Amount, string(s.ReversalReason), s.ReversedAt,
	}}}
}

// completions returns the payments of a session of which an ERP is to be told.
func completions(s Snapshot) (out []deliveries.Completion) {
	for _, due := range s.Dues() {
		if s.Status != checkout.StatusCompleted || due.ERPDueRef == "" {
			continue
		}
		out = append(out, deliveries.Completion{
			TransactionID: due.TransactionID, SessionID: s.ID, TenantID: s.TenantID, Live: s.Live,
			CompletedAt: s.EndedAt, AcceptedAt: due.Confirmation.SettledAt,
		})
	}
	return out
}

// stateRows returns the rows that a session has after an event, without those of its events: that of the
// session comes first.
func stateRows(s Snapshot) []row {
	out := append([]row{sessionRow(s)}, cashRows(s)...)
	out = append(out, reversalRows(s)...)
	for _, c := range completions(s) {
		out = append(out, row{confirmationsTable, c.Row()})
	}
	return out
}

// refused reports whether Postgres cannot hold a text of a row.
func (r row) refused() bool {
	for _, value := range r.values {
		var text string
		switch v := value.(type) {
		case string:
			text = v
		case *string:
			if v != nil {
				text = *v
			}
		}
		if strings.Contains(text, "\x00") || !utf8.ValidString(text) {
			return true
		}
	}
	return false
}

// optionalText returns nil for an empty text.
func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// completedAt returns what the column completed_at of a session has.
func completedAt(s checkout.Session) *time.Time {
	if s.Status != checkout.StatusCompleted {
		return nil
	}
	return optional(s.EndedAt)
}

// optional returns nil for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
