package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// Line is a row of statement_lines: a line of an accepted statement. Like an Entry it is
// derived from its Kafka record only. Absent text is empty. Amounts are minor units of
// Currency.
type Line struct {
	ID string `ch:"line_id"`
	// Content is a hash of what the line says (ContentOf).
	Content uint64 `ch:"content"`
	// LocalDay is the day of the booking. It selects the partition by its month and is part of
	// the sorting key.
	LocalDay time.Time  `ch:"local_day"`
	At       *time.Time `ch:"at"`

	TenantID     string    `ch:"tenant_id"`
	Livemode     bool      `ch:"livemode"`
	Account      string    `ch:"account"`
	StatementID  string    `ch:"statement_id"`
	ImportID     string    `ch:"import_id"`
	ImportedAt   time.Time `ch:"imported_at"`
	Number       uint64    `ch:"number"`
	Occurrence   uint32    `ch:"occurrence"`
	SourceLine   uint32    `ch:"source_line"`
	SourceColumn uint32    `ch:"source_column"`

	Kind          string `ch:"kind"`
	Currency      string `ch:"currency"`
	Amount        int64  `ch:"amount"`
	FeeAmount     int64  `ch:"fee_amount"`
	NetAmount     int64  `ch:"net_amount"`
	Reversal      bool   `ch:"reversal"`
	OperatorRef   string `ch:"operator_ref"`
	PaymentRef    string `ch:"payment_ref"`
	NoticeRef     string `ch:"notice_ref"`
	Batch         string `ch:"batch"`
	DetailsUnused uint32 `ch:"details_unused"`
	// Life is how often the same line was withdrawn before. It is part of Content, so that a line
	// may be imported again after its withdrawal.
	Life uint32 `ch:"life"`
	// Withdrawn marks the row after which the line of this life does not count any more. Its amounts are
	// the opposite. It is part of the sorting key.
	Withdrawn bool `ch:"withdrawn"`

	SourcePartition int32 `ch:"source_partition"`
	SourceOffset    int64 `ch:"source_offset"`
	// Version is higher for a lower offset: of the records of a line the first stays.
	Version uint64 `ch:"version"`
}

var lineTable = tableOf[Line]("statement_lines").by("local_day", "tenant_id", "account", "livemode", "line_id", "content", "withdrawn")

// ContentOf returns the hash of what a line says, with the amounts as they were imported. It must never
// change: rows of the same line and content are one.
func ContentOf(l *Line) uint64 {
	b := make([]byte, 0, 256)
	for _, text := range []string{l.Kind, l.Currency, l.OperatorRef, l.PaymentRef, l.NoticeRef, l.Batch} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.AppendVarint(binary.AppendVarint(b, l.Amount), l.FeeAmount)
	b = binary.AppendVarint(b, l.LocalDay.Unix())
	if l.At != nil {
		b = binary.AppendVarint(b, l.At.UnixMilli())
	}
	if l.Reversal {
		b = append(b, 1)
	}
	if l.Life > 0 { // lines of earlier releases have the first life
		b = binary.AppendUvarint(append(b, "life"...), uint64(l.Life))
	}
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// LineRow returns the name of a row of statement_lines in findings: its local day, such as 2026-11-23,
// the id of the line and the hash of its content.
func LineRow(day, lineID string, content uint64) string {
	return day + "/" + lineID + "#" + strconv.FormatUint(content, 16)
}

// LineRowSQL is LineRow as an expression of the columns of statement_lines. ClickHouse's hex writes pairs of
// digits, LineRow writes no leading zero.
const LineRowSQL = "concat(toString(local_day), '/', line_id, '#', substring(lower(hex(content)), 1 + startsWith(hex(content), '0')))"

// Row returns LineRow of the row.
func (l *Line) Row() string { return LineRow(l.LocalDay.Format(time.DateOnly), l.ID, l.Content) }

// Validate returns an error that wraps ErrInvalidEntry unless the line can be written.
func (l *Line) Validate() error {
	switch {
	case l.ID == "" || l.TenantID == "" || l.Account == "":
		return fmt.Errorf("%w: a line of a statement without id, agency or account", ErrInvalidEntry)
	case l.NetAmount != l.Amount-l.FeeAmount:
		return fmt.Errorf("%w: line %s has the net %d of %d less %d", ErrInvalidEntry, l.ID, l.NetAmount, l.Amount, l.FeeAmount)
	}
	times := []*time.Time{&l.LocalDay, &l.ImportedAt}
	if l.At != nil {
		times = append(times, l.At)
	}
	return validTimes(l.ID, times...)
}

func (l *Line) table() *table { return lineTable }
func (l *Line) key() string   { return l.ID }
