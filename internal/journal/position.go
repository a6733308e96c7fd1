package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/kafka/consume"
)

// Position says how far the database has what a partition's records make.
type Position struct {
	Topic     string `ch:"topic"` // with the prefix
	Partition int32  `ch:"partition"`
	// Position is the offset below which all records have their rows in this database.
	Position int64 `ch:"position"`
	// Goal is the highest Position that the tables had.
	Goal int64 `ch:"goal"`
}

// At returns the partition as texts name it: topic/partition.
func (p Position) At() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

// ErrRestored says that the database lacks rows that the journal had: it was restored from an older backup.
var ErrRestored = errors.New("ClickHouse lacks rows that the journal had, as after a restore from an older backup")

// Positions returns all stored positions. They are in the database, beside the rows, so that a restored backup
// has the positions of its rows.
func (s *Store) Positions(ctx context.Context) ([]Position, error) {
	var out []Position
	if err := s.conn.Select(ctx, &out, "SELECT topic, partition, position, goal FROM journal_positions FINAL ORDER BY topic, partition"); err != nil {
		return nil, fmt.Errorf("reading the journal's positions: %w", err)
	}
	return out, nil
}

// Move stores positions after the rows below them. It returns consume.ErrMoved if a stored position is not
// Move.From: the database was restored, or another writer has the partition.
//
// ClickHouse has no transaction over tables. If the process dies between the rows and their position, or two
// writers move a position at once, records are read again, and their rows replace themselves.
func (s *Store) Move(ctx context.Context, moves []consume.Move) error {
	all, err := s.Positions(ctx)
	if err != nil {
		return err
	}
	var to []Position
	for _, m := range moves {
		p := Position{Topic: m.Topic, Partition: m.Partition, Position: consume.None}
		if i := slices.IndexFunc(all, func(o Position) bool { return o.Topic == m.Topic && o.Partition == m.Partition }); i >= 0 {
			p = all[i]
		}
		if p.Position == m.From {
			to = append(to, Position{p.Topic, p.Partition, m.To, max(p.Goal, m.To)})
			continue
		}
		moved := fmt.Errorf("%s: the database has the position %d, the sink came from %d: %w", p.At(), p.Position, m.From, consume.ErrMoved)
		if p.Goal < m.From && p.Position != consume.None { // restored while the sink ran
			p.Goal = m.From
			moved = errors.Join(moved, s.SetPositions(ctx, p))
		}
		return moved
	}
	return s.SetPositions(ctx, to...)
}

// SetPositions stores positions, whatever is stored.
func (s *Store) SetPositions(ctx context.Context, positions ...Position) error {
	if len(positions) == 0 {
		return nil
	}
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO journal_positions (topic, partition, position, goal)")
	if err != nil {
		return fmt.Errorf("writing the journal's positions: %w", err)
	}
	defer func() { _ = batch.Close() }()
	for i := range positions {
		err = errors.Join(err, batch.AppendStruct(&positions[i]))
	}
	if err = errors.Join(err, batch.Send()); err != nil {
		return fmt.Errorf("writing the journal's positions: %w", err)
	}
	return nil
}

// Adopt stores the offsets that the sink's group has committed, by topic (with the prefix), as positions of a
// database of a release before there were positions: one with entries and without any position. A database
// without entries was made anew and gets all records again.
func (s *Store) Adopt(ctx context.Context, committed kadm.OffsetResponses) error {
	var entries, positions uint64
	if err := s.conn.QueryRow(ctx, "SELECT (SELECT count() FROM (SELECT 1 FROM journal LIMIT 1)), (SELECT count() FROM journal_positions)").Scan(&entries, &positions); err != nil {
		return fmt.Errorf("reading the journal's positions: %w", err)
	}
	if entries == 0 || positions > 0 {
		return nil
	}
	var adopted []Position
	committed.Each(func(o kadm.OffsetResponse) { adopted = append(adopted, Position{o.Topic, o.Partition, o.At, o.At}) })
	return s.SetPositions(ctx, adopted...)
}

// Begin returns the positions of a topic (its name with the prefix) at which the sink goes on. Where the database
// is behind the offsets that its group has committed, Begin notes these as the goal, so that readers of the
// database know.
func (s *Store) Begin(ctx context.Context, topic string, committed kadm.OffsetResponses) (map[int32]int64, error) {
	all, err := s.Positions(ctx)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	var behind []Position
	for _, p := range all {
		if p.Topic != topic {
			continue
		}
		out[p.Partition] = p.Position
		if o, ok := committed.Lookup(topic, p.Partition); ok && o.At > p.Goal {
			p.Goal = o.At
			behind = append(behind, p)
		}
	}
	return out, s.SetPositions(ctx, behind...)
}

// Whole returns ErrRestored, with what to do, if the database is behind what it once had. committed are the
// offsets that the sink's group has committed; without them a restore is found after the sink has seen it.
func (s *Store) Whole(ctx context.Context, committed kadm.OffsetResponses) error {
	positions, err := s.Positions(ctx)
	if err != nil {
		return err
	}
	return Whole(positions, committed)
}

// Whole is Store.Whole for positions that were read.
func Whole(positions []Position, committed kadm.OffsetResponses) error {
	var lacks []string
	for _, p := range positions {
		o, _ := committed.Lookup(p.Topic, p.Partition)
		if goal := max(p.Goal, o.At); p.Position < goal {
			lacks = append(lacks, fmt.Sprintf("%s from %d to %d", p.At(), p.Position, goal))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%w (%s): `quittance rebuild journal` writes them, and so does `quittance sink journal` in its own time", ErrRestored, strings.Join(lacks, ", "))
}
