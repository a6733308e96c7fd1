package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/comparison"
	"quittance/internal/kafka"
	"quittance/schemas"
)

// ErrRebuilt says that the read model was emptied or restored while it was compared.
var ErrRebuilt = errors.New("the read model was emptied or restored while it was compared; compare it again when the sink readmodel has caught up")

const (
	// DifferencesAtMost is the largest number of differences that a verification names, and of sessions that it
	// examines for them.
	DifferencesAtMost = comparison.AtMost
	// sessionsAtOnce is how many sessions a verification keeps in memory, some 100 bytes each.
	sessionsAtOnce = 1_000_000
	// slack is how much earlier than the id of a session the record of its first event may be.
	slack = 24 * time.Hour
	// rowsAtOnce is how many rows a statement reads.
	rowsAtOnce = 5000
)

// VerifyConfig says what Verify compares. Kafka and Codec are required.
type VerifyConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// From and Before bound the times at which sessions were made: from From up to but not including Before. Zero
	// for all.
	From, Before time.Time
	// AllRecords reads the records of all times for the sessions of any time: the service's clock is not that of
	// the records.
	AllRecords bool
	// AtOnce is the number of sessions to keep in memory; a million when zero. More sessions are compared in
	// several parts, the oldest first, each of which reads the events from its first session on.
	AtOnce int
	// Progress, which may be nil, is told how many records of a part were read.
	Progress kafka.Progress
}

// Differences of rows, as comparison has them.
type (
	Fault            = comparison.Fault
	Difference       = comparison.Difference
	ColumnDifference = comparison.Column
)

// Faults of rows.
const (
	FaultMissing   = comparison.FaultMissing
	FaultDifferent = comparison.FaultDifferent
	FaultAdded     = comparison.FaultAdded
)

// Faults returns all faults.
func Faults() []Fault { return comparison.Faults() }

// Verified is the result of a verification.
type Verified struct {
	// Sessions is how many sessions Kafka has, Rows how many rows of the read model were compared, and Records how
	// many events were read.
	Sessions, Rows, Records int64
	// Differences names rows that differ, DifferencesAtMost at most.
	Differences []Difference
	// Unnamed counts the sessions that seem to differ and were not examined, because there are more than
	// DifferencesAtMost.
	Unnamed int64
	// Older counts the rows whose events Kafka has deleted: nothing proves them. It deletes none outside developer
	// mode.
	Older int64
	// Unreadable is the number of records that cannot be decoded, or that Postgres cannot hold. They are in the
	// poison topic.
	Unreadable int64
	// Positions are the offsets up to which events were demanded, by partition.
	Positions map[int32]int64
}

// Count returns how many rows have a fault. Sessions that were not examined count as different.
func (v Verified) Count(f Fault) (n int64) {
	for _, d := range v.Differences {
		if d.Fault == f {
			n++
		}
	}
	if f == FaultDifferent {
		n += v.Unnamed
	}
	return n
}

// Holds reports whether all rows are those that Kafka's events make.
func (v Verified) Holds() bool { return len(v.Differences) == 0 && v.Unnamed == 0 }

// Add adds what the comparison of another table has found.
func (v *Verified) Add(other comparison.Result) {
	v.Rows += other.Rows
	v.Records += other.Records
	v.Older += other.Older
	v.Unreadable += other.Unreadable
	v.Unnamed += other.Unnamed
	v.Differences = append(v.Differences, other.Differences...)
	if more := len(v.Differences) - DifferencesAtMost; more > 0 {
		v.Differences = v.Differences[:DifferencesAtMost]
		v.Unnamed += int64(more)
	}
}

// Verify compares the rows of the read model with those that the events in Kafka make, column by column. It writes
// nothing. The sink may run: rows and positions are read in one snapshot of the database, and demanded are the events
// below the positions, so that a read model that is behind, such as a restored one, has no difference. A row that an
// event above the positions makes is right, too. Errors are ErrRebuilt and those of Kafka, Postgres and the schema
// registry.
//
// It keeps hashes of at most VerifyConfig.AtOnce sessions, whatever their number, and the rows of those that seem to
// differ, DifferencesAtMost at most.
//
// Not compared is when an ERP accepted a payment (erp_confirmations.accepted_at), which outcomes of deliveries say,
// too.
func (s *Store) Verify(ctx context.Context, cfg VerifyConfig) (Verified, error) {
	cl, err := cfg.Kafka.Client()
	if err != nil {
		return Verified{}, err
	}
	defer cl.Close()
	v := &verification{store: s, cfg: cfg, adm: kadm.NewClient(cl), topic: cfg.Kafka.Prefix + schemas.TopicEvents, out: Verified{Positions: map[int32]int64{}}}
	v.cfg.AtOnce = cmp.Or(cfg.AtOnce, sessionsAtOnce)
	p := &part{verification: v, from: cfg.From, before: cfg.Before, first: true}
	for {
		if err := p.verify(ctx); err != nil {
			return Verified{}, fmt.Errorf("comparing the read model with Kafka: %w", err)
		}
		if p.before.Equal(cfg.Before) {
			break
		}
		p = &part{verification: v, from: p.before, before: cfg.Before}
	}
	v.sort()
	return v.out, nil
}

// verification is a verification under way.
type verification struct {
	store    *Store
	cfg      VerifyConfig
	adm      *kadm.Client
	topic    string
	out      Verified
	examined int // sessions
}

func (v *verification) sort() {
	slices.SortFunc(v.out.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), a.At.Compare(b.At), strings.Compare(a.SessionID, b.SessionID), strings.Compare(a.Row, b.Row), strings.Compare(string(a.Fault), string(b.Fault)))
	})
	if more := len(v.out.Differences) - DifferencesAtMost; more > 0 {
		v.out.Differences = v.out.Differences[:DifferencesAtMost]
		v.out.Unnamed += int64(more)
	}
}

// stateHash is what a part keeps of a session.
type stateHash struct {
	made            time.Time
	first, sequence int64 // of its first and its last event
	// Sums of the hashes of rows: those of the last state, those of events with and without the bodies that are
	// not erased, and those of the others. A row of Postgres is taken off.
	state, told, bare, erased uint64
}

// part compares the sessions that were made in a time: as many as fit into memory.
type part struct {
	*verification
	from, before time.Time
	first        bool
	// low and high bound the ids; empty for no bound.
	low, high string
	start     map[int32]int64 // of the topic
	begin     map[int32]int64 // of the records of these sessions
	reached   map[int32]int64 // the positions of the snapshot of the database
	sessions  map[uint64]*stateHash
	unknown   map[uint64]string // sessions of rows that no event makes
	buf       []byte
}

// verify compares the part. When it has too many sessions, it sets before to an earlier time and compares those
// made before that.
func (p *part) verify(ctx context.Context) error {
	p.sessions, p.unknown = map[uint64]*stateHash{}, map[uint64]string{}
	p.bound()
	if err := p.begins(ctx); err != nil {
		return err
	}
	// The first reading takes long, the second one little, and what is then read beside the snapshot of the
	// database almost nothing.
	read := maps.Clone(p.begin)
	for range 2 {
		at, err := p.store.Positions(ctx, p.topic)
		if err != nil {
			return err
		}
		if err := p.readTo(ctx, read, at); err != nil {
			return err
		}
	}
	err := pgx.BeginTxFunc(ctx, p.store.pool, oneSnapshot, func(tx pgx.Tx) (err error) {
		if p.reached, err = positions.Read(ctx, tx, p.topic); err != nil {
			return err
		}
		for partition, at := range read {
			if p.reached[partition] < at && at > p.begin[partition] {
				return ErrRebuilt
			}
		}
		if err := p.readTo(ctx, read, p.reached); err != nil {
			return err
		}
		return p.readPostgres(ctx, tx)
	})
	if err != nil {
		return err
	}
	if p.first {
		if err := p.checkPositions(ctx); err != nil {
			return err
		}
	}
	p.out.Sessions += int64(len(p.sessions))
	return p.examine(ctx)
}

// bound sets the bounds of the ids.
func (p *part) bound() {
	p.low, p.high = "", ""
	if !p.from.IsZero() {
		p.low = checkout.SessionsSince(p.from)
	}
	if !p.before.IsZero() {
		p.high = checkout.SessionsSince(p.before)
	}
}

// covers reports whether a session is in the part.
func (p *part) covers(id string) bool { return id >= p.low && (p.high == "" || id < p.high) }

// begins finds where the topic begins, and the records of the part.
func (p *part) begins(ctx context.Context) error {
	spans, err := kafka.Bounds(ctx, p.adm, p.topic)
	if err != nil {
		return err
	}
	p.start, p.begin = map[int32]int64{}, map[int32]int64{}
	for partition, span := range spans {
		p.start[partition], p.begin[partition] = span.From, span.From
	}
	if p.from.IsZero() || p.cfg.AllRecords {
		return nil
	}
	since, err := kafka.Offsets(p.adm.ListOffsetsAfterMilli(ctx, p.from.Add(-slack).UnixMilli(), p.topic))
	if err != nil {
		return fmt.Errorf("asking %s for its offsets: %w", p.topic, err)
	}
	for partition, at := range since {
		p.begin[partition] = max(p.begin[partition], at)
	}
	return nil
}

// readTo adds the events from read up to offsets, and sets read.
func (p *part) readTo(ctx context.Context, read, to map[int32]int64) error {
	spans := map[int32]kafka.Span{}
	ends, err := kafka.Bounds(ctx, p.adm, p.topic)
	if err != nil {
		return err
	}
	for partition, from := range read {
		if end := min(to[partition], ends[partition].To); end > from {
			spans[partition] = kafka.Span{From: from, To: end}
		}
	}
	records, unreadable, err := p.each(ctx, spans, p.cfg.Progress, p.covers, p.add)
	if p.first { // whose records are those of all parts
		p.out.Records += records
		p.out.Unreadable += unreadable
	}
	for partition, span := range spans {
		read[partition] = span.To
	}
	return err
}

// each calls do with the snapshots of the sessions of a choice, in the order of a partition.
func (p *part) each(ctx context.Context, spans map[int32]kafka.Span, progress kafka.Progress, choose func(id string) bool, do func(*kgo.Record, Snapshot)) (records, unreadable int64, err error) {
	err = p.cfg.Kafka.Read(ctx, p.topic, spans, progress, func(rec *kgo.Record) (bool, error) {
		records++
		s, err := p.snapshot(rec.Value, choose)
		switch {
		case errors.Is(err, schemas.ErrUndecodable), errors.Is(err, ErrRefused):
			unreadable++
		case err != nil:
			return false, err
		case s != nil:
			do(rec, *s)
		}
		return true, nil
	})
	return records, unreadable, err
}

// snapshot reads a record as the sink does, if its session is one of a choice. It is nil for another one.
func (p *part) snapshot(value []byte, choose func(id string) bool) (*Snapshot, error) {
	e, s, err := read(p.cfg.Codec, value)
	if err != nil || s == nil || !choose(s.ID) {
		return nil, err
	}
	if s.Told, err = toldOf(e); err != nil {
		return nil, err
	}
	rows := stateRows(*s)
	if s.Told != nil {
		rows = append(rows, eventRow(*s, s.Told))
	}
	if slices.ContainsFunc(rows, row.refused) {
		return nil, ErrRefused
	}
	return s, nil
}

// hash returns the hash of a row.
func (p *part) hash(r row) (h uint64) {
	h, p.buf = r.hash(p.buf)
	return h
}

// add takes an event into the sums of its session. Later events have higher sequences; those that come once more
// change nothing.
func (p *part) add(_ *kgo.Record, s Snapshot) {
	key := hashOf(s.ID)
	known := p.sessions[key]
	if known == nil {
		made, err := checkout.SessionMade(s.ID)
		if err != nil {
			made = p.from // the processor makes no such id
		}
		known = &stateHash{made: made, first: s.Sequence}
		p.sessions[key] = known
	} else if s.Sequence <= known.sequence {
		return
	}
	known.sequence, known.state = s.Sequence, 0
	for _, r := range stateRows(s) {
		known.state += p.hash(r)
	}
	if s.Erased {
		known.erased += known.bare
		known.told, known.bare = 0, 0
	}
	if s.Told != nil {
		r := eventRow(s, s.Told)
		known.told += p.hash(r)
		r.values[eventBody] = nil
		known.bare += p.hash(r)
	}
	if len(p.sessions) > p.cfg.AtOnce {
		p.shrink()
	}
}

// shrink leaves the latest sessions to the next part.
func (p *part) shrink() {
	times := make([]time.Time, 0, len(p.sessions))
	for _, s := range p.sessions {
		times = append(times, s.made)
	}
	slices.SortFunc(times, time.Time.Compare)
	i := len(times) * 3 / 4
	for i < len(times) && !times[i].After(times[0]) { // a part has at least one time
		i++
	}
	if i == len(times) {
		return // sessions of one millisecond are compared together
	}
	p.before = times[i].Truncate(time.Millisecond)
	p.bound()
	maps.DeleteFunc(p.sessions, func(_ uint64, s *stateHash) bool { return !s.made.Before(p.before) })
}

// readPostgres takes the rows of the part off the sums.
func (p *part) readPostgres(ctx context.Context, tx pgx.Tx) error {
	for _, t := range derivedTables {
		where, args := "$1 <= "+t.columns[t.session], []any{p.low}
		if p.high != "" {
			where, args = where+" AND "+t.columns[t.session]+" < $2", append(args, p.high)
		}
		if err := p.readTable(ctx, tx, t, where, args); err != nil {
			return fmt.Errorf("reading %s: %w", t.name, err)
		}
	}
	return nil
}

// readTable reads a table through a cursor, because no statement may take long.
func (p *part) readTable(ctx context.Context, tx pgx.Tx, t *derived, where string, args []any) error {
	cursor := "compared_" + t.name // statements are prepared by their text
	if _, err := tx.Exec(ctx, fmt.Sprintf(`DECLARE %s NO SCROLL CURSOR FOR SELECT %s FROM %s WHERE %s`, cursor, t.list(), t.name, where), args...); err != nil {
		return err
	}
	for n := rowsAtOnce; n == rowsAtOnce; {
		n = 0
		if err := eachRow(ctx, tx, t, func(r row) { n++; p.take(r) }, fmt.Sprintf(`FETCH %d FROM %s`, rowsAtOnce, cursor)); err != nil {
			return err
		}
		p.out.Rows += int64(n)
	}
	_, err := tx.Exec(ctx, `CLOSE `+cursor)
	return err
}

// eachRow calls do with the rows of a query of a table.
func eachRow(ctx context.Context, tx pgx.Tx, t *derived, do func(row), query string, args ...any) error {
	found, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		values, err := found.Values()
		if err != nil {
			return err
		}
		do(row{t, values})
	}
	return found.Err()
}

// take takes a row of Postgres off the sum of its session.
func (p *part) take(r row) {
	id := r.sessionID()
	key := hashOf(id)
	known := p.sessions[key]
	switch {
	case p.unproven(id, known, r):
		p.out.Older++
	case known != nil:
		known.state -= p.hash(r)
	case len(p.unknown) < p.cfg.AtOnce:
		p.unknown[key] = id
	}
}

// unproven reports whether Kafka may have deleted the event of a row. known is nil for a session without an event.
func (p *part) unproven(id string, known *stateHash, r row) bool {
	partition, err := checkout.SessionPartition(id)
	if err != nil || p.start[partition] == 0 {
		return false
	}
	if known == nil {
		return true
	}
	sequence, _ := r.values[eventSequence].(int64)
	return r.table == eventsTable && sequence < known.first
}

// checkPositions finds positions that are beyond the end of the topic: the sink would not read what comes there.
func (p *part) checkPositions(ctx context.Context) error {
	ends, err := p.adm.ListEndOffsets(ctx, p.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("asking %s for its ends: %w", p.topic, err)
	}
	for partition, at := range p.reached {
		end, known := ends.Lookup(p.topic, partition)
		p.out.Positions[partition] = at
		if known && at <= end.Offset {
			continue
		}
		d := Difference{Table: positions.Table, Fault: FaultDifferent, Row: fmt.Sprint(partition), Topic: schemas.TopicEvents, Partition: partition, Offset: -1}
		if !known {
			d.Fault = FaultAdded
		}
		d.Columns = []ColumnDifference{{Name: positions.Next, Postgres: fmt.Sprint(at), Kafka: fmt.Sprint(max(end.Offset, 0))}}
		p.out.Differences = append(p.out.Differences, d)
	}
	return nil
}
