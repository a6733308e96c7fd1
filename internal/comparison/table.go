package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// ErrRestored says that the table was emptied or restored while it was compared.
var ErrRestored = errors.New("the table was emptied or restored while it was compared; compare it again when its sink has caught up")

const (
	// rowsInMemory is how many rows a verification keeps in memory, some 200 bytes each.
	rowsInMemory = 500_000
	// rowsAtOnce is how many rows a statement reads.
	rowsAtOnce = 5000
)

// oneSnapshot sees the positions and the rows of one moment.
var oneSnapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// Table is a table of Postgres whose rows records in Kafka make. S is what is kept of the records of a row.
type Table[S any] struct {
	Name string
	// Query selects the rows, with the id of a row in the first column. IDs are texts that open nothing.
	Query string
	// Others are further tables that the same records make: all are compared by one reading. The id of a row is then that of
	// RowID, for Take and in the first column that Check gets.
	Others []Rows
	// Topics are the records, by their names without the installation's prefix.
	Topics []string
	// Positions are those of the sink that writes the rows.
	Positions consume.Positions
	// Take takes what a record says of rows. of returns what is kept of a row; nil for one that is not compared now. Errors
	// that wrap schemas.ErrUndecodable count the record as unreadable.
	Take func(r Record, of func(id string) *S) error
	// Check compares a row with what is kept of its records, which is nil if there are none. It is called for each row.
	Check func(s *S, row []any) Verdict
	// Missing returns what makes the row if Postgres must have it; nil if it need not.
	Missing func(s *S) *Made
}

// Rows are the rows of a table: its name, and the query that selects them as Table.Query does.
type Rows struct{ Name, Query string }

// RowID is the id of a row where several tables are compared by one reading.
func RowID(table, id string) string { return table + "|" + id }

// tables returns all tables that are compared.
func (t *Table[S]) tables() []Rows { return append([]Rows{{t.Name, t.Query}}, t.Others...) }

// named returns the table and the id of a row.
func (t *Table[S]) named(id string) (table, row string) {
	if len(t.Others) == 0 {
		return t.Name, id
	}
	table, row, _ = strings.Cut(id, "|")
	return table, row
}

// Record is a record that a Table takes.
type Record struct {
	*kgo.Record
	// Topic is without the installation's prefix.
	Topic string
	full  bool
}

// Make returns values that the record makes.
func (r Record) Make(values ...any) Made {
	m := Made{hash: hashOf(values), place: place{r.Topic, r.Partition, r.Offset}}
	if r.full {
		m.values = values
	}
	return m
}

// Verdict is what a Table says of a row. The zero value says that it is as its records make it.
type Verdict struct {
	// Fault is empty for a row that is right.
	Fault Fault
	// Older says that the records of the row are deleted, or prove nothing: it has no fault.
	Older   bool
	Columns []Column
	// By is what should have made the row; nil for a row that was added.
	By *Made
	// At is what the row is about.
	At time.Time
}

// Config says what to compare. Kafka and Pool are required.
type Config struct {
	Kafka kafka.Config
	Pool  *pgxpool.Pool
	// AtOnce is the number of rows to keep in memory; half a million when zero. More are compared in several parts, each of
	// which reads the records again.
	AtOnce int
	// Progress, which may be nil, is told how many records of a topic were read.
	Progress kafka.Progress
}

// Verify compares the rows of the table with those that the records make. It writes nothing. The sink may run: rows and
// positions are read in one snapshot of the database, and demanded are the records below the positions, so that a table
// that is behind has no difference. A row that records above the positions make is right, too. Errors are ErrRestored and
// those of Kafka, Postgres and the schema registry.
func (t *Table[S]) Verify(ctx context.Context, cfg Config) (Result, error) {
	cl, err := cfg.Kafka.Client()
	if err != nil {
		return Result{}, err
	}
	defer cl.Close()
	v := &verification[S]{Table: t, cfg: cfg, adm: kadm.NewClient(cl), suspects: map[uint64]bool{}}
	v.cfg.AtOnce = cmp.Or(cfg.AtOnce, rowsInMemory)
	for low, done := uint64(0), false; !done; {
		p := &part[S]{verification: v, low: low, high: math.MaxUint64, first: low == 0}
		if err := p.compare(ctx); err != nil {
			return Result{}, fmt.Errorf("comparing %s with Kafka: %w", t.Name, err)
		}
		low, done = p.high+1, p.high == math.MaxUint64
	}
	if len(v.suspects) > 0 {
		p := &part[S]{verification: v, high: math.MaxUint64, full: true}
		if err := p.compare(ctx); err != nil {
			return Result{}, fmt.Errorf("comparing %s with Kafka: %w", t.Name, err)
		}
	}
	slices.SortFunc(v.out.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Row, b.Row))
	})
	return v.out, nil
}

// verification is a verification under way.
type verification[S any] struct {
	*Table[S]
	cfg      Config
	adm      *kadm.Client
	out      Result
	suspects map[uint64]bool // rows that seem to differ, by the hashes of their ids
}

// kept is what a part keeps of a row.
type kept[S any] struct {
	of    S
	there bool // Postgres has the row
}

// part compares the rows whose ids have hashes from low to high. A full part compares the suspects, and names what differs.
type part[S any] struct {
	*verification[S]
	low, high   uint64
	full, first bool
	rows        map[uint64]*kept[S]
	begin, read map[string]map[int32]int64 // by topic
	stored      map[uint64][]any           // rows of Postgres, of a full part
	ids         map[uint64]string          // of a full part
}

func (p *part[S]) wants(key uint64) bool {
	if p.full {
		return p.suspects[key]
	}
	return key >= p.low && key <= p.high
}

// of returns what is kept of a row.
func (p *part[S]) of(id string) *S {
	key := HashText(id)
	if !p.wants(key) {
		return nil
	}
	known := p.rows[key]
	if known == nil {
		known = new(kept[S])
		p.rows[key] = known
		if p.full {
			p.ids[key] = id
		}
		if len(p.rows) > p.cfg.AtOnce && !p.full {
			p.shrink()
		}
		if !p.wants(key) {
			return nil
		}
	}
	return &known.of
}

// shrink leaves a quarter of the rows to the next part.
func (p *part[S]) shrink() {
	keys := slices.Sorted(maps.Keys(p.rows))
	p.high = keys[len(keys)*3/4]
	maps.DeleteFunc(p.rows, func(key uint64, _ *kept[S]) bool { return key > p.high })
}

// compare compares the part. It sets high to a lower bound when it has too many rows.
func (p *part[S]) compare(ctx context.Context) error {
	p.rows, p.begin, p.read = map[uint64]*kept[S]{}, map[string]map[int32]int64{}, map[string]map[int32]int64{}
	p.stored, p.ids = map[uint64][]any{}, map[uint64]string{}
	for _, topic := range p.Topics {
		spans, err := kafka.Bounds(ctx, p.adm, p.cfg.Kafka.Prefix+topic)
		if err != nil {
			return err
		}
		p.begin[topic] = map[int32]int64{}
		for partition, span := range spans {
			p.begin[topic][partition] = span.From
		}
		p.read[topic] = maps.Clone(p.begin[topic])
	}
	// The first reading takes long, the second one little, and what is then read beside the snapshot of the database almost
	// nothing.
	for range 2 {
		if _, err := p.readTo(ctx, p.cfg.Pool); err != nil {
			return err
		}
	}
	if err := pgx.BeginTxFunc(ctx, p.cfg.Pool, oneSnapshot, func(tx pgx.Tx) error {
		reached, err := p.readTo(ctx, tx)
		if err != nil {
			return err
		}
		for topic, read := range p.read {
			for partition, at := range read {
				if reached[topic][partition] < at && at > p.begin[topic][partition] {
					return ErrRestored
				}
			}
		}
		return p.readRows(ctx, tx)
	}); err != nil {
		return err
	}
	if !p.full {
		for key, r := range p.rows {
			if !r.there && p.Missing(&r.of) != nil {
				p.suspect(key)
			}
		}
		return nil
	}
	return p.name(ctx)
}

// readTo reads the records up to the positions that the database has, and returns these.
func (p *part[S]) readTo(ctx context.Context, from interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
},
) (map[string]map[int32]int64, error) {
	reached := map[string]map[int32]int64{}
	for _, topic := range p.Topics {
		at, err := p.Positions.Read(ctx, from, p.cfg.Kafka.Prefix+topic)
		if err == nil {
			err = p.readTopic(ctx, topic, at)
		}
		if err != nil {
			return nil, err
		}
		reached[topic] = at
	}
	return reached, nil
}

// readTopic reads the records of a topic up to offsets. nil reads all.
func (p *part[S]) readTopic(ctx context.Context, topic string, to map[int32]int64) error {
	ends, err := kafka.Bounds(ctx, p.adm, p.cfg.Kafka.Prefix+topic)
	if err != nil {
		return err
	}
	spans := map[int32]kafka.Span{}
	for partition, from := range p.read[topic] {
		end := ends[partition].To
		if to != nil {
			end = min(end, to[partition])
		}
		if end > from {
			spans[partition] = kafka.Span{From: from, To: end}
		}
	}
	err = p.cfg.Kafka.Read(ctx, p.cfg.Kafka.Prefix+topic, spans, p.cfg.Progress, func(r *kgo.Record) (bool, error) {
		err := p.Take(Record{Record: r, Topic: topic, full: p.full}, p.of)
		if p.first {
			p.out.Records++
		}
		if errors.Is(err, schemas.ErrUndecodable) {
			if err = nil; p.first {
				p.out.Unreadable++
			}
		}
		return true, err
	})
	for partition, span := range spans {
		p.read[topic][partition] = span.To
	}
	return err
}

// readRows compares the rows of Postgres, which it reads through a cursor, because no statement may take long.
func (p *part[S]) readRows(ctx context.Context, tx pgx.Tx) error {
	for _, t := range p.tables() {
		if err := p.readTable(ctx, tx, t); err != nil {
			return fmt.Errorf("reading %s: %w", t.Name, err)
		}
	}
	return nil
}

func (p *part[S]) readTable(ctx context.Context, tx pgx.Tx, t Rows) error {
	cursor := "compared_" + t.Name
	if _, err := tx.Exec(ctx, "DECLARE "+cursor+" NO SCROLL CURSOR FOR "+t.Query); err != nil {
		return err
	}
	for n := rowsAtOnce; n == rowsAtOnce; {
		n = 0
		rows, err := tx.Query(ctx, fmt.Sprintf(`FETCH %d FROM %s`, rowsAtOnce, cursor))
		if err != nil {
			return err
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				rows.Close()
				return err
			}
			n++
			if id, ok := values[0].(string); ok && len(p.Others) > 0 {
				values[0] = RowID(t.Name, id)
			}
			p.take(values)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "CLOSE "+cursor)
	return err
}

// take compares a row of Postgres.
func (p *part[S]) take(row []any) {
	id, _ := row[0].(string)
	key := HashText(id)
	if !p.wants(key) {
		return
	}
	known := p.rows[key]
	if known != nil {
		known.there = true
	}
	if p.full {
		p.stored[key], p.ids[key] = row, id
		return
	}
	p.out.Rows++
	var s *S
	if known != nil {
		s = &known.of
	}
	switch v := p.Check(s, row); {
	case v.Older:
		p.out.Older++
	case v.Fault != "":
		p.suspect(key)
	}
}

// suspect has a row compared again, to name what differs.
func (p *part[S]) suspect(key uint64) {
	switch {
	case p.suspects[key]:
	case len(p.suspects) >= AtMost:
		p.out.Unnamed++
	default:
		p.suspects[key] = true
	}
}

// name names the suspects that differ, also from what records above the positions make.
func (p *part[S]) name(ctx context.Context) error {
	found := p.differences()
	if len(found) == 0 {
		return nil
	}
	for _, topic := range p.Topics {
		if err := p.readTopic(ctx, topic, nil); err != nil {
			return err
		}
	}
	still := p.differences()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if _, differs := still[key]; differs {
			p.out.Differences = append(p.out.Differences, found[key])
		}
	}
	return nil
}

// differences compares the rows of a full part.
func (p *part[S]) differences() map[uint64]Difference {
	out := map[uint64]Difference{}
	differs := func(key uint64, v Verdict) {
		if v.Fault == "" || v.Older {
			return
		}
		table, row := p.named(p.ids[key])
		d := Difference{Table: table, Fault: v.Fault, Row: row, At: v.At, Columns: v.Columns, Offset: -1}
		if v.By != nil {
			d.Topic, d.Partition, d.Offset = v.By.topic, v.By.partition, v.By.offset
		}
		out[key] = d
	}
	for key, row := range p.stored {
		var s *S
		if known := p.rows[key]; known != nil {
			s = &known.of
		}
		differs(key, p.Check(s, row))
	}
	for key, known := range p.rows {
		if _, there := p.stored[key]; there {
			continue
		}
		if by := p.Missing(&known.of); by != nil {
			differs(key, Verdict{Fault: FaultMissing, By: by})
		}
	}
	return out
}
