package comparison

import (
	"fmt"
	"time"
)

// Fault says in which way a row differs from Kafka.
type Fault string

// Faults of rows.
const (
	FaultMissing   Fault = "missing"   // a record makes the row, Postgres has it not
	FaultDifferent Fault = "different" // a column has another value
	FaultAdded     Fault = "added"     // no record makes the row
)

// Faults returns all faults.
func Faults() []Fault { return []Fault{FaultMissing, FaultDifferent, FaultAdded} }

// AtMost is the largest number of differences that a verification names.
const AtMost = 1000

// Difference is a row of Postgres that is not as the records in Kafka make it.
type Difference struct {
	Table string
	Fault Fault
	// Place is the part of a session's id that opens no page: for logs. SessionID opens the citizen's page. Both are empty
	// for a row that its own id names.
	Place, SessionID string
	// Row has what names the row beside the session, such as the sequence of an event; may be empty.
	Row string
	// At is when the session was made, or what the row is about; zero where it is not known.
	At time.Time
	// Columns are those that differ.
	Columns []Column
	// Topic, without the installation's prefix, Partition and Offset are where the record is that makes the row. Offset is
	// -1 for a row that was added.
	Topic     string
	Partition int32
	Offset    int64
}

// Record names the record that makes the row, as topic/partition/offset; empty for a row that was added.
func (d Difference) Record() string {
	if d.Offset < 0 {
		return ""
	}
	return fmt.Sprintf("%s/%d/%d", d.Topic, d.Partition, d.Offset)
}

// OwnID returns the id that names the row and opens nothing; empty for a row of a session.
func (d Difference) OwnID() string {
	if d.SessionID != "" || d.Place != "" {
		return ""
	}
	return d.Row
}

// Column has both values of a column as text.
type Column struct{ Name, Postgres, Kafka string }

// Result is what a verification of a table has found.
type Result struct {
	// Rows is how many rows were compared, and Records how many records were read.
	Rows, Records int64
	// Differences names rows that differ, AtMost at most. Unnamed counts the others.
	Differences []Difference
	Unnamed     int64
	// Older counts the rows whose records Kafka has deleted, or whose records prove nothing.
	Older int64
	// Unreadable is the number of records that cannot be decoded, or that Postgres cannot hold.
	Unreadable int64
}
