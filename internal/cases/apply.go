package cases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"quittance/internal/kafka/consume"
)

var positions = consume.Positions{Table: "case_positions", Next: "next"}

// Positions returns the stored positions of a topic by partition.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	return positions.Read(ctx, s.pool, topic)
}

// Apply writes cases and the positions after their records in one transaction. A stored
// case of a higher sequence stays as it is, so that order and repetition do not matter. The
// proposals of a closed case are void, except the one that closed it. Errors are those of
// consume.Positions.Apply; applying the batch again does no harm.
func (s *Store) Apply(ctx context.Context, read []Case, moves []consume.Move) error {
	writes, err := writing(read)
	if err != nil {
		return err
	}
	if err := positions.Apply(ctx, s.pool, moves, writes); err != nil {
		return fmt.Errorf("applying cases: %w", err)
	}
	return nil
}

// writing returns the statements for the last snapshot of each case, sorted by id, so that
// two writers cannot deadlock. A case comes before its proposals, as in all transactions.
func writing(read []Case) (*pgx.Batch, error) {
	last, recorded := map[string]Case{}, map[string]bool{}
	var ended []Case
	for _, c := range read {
		if c.EndedAs != "" {
			ended = append(ended, c)
			continue
		}
		recorded[c.ID] = recorded[c.ID] || c.Recorded
		if known, ok := last[c.ID]; !ok || known.Sequence < c.Sequence {
			last[c.ID] = c
		}
	}
	batch := &pgx.Batch{}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		c := last[id]
		args, err := c.args()
		if err != nil {
			return nil, err
		}
		batch.Queue(upsert, args...)
		if recorded[id] {
			batch.Queue(`UPDATE cases SET recorded = true WHERE id = $1 AND NOT recorded`, id)
		}
		if !c.Open() {
			// The sink ends the proposal that closed the case.
			batch.Queue(`
				UPDATE case_proposals SET state = 'void', finished_at = $5
				WHERE case_id = $1 AND (state = 'open' OR state = 'approved' AND (resolution, reference, proposer) <> ($2, $3, $4))`,
				c.ID, string(c.Resolution), c.Reference, c.ClosedBy, c.ClosedAt)
		}
	}
	slices.SortFunc(ended, func(a, b Case) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range ended {
		if c.Sequence == beforeOpening {
			args, err := c.args()
			if err != nil {
				return nil, err
			}
			batch.Queue(upsert, args...)
		}
		batch.Queue(`UPDATE cases SET ended_as = $2, ended_at = $3, ended_reason = $4 WHERE id = $1 AND ended_at IS NULL`, c.ID, string(c.EndedAs), c.EndedAt, orNull(c.EndedReason))
	}
	return batch, nil
}

var upsert = func() string {
	names := strings.Split(strings.Join(strings.Fields(columns), ""), ",")
	params, sets := make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		params[i], sets[i] = fmt.Sprintf("$%d", i+1), n+" = excluded."+n
	}
	return fmt.Sprintf(`INSERT INTO cases AS c (%s) VALUES (%s) ON CONFLICT (id) DO UPDATE SET %s WHERE c.sequence < excluded.sequence`,
		columns, strings.Join(params, ", "), strings.Join(sets, ", "))
}()
