package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/origin"
)

// DifferencesAtMost is the largest number of differences that a verification names.
const DifferencesAtMost = 1000

// VerifyConfig says what Verify compares.
type VerifyConfig struct {
	Kafka   kafka.Config
	Decoder Decoder
	// From and Before bound the days of rows: from From up to but not including Before, UTC. Zero for all.
	From, Before time.Time
	// Since, if it is not zero, is a time before all records that make rows of these days; records before it
	// are not read. It is compared with the times of records in Kafka.
	Since time.Time
	// Progress, which may be nil, is told how many records were read.
	Progress kafka.Progress
}

// Fault says in which way a row differs from Kafka.
type Fault = string

// Faults of rows.
const (
	FaultMissing   Fault = "missing"   // Kafka has the record, ClickHouse has not the row
	FaultDifferent Fault = "different" // a column has another value
	FaultAdded     Fault = "added"     // no record makes the row
)

// Difference is a row of ClickHouse that Kafka does not have so.
type Difference struct {
	Table string
	Fault Fault
	// Row names the row as errors do, and Day is the day that selects its partition.
	Row string
	Day time.Time
	// TenantID is the agency; empty for none.
	TenantID string
	// Columns are those that differ.
	Columns []ColumnDifference
	// Topic, Partition and Offset are where the record is; Topic is empty for a row that was added.
	Topic     string
	Partition int32
	Offset    int64
}

// ColumnDifference has both values of a column as text.
type ColumnDifference struct{ Name, ClickHouse, Kafka string }

// Verified is the result of a verification.
type Verified struct {
	// Rows is how many rows Kafka's records make, and Records how many records were read.
	Rows, Records int64
	// Missing, Different and Added count the rows that differ.
	Missing, Different, Added int64
	// Differences names them, DifferencesAtMost at most.
	Differences []Difference
	// Unreadable is the number of records that cannot be decoded. They are in the poison topic.
	Unreadable int64
	// Unproven is the number of outcomes of deliveries that do not prove which worker made them: forged ones, and
	// those of releases before 2026-11-29. ClickHouse may have rows of them and need not.
	Unproven int64
	// Positions are the offsets below which rows were demanded, by topic/partition without the prefix.
	Positions map[string]int64
}

// Holds reports whether all rows are those that Kafka's records make.
func (v Verified) Holds() bool { return v.Missing == 0 && v.Different == 0 && v.Added == 0 }

// Verify compares the rows of ClickHouse with those that the records in Kafka make, column by column. It
// writes nothing. The sink may run: rows of records at or above its positions may be there or not. Its memory
// is some 24 bytes a row. Rows of attempts and calls are not demanded to have a record, because Kafka keeps
// those for 90 days.
func (s *Store) Verify(ctx context.Context, cfg VerifyConfig) (Verified, error) {
	cl, err := cfg.Kafka.Client()
	if err != nil {
		return Verified{}, err
	}
	defer cl.Close()
	v := &verification{store: s, cfg: cfg, adm: kadm.NewClient(cl), out: Verified{Positions: map[string]int64{}}, spans: map[string]map[int32]kafka.Span{}}
	for _, step := range []func(context.Context) error{v.bound, v.readKafka, v.readClickHouse, v.readLater, v.name} {
		if err := step(ctx); err != nil {
			return Verified{}, err
		}
	}
	return v.out, nil
}

// verification is a verification under way.
type verification struct {
	store *Store
	cfg   VerifyConfig
	adm   *kadm.Client
	out   Verified
	// spans are the records whose rows must be there, by topic without the prefix.
	spans map[string]map[int32]kafka.Span
	// marks are those of the rows of these records, sorted, and seen tells which of them ClickHouse has.
	marks    []mark
	seen     []bool
	unproven int64 // in all records read up to now
	// suspects are rows of ClickHouse that differ from marks, and suspicious marks of them all.
	suspects   map[uint64]Row
	suspicious []mark
}

// bound sets the spans.
func (v *verification) bound(ctx context.Context) error {
	positions, err := v.store.Positions(ctx)
	if err != nil {
		return err
	}
	written := map[string]int64{}
	for _, p := range positions {
		written[p.At()] = p.Position
	}
	for _, topic := range Topics() {
		name := v.cfg.Kafka.Prefix + topic
		spans, err := kafka.Bounds(ctx, v.adm, name)
		if err != nil {
			return err
		}
		begin := map[int32]int64{}
		if !v.cfg.Since.IsZero() && topic != schemas.TopicCases { // whose entries do not say where they stand
			if begin, err = kafka.Offsets(v.adm.ListOffsetsAfterMilli(ctx, v.cfg.Since.UnixMilli(), name)); err != nil {
				return fmt.Errorf("asking %s for its offsets: %w", name, err)
			}
		}
		for p, span := range spans {
			span.From, span.To = max(span.From, begin[p]), min(span.To, written[Position{Topic: name, Partition: p}.At()])
			spans[p] = span
			v.out.Positions[fmt.Sprintf("%s/%d", topic, p)] = span.To
		}
		v.spans[topic] = spans
	}
	return nil
}

// covers reports whether the day of a row is one of those to verify.
func (v *verification) covers(r Row) bool {
	day := partitionDay(r)
	return !day.Before(v.cfg.From) && (v.cfg.Before.IsZero() || day.Before(v.cfg.Before))
}

// each calls do with the rows of the records in spans.
func (v *verification) each(ctx context.Context, spans map[string]map[int32]kafka.Span, do func(*kgo.Record, Row)) (unreadable, records int64, err error) {
	for _, topic := range Topics() {
		err := v.cfg.Kafka.Read(ctx, v.cfg.Kafka.Prefix+topic, spans[topic], v.cfg.Progress, func(r *kgo.Record) (bool, error) {
			records++
			rows, err := v.cfg.Decoder.Rows(r)
			if origin.Unproven(err) {
				v.unproven++
				return true, nil
			}
			if errors.Is(err, schemas.ErrUndecodable) || errors.Is(err, consume.ErrRefused) {
				unreadable++
				return true, nil
			}
			if err != nil {
				return false, err
			}
			for _, row := range rows {
				if e, ok := row.(*Entry); ok && e.ofCase() {
					rows = append(rows, e.caseRow())
				}
			}
			for _, row := range rows {
				if v.covers(row) {
					do(r, row)
				}
			}
			return true, nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return unreadable, records, nil
}

// readKafka sets the marks.
func (v *verification) readKafka(ctx context.Context) (err error) {
	v.out.Unreadable, v.out.Records, err = v.each(ctx, v.spans, func(_ *kgo.Record, row Row) { v.marks = append(v.marks, markOf(row)) })
	v.out.Unproven = v.unproven
	// Of the rows that one key has, those of the highest version come first.
	slices.SortFunc(v.marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(b.version, a.version)) })
	v.seen = make([]bool, len(v.marks))
	for i := range v.marks {
		if i == 0 || v.marks[i].key != v.marks[i-1].key {
			v.out.Rows++
		}
	}
	return err
}

// first returns the first mark of a key.
func (v *verification) first(key uint64) (int, bool) {
	return slices.BinarySearchFunc(v.marks, key, func(m mark, key uint64) int { return cmp.Compare(m.key, key) })
}

// readClickHouse compares the rows of ClickHouse with the marks.
func (v *verification) readClickHouse(ctx context.Context) error {
	v.suspects = map[uint64]Row{}
	for _, t := range tables {
		if t.identity == nil {
			continue
		}
		if err := v.readTable(ctx, t); err != nil {
			return fmt.Errorf("reading %s: %w", t.name, err)
		}
	}
	return nil
}

func (v *verification) readTable(ctx context.Context, t *table) error {
	day := strings.Split(t.columns, ", ")[t.day]
	before := v.cfg.Before
	if before.IsZero() {
		before = latest
	}
	// The versions of a row are in one partition of all tables but case_rows, which has one.
	rows, err := v.store.conn.Query(ctx, fmt.Sprintf(`SELECT %s FROM %s FINAL WHERE toDate(%[3]s) >= toDate(?) AND toDate(%[3]s) < toDate(?)
		SETTINGS do_not_merge_across_partitions_select_final = 1`, t.columns, t.name, day), max(v.cfg.From.Format(time.DateOnly), "1970-01-01"), min(before.Format(time.DateOnly), "2149-06-06"))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		row := reflect.New(t.row).Interface().(Row)
		if err := rows.ScanStruct(row); err != nil {
			return err
		}
		v.compare(row)
	}
	return rows.Err()
}

// compare looks a row of ClickHouse up in the marks.
func (v *verification) compare(row Row) {
	m := markOf(row)
	i, known := v.first(m.key)
	if known {
		v.seen[i] = true
		for j := i; j < len(v.marks) && v.marks[j].key == m.key && v.marks[j].version == v.marks[i].version; j++ {
			if v.marks[j].digest == m.digest {
				return
			}
		}
	} else if !v.demands(row) {
		return
	}
	v.suspicious = append(v.suspicious, m)
	if len(v.suspects) < DifferencesAtMost {
		v.suspects[m.key] = row
	}
}

// demands reports whether a row must have a record in the spans.
func (v *verification) demands(row Row) bool {
	in := func(topic string, partition int32, offset int64) bool {
		return offset >= v.spans[topic][partition].From
	}
	switch row := row.(type) {
	case *Entry:
		if row.Type != EntryTypeEvent {
			return false
		}
		return row.Sequence == 0 || in(schemas.TopicEvents, row.SourcePartition, row.SourceOffset)
	case *Expected:
		return in(row.SourceTopic, row.SourcePartition, row.SourceOffset)
	case *Line:
		return in(schemas.TopicStatements, row.SourcePartition, row.SourceOffset)
	case *Finding:
		return in(schemas.TopicReconciliation, row.SourcePartition, row.SourceOffset)
	case *DayTotal:
		return in(schemas.TopicReconciliation, row.SourcePartition, row.SourceOffset)
	case *MatchRun:
		return in(schemas.TopicReconciliation, row.SourcePartition, row.SourceOffset)
	case *Close:
		return in(schemas.TopicReconciliation, row.SourcePartition, row.SourceOffset)
	}
	return true
}

// readLater takes those suspects back that a record makes at or above the positions.
func (v *verification) readLater(ctx context.Context) error {
	if len(v.suspicious) > 0 {
		later := map[string]map[int32]kafka.Span{}
		for _, topic := range Topics() {
			spans, err := kafka.Bounds(ctx, v.adm, v.cfg.Kafka.Prefix+topic)
			if err != nil {
				return err
			}
			for p, span := range spans {
				span.From = max(span.From, v.spans[topic][p].To)
				spans[p] = span
			}
			later[topic] = spans
		}
		made := map[mark]bool{}
		if _, _, err := v.each(ctx, later, func(_ *kgo.Record, row Row) {
			m := markOf(row)
			made[mark{m.key, m.digest, 0}] = true
		}); err != nil {
			return err
		}
		v.suspicious = slices.DeleteFunc(v.suspicious, func(m mark) bool {
			if !made[mark{m.key, m.digest, 0}] {
				return false
			}
			delete(v.suspects, m.key)
			return true
		})
	}
	for _, m := range v.suspicious {
		if _, known := v.first(m.key); known {
			v.out.Different++
		} else {
			v.out.Added++
		}
	}
	for i := range v.marks {
		if (i == 0 || v.marks[i].key != v.marks[i-1].key) && !v.seen[i] {
			v.out.Missing++
		}
	}
	return nil
}

// name names the differences. The records are read a second time, because only marks were kept.
func (v *verification) name(ctx context.Context) error {
	if v.out.Holds() {
		return nil
	}
	found := map[uint64]Difference{}
	for key, row := range v.suspects {
		if _, known := v.first(key); !known {
			found[key] = differenceOf(FaultAdded, row)
		}
	}
	if v.out.Missing+v.out.Different > 0 {
		if _, _, err := v.each(ctx, v.spans, func(r *kgo.Record, row Row) { v.nameOf(found, r, row) }); err != nil {
			return err
		}
	}
	for _, d := range found {
		v.out.Differences = append(v.out.Differences, d)
	}
	slices.SortFunc(v.out.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), a.Day.Compare(b.Day), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Fault, b.Fault))
	})
	if len(v.out.Differences) > DifferencesAtMost {
		v.out.Differences = v.out.Differences[:DifferencesAtMost]
	}
	return nil
}

// nameOf names the difference of a row of a record, if it has one.
func (v *verification) nameOf(found map[uint64]Difference, r *kgo.Record, row Row) {
	m := markOf(row)
	i, _ := v.first(m.key)
	if m.version != v.marks[i].version {
		return // another record of the row counts
	}
	stored, suspect := v.suspects[m.key]
	if !suspect && (v.seen[i] || len(found) >= DifferencesAtMost) {
		return
	}
	d := differenceOf(FaultMissing, row)
	if suspect {
		d.Fault, d.Columns = FaultDifferent, columnsOf(stored, row)
	}
	d.Topic, d.Partition, d.Offset = strings.TrimPrefix(r.Topic, v.cfg.Kafka.Prefix), r.Partition, r.Offset
	found[m.key] = d
}

func differenceOf(fault Fault, row Row) Difference {
	t, v := row.table(), reflect.ValueOf(row).Elem()
	tenant := v.FieldByName("TenantID").String()
	return Difference{Table: t.name, Fault: fault, Row: row.key(), Day: partitionDay(row), TenantID: tenant}
}

// columnsOf returns the columns in which two rows differ.
func columnsOf(stored, made Row) (out []ColumnDifference) {
	a, b := reflect.ValueOf(stored).Elem(), reflect.ValueOf(made).Elem()
	for i, name := range strings.Split(stored.table().columns, ", ") {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if !slices.Equal(appendValue(nil, x), appendValue(nil, y)) {
			out = append(out, ColumnDifference{name, columnText(x), columnText(y)})
		}
	}
	return out
}

// columnText returns a value for people.
func columnText(value any) string {
	switch v := value.(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case *time.Time:
		if v == nil {
			return ""
		}
		return v.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}
