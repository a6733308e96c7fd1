package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Fault says how Postgres differs from the topic.
type Fault string

// The faults of rows.
const (
	// FaultMissing is a record without its row: the row was removed, or is younger than the backup of a restored
	// database.
	FaultMissing Fault = "missing"
	// FaultChanged is a row, or its number, that is not as it was recorded.
	FaultChanged Fault = "changed"
	// FaultAdded is a row without a record.
	FaultAdded Fault = "added"
	// FaultLate is a row that says to be more than an hour older than its record: somebody has written it with a time
	// of the past, or no relay ran. The first rows of the topic are those of releases without it, and are not late.
	FaultLate Fault = "late"
	// FaultUnsigned is a row that no program with the key has written: somebody has inserted it, or a command ran
	// without the master keys. Rows that were recorded before the first signed one are of earlier releases.
	FaultUnsigned Fault = "unsigned"
)

// Faults has all faults.
func Faults() []Fault {
	return []Fault{FaultMissing, FaultChanged, FaultAdded, FaultLate, FaultUnsigned}
}

const (
	// lateAfter is the time between an operation and its record from which the row is FaultLate.
	lateAfter = time.Hour
	// relayWithin is how long Verify waits for the relay.
	relayWithin = 30 * time.Second
	lookEvery   = 100 * time.Millisecond
)

// Column is a column that differs. Kafka has no text of origin and detail, only their hash.
type Column struct {
	Name, Postgres, Kafka string
}

// Finding is a row that is not as it was recorded. The texts are those of the row, and of the record when the row is
// missing.
type Finding struct {
	Fault Fault
	// Sequence is the number of the record; zero for a row that has none.
	Sequence int64
	RowID    int64
	At       time.Time // UTC
	// RecordedAt is when the record was written; zero without a record.
	RecordedAt                        time.Time
	ActorKind, Actor, Action, Subject string
	// Columns are those of a changed row that differ.
	Columns []Column
	// Accepted says that people have recorded that they know of it (Accept).
	Accepted bool

	digest string // of the row, hexadecimal; empty when it is missing
}

// Verified is the result of a verification.
type Verified struct {
	Rows, Records int64
	// Unreadable is the number of records that another program has written: they prove nothing.
	Unreadable int64
	// Findings are in the order of their numbers; those without a number come last.
	Findings []Finding
}

// Count returns the number of findings with a fault that nobody has accepted.
func (v Verified) Count(f Fault) (n int64) {
	for _, found := range v.Findings {
		if found.Fault == f && !found.Accepted {
			n++
		}
	}
	return n
}

// Holds reports whether Postgres has what the topic has, but for findings that were accepted.
func (v Verified) Holds() bool {
	return !slices.ContainsFunc(v.Findings, func(f Finding) bool { return !f.Accepted })
}

// VerifyConfig says what to compare.
type VerifyConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	Pool  *pgxpool.Pool
	// Since is the earliest time of rows and records; zero for all.
	Since time.Time
	// AllRecords reads all records whatever their time: the service's clock is not that of the broker.
	AllRecords bool
	// ClockMoves says that the service's clock is one that people move: a row of before may be recorded "a day later", and none is
	// FaultLate.
	ClockMoves bool
	// Within is how long to wait for the relay to record the rows of now; 30 s when zero. Rows that it has not
	// recorded then are FaultAdded.
	Within time.Duration
}

// Verify compares the audit table with the topic. It writes nothing.
func Verify(ctx context.Context, cfg VerifyConfig) (Verified, error) {
	v, err := cfg.verify(ctx)
	if err != nil {
		return Verified{}, fmt.Errorf("comparing the audit table with Kafka: %w", err)
	}
	return v, nil
}

func (cfg VerifyConfig) verify(ctx context.Context) (Verified, error) {
	from, end, err := cfg.bounds(ctx)
	if err != nil {
		return Verified{}, err
	}
	if err := cfg.awaitRelay(ctx, end); err != nil {
		return Verified{}, err
	}
	c := comparison{since: cfg.Since, clockMoves: cfg.ClockMoves, byRow: map[proof]*entry{}, bySequence: map[int64]*entry{}, byID: map[int64][]*entry{}}
	err = pgx.BeginTxFunc(ctx, cfg.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var next int64
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(next), 0) FROM audit_position`).Scan(&next); err != nil {
			return err
		}
		// The relay writes a record before it commits the number: those of this snapshot are below next.
		if next > end {
			if _, end, err = cfg.bounds(ctx); err != nil {
				return err
			}
			end = min(next, end)
		}
		first := from == 0
		c.Unreadable, err = read(ctx, cfg.Kafka, cfg.Codec, from, end, func(rec *record.AuditRow, _ int64) error {
			c.take(rec, &first)
			return nil
		})
		if err != nil {
			return err
		}
		return c.compare(ctx, tx)
	})
	return c.Verified, err
}

// bounds returns the offset of the first record to read, and that after the last.
func (cfg VerifyConfig) bounds(ctx context.Context) (from, end int64, err error) {
	cl, err := cfg.Kafka.Client()
	if err != nil {
		return 0, 0, err
	}
	defer cl.Close()
	adm, topic := kadm.NewClient(cl), cfg.Kafka.Prefix+schemas.TopicAudit
	spans, err := kafka.Bounds(ctx, adm, topic)
	if err != nil || cfg.Since.IsZero() || cfg.AllRecords {
		return 0, spans[0].To, err
	}
	starts, err := kafka.Offsets(adm.ListOffsetsAfterMilli(ctx, cfg.Since.Add(-lateAfter).UnixMilli(), topic))
	return min(starts[0], spans[0].To), spans[0].To, err
}

// awaitRelay waits, with a bound, until the relay has read the topic up to an offset and has numbered the rows of now.
func (cfg VerifyConfig) awaitRelay(ctx context.Context, end int64) error {
	var last int64
	if err := cfg.Pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM audit`).Scan(&last); err != nil {
		return err
	}
	for until := time.Now().Add(cmp.Or(cfg.Within, relayWithin)); ; {
		var done bool
		err := cfg.Pool.QueryRow(ctx, `SELECT coalesce((SELECT next >= $1 FROM audit_position), false)
			AND NOT EXISTS (SELECT FROM audit a WHERE a.id <= $2 AND NOT EXISTS (SELECT FROM audit_sequence s WHERE s.row_id = a.id))`, end, last).Scan(&done)
		if err != nil || done || time.Now().After(until) {
			return err
		}
		if !consume.Sleep(ctx, lookEvery) {
			return ctx.Err()
		}
	}
}

// proof is what a record proves: that a row has a hash.
type proof struct {
	id     int64
	digest [sha256.Size]byte
}

// entry is a record that counts.
type entry struct {
	*record.AuditRow
	late, unsigned bool
	seen           bool // its row was found
}

// comparison compares records with rows. The first record of a number, and of a row as it is, counts.
type comparison struct {
	Verified
	since      time.Time
	clockMoves bool
	highest    int64
	signs      bool // a row before was signed
	list       []*entry
	byRow      map[proof]*entry
	bySequence map[int64]*entry
	byID       map[int64][]*entry
	accepting  []acceptance
}

// take takes a record. first stays true while the records are those of rows that are older than the topic.
func (c *comparison) take(r *record.AuditRow, first *bool) {
	c.Records++
	p := proof{r.RowID, [sha256.Size]byte{}}
	copy(p.digest[:], r.Digest)
	if r.Sequence <= c.highest || c.byRow[p] != nil {
		return // a relay lost its lock while it wrote
	}
	c.highest = r.Sequence
	late := r.RecordedAt.Sub(r.At) > lateAfter && !c.clockMoves
	*first = *first && late
	c.signs = c.signs || r.Proof == proofSigned
	e := &entry{AuditRow: r, late: late && !*first, unsigned: r.Proof == proofUnsigned || r.Proof == "" && c.signs}
	c.list, c.byRow[p], c.bySequence[r.Sequence], c.byID[r.RowID] = append(c.list, e), e, e, append(c.byID[r.RowID], e)
}

// compare compares the rows of a snapshot with the records.
func (c *comparison) compare(ctx context.Context, tx pgx.Tx) error {
	lowest := int64(1) << 62
	for _, e := range c.list {
		if !e.At.Before(c.since) {
			lowest = e.Sequence
			break
		}
	}
	rows, err := tx.Query(ctx, `SELECT `+columns+` FROM audit a LEFT JOIN audit_sequence s ON s.row_id = a.id WHERE a.at >= $1 OR s.sequence >= $2 ORDER BY s.sequence NULLS LAST, a.id`, c.since, lowest)
	if err != nil {
		return err
	}
	var unproved []row
	var v row
	_, err = pgx.ForEachRow(rows, v.targets(), func() error {
		proved, err := c.prove(v.utc())
		if !proved {
			unproved = append(unproved, v.utc())
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, v := range unproved {
		c.unproved(v)
	}
	for _, e := range c.list {
		if !e.seen && e.Sequence >= lowest {
			c.Findings = append(c.Findings, ofRecord(FaultMissing, e.AuditRow))
		}
	}
	slices.SortStableFunc(c.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(numbered(b), numbered(a)), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.RowID, b.RowID))
	})
	c.accept()
	return nil
}

func numbered(f Finding) int { return min(1, int(min(f.Sequence, 1))) }

// prove looks for the record of a row as it is.
func (c *comparison) prove(v row) (proved bool, err error) {
	c.Rows++
	digest, err := v.digest()
	if err != nil {
		return false, err
	}
	e := c.byRow[proof{v.id, digest}]
	if e == nil {
		return false, nil
	}
	e.seen = true
	switch {
	case v.sequence != 0 && v.sequence != e.Sequence:
		f := ofRow(FaultChanged, v)
		f.Sequence, f.RecordedAt = e.Sequence, e.RecordedAt
		f.Columns = []Column{{"sequence", strconv.FormatInt(v.sequence, 10), strconv.FormatInt(e.Sequence, 10)}}
		c.Findings = append(c.Findings, f)
	case e.late:
		f := ofRow(FaultLate, v)
		f.RecordedAt = e.RecordedAt
		c.Findings = append(c.Findings, f)
	case e.unsigned:
		f := ofRow(FaultUnsigned, v)
		f.RecordedAt = e.RecordedAt
		c.Findings = append(c.Findings, f)
	case v.action == actionAccept:
		c.accepting = append(c.accepting, readAcceptance(v.detail)...)
	}
	return true, nil
}

// unproved names a row that no record has as it is: one that was changed has a record of its number or its id. One
// without a number may have the id of a row that a restored database has lost.
func (c *comparison) unproved(v row) {
	e := c.bySequence[v.sequence]
	if e == nil || e.seen {
		i := slices.IndexFunc(c.byID[v.id], func(e *entry) bool { return !e.seen })
		if i < 0 || v.sequence == 0 {
			c.Findings = append(c.Findings, ofRow(FaultAdded, v))
			return
		}
		e = c.byID[v.id][i]
	}
	e.seen = true
	f := ofRow(FaultChanged, v)
	f.Sequence, f.RecordedAt, f.Columns = e.Sequence, e.RecordedAt, differing(v, e.AuditRow)
	c.Findings = append(c.Findings, f)
}

// differing returns the columns of a row that are not as in its record.
func differing(v row, r *record.AuditRow) (out []Column) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, c := range []Column{
		{"sequence", number(v.sequence), number(r.Sequence)},
		{"id", number(v.id), number(r.RowID)},
		{"at", v.at.Truncate(time.Millisecond).Format(time.RFC3339Nano), r.At.UTC().Format(time.RFC3339Nano)},
		{"actor_kind", v.kind, r.ActorKind},
		{"actor", v.actor, r.Actor},
		{"action", v.action, r.Action},
		{"subject", v.subject, r.Subject},
	} {
		if c.Postgres != c.Kafka {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		out = []Column{{Name: "origin, detail, agency, salt, or a part of a millisecond"}}
	}
	return out
}

func ofRow(fault Fault, v row) Finding {
	f := Finding{Fault: fault, Sequence: v.sequence, RowID: v.id, At: v.at, ActorKind: v.kind, Actor: v.actor, Action: v.action, Subject: v.subject}
	if digest, err := v.digest(); err == nil {
		f.digest = fmt.Sprintf("%x", digest)
	}
	return f
}

func ofRecord(fault Fault, r *record.AuditRow) Finding {
	return Finding{
		Fault: fault, Sequence: r.Sequence, RowID: r.RowID, At: r.At.UTC(), RecordedAt: r.RecordedAt.UTC(), ActorKind: r.ActorKind, Actor: r.Actor, Action: r.Action, Subject: r.Subject,
	}
}
