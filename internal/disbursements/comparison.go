package disbursements

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/internal/comparison"
	"quittance/internal/operation"
	"quittance/schemas"
	"quittance/schemas/record"
)

// derived is what records say of a row. A column that a later record need not bring has values of its own.
type derived struct {
	sequence  int64
	row, kept comparison.Made
	known     bool // row is set
	hasKept   bool
}

// compared is a table of the read model, and how an event makes its rows.
type compared struct {
	name, query string
	// columns name the values of the row after its id, and kept the last one, if an event need not bring it.
	columns []string
	kept    string
	// snapshots are the columns that hold a record, by their index after the id, and make an empty one for a row: they are
	// compared by what they say, since an earlier release has written them in an earlier form.
	snapshots map[int]func(id string) record.Record
	take      func(h *Happened, at func(id string, sequence int64, row []any, kept any))
}

// tables are the tables of the read model.
var tables = []compared{
	{
		name:    "disbursement_batches",
		query:   `SELECT id, tenant_id, livemode, batch_ref, revision, status, held, opened_at, sequence, snapshot, sealing FROM disbursement_batches`,
		columns: []string{"tenant_id", "livemode", "batch_ref", "revision", "status", "held", "opened_at", "sequence", "snapshot"}, kept: "sealing",
		snapshots: map[int]func(string) record.Record{8: func(string) record.Record { return &record.Batch{} }, 9: func(string) record.Record { return &record.BatchSealing{} }},
		take: func(h *Happened, at func(string, int64, []any, any)) {
			if x := h.Event.Batch; x != nil {
				at(x.ID, x.Sequence, []any{x.TenantID, x.Live, x.BatchRef, int64(x.Revision), string(x.Status), x.Held(), x.OpenedAt, x.Sequence, h.batch}, orNull(h.sealing))
			}
		},
	},
	{
		name:    "disbursement_lines",
		query:   `SELECT batch || '/' || position, line_ref, status, case_kind, sequence, snapshot, sealed FROM disbursement_lines`,
		columns: []string{"line_ref", "status", "case_kind", "sequence", "snapshot"}, kept: "sealed",
		snapshots: map[int]func(string) record.Record{4: func(string) record.Record { return &record.BatchLine{} }},
		take: func(h *Happened, at func(string, int64, []any, any)) {
			for i, l := range h.Event.Lines {
				var sealed any
				if h.Event.Type == disbursement.EventLinesAdded {
					sealed = l.Sealed
				}
				at(fmt.Sprintf("%s/%d", l.Batch, l.Position), h.Event.Batch.Sequence, []any{l.Ref, string(l.Status), string(l.Case), h.Event.Batch.Sequence, h.lines[i]}, sealed)
			}
		},
	},
	{
		name:    "disbursement_steps",
		query:   `SELECT batch || '/' || sequence, type, at, lines, detail, partition, "offset" FROM disbursement_steps`,
		columns: []string{"type", "at", "lines", "detail", "partition", "offset"},
		take: func(h *Happened, at func(string, int64, []any, any)) {
			if x := h.Event.Batch; x != nil {
				detail := map[string]any{}
				for name, text := range h.Event.Detail {
					detail[name] = text
				}
				at(fmt.Sprintf("%s/%d", x.ID, x.Sequence), x.Sequence, []any{string(h.Event.Type), h.Event.At, int64(len(h.Event.Lines)), detail, int64(h.Partition), h.Offset}, nil)
			}
		},
	},
	{
		name:    "disbursement_agencies",
		query:   `SELECT tenant_id || '/' || part, "offset", snapshot FROM disbursement_agencies`,
		columns: []string{"offset", "snapshot"},
		snapshots: map[int]func(string) record.Record{1: func(id string) record.Record {
			if strings.HasSuffix(id, "/"+partRoster) {
				return &record.BatchRoster{}
			}
			return &record.BatchAgency{}
		}},
		take: func(h *Happened, at func(string, int64, []any, any)) {
			for part, snapshot := range map[string][]byte{disbursement.Mode(h.Event.Live): h.agency, partRoster: h.roster} {
				if len(snapshot) > 0 {
					at(h.Event.TenantID+"/"+part, h.Offset+1, []any{h.Offset, snapshot}, nil)
				}
			}
		},
	},
}

// Comparison is of all tables of the read model with disbursement.events, column by column; the events are read once. What approvers
// sign is compared by the pages besides, and the processor believes none of these rows.
func (s *Store) Comparison() *comparison.Table[derived] {
	out := &comparison.Table[derived]{
		Name: tables[0].name, Query: tables[0].query, Topics: []string{schemas.Disbursement.Events}, Positions: positions,
		Take: func(r comparison.Record, of func(string) *derived) error {
			h, err := s.Read(r.Value, r.Partition, r.Offset)
			if err != nil {
				return err
			}
			for _, t := range tables {
				t.take(&h, func(id string, sequence int64, row []any, kept any) {
					if x := of(comparison.RowID(t.name, id)); x != nil {
						x.take(r, sequence, row, kept)
					}
				})
			}
			return nil
		},
		Check: func(x *derived, row []any) comparison.Verdict {
			id, _ := row[0].(string)
			i := slices.IndexFunc(tables, func(t compared) bool { return strings.HasPrefix(id, comparison.RowID(t.name, "")) })
			return s.check(tables[i], x, row)
		},
		Missing: func(x *derived) *comparison.Made {
			if !x.known {
				return nil
			}
			return &x.row
		},
	}
	for _, t := range tables[1:] {
		out.Others = append(out.Others, comparison.Rows{Name: t.name, Query: t.query})
	}
	return out
}

// take takes what a record says of the row. A record that comes once more, or late, says nothing new; a column that it brings for
// the first time counts.
func (x *derived) take(r comparison.Record, sequence int64, row []any, kept any) {
	if kept != nil && (!x.hasKept || sequence > x.sequence) {
		x.kept, x.hasKept = r.Make(kept), true
	}
	if !x.known || sequence > x.sequence {
		x.row, x.sequence, x.known = r.Make(row...), sequence, true
	}
}

// check compares a row.
func (s *Store) check(t compared, x *derived, row []any) (v comparison.Verdict) {
	id, _ := row[0].(string)
	values := slices.Clone(row[1:])
	for i, empty := range t.snapshots {
		values[i] = s.asNow(values[i], empty(id))
	}
	for _, value := range values {
		if at, ok := value.(time.Time); ok {
			v.At = at
		}
	}
	if x == nil || !x.known {
		v.Fault = comparison.FaultAdded
		return v
	}
	v.By = &x.row
	own, kept := values[:len(t.columns)], values[len(t.columns):]
	if !x.row.Makes(own) {
		v.Fault, v.Columns = comparison.FaultDifferent, x.row.Columns(t.columns, own)
	}
	if t.kept != "" && (x.hasKept && !x.kept.Makes(kept) || !x.hasKept && !none(kept[0])) {
		v.Fault = comparison.FaultDifferent
		if x.hasKept {
			v.Columns = append(v.Columns, x.kept.Columns([]string{t.kept}, kept)...)
		} else {
			v.Columns = append(v.Columns, comparison.Column{Name: t.kept, Postgres: comparison.Text(kept[0])})
		}
	}
	return v
}

// asNow returns a stored record in its present form. Bytes that are none stay as they are.
func (s *Store) asNow(value any, r record.Record) any {
	stored, ok := value.([]byte)
	if !ok {
		return value
	}
	if s.codec.Decode(stored, r) != nil {
		return value
	}
	now, err := s.codec.Encode(r)
	if err != nil {
		return value
	}
	return now
}

// none reports whether a column has nothing.
func none(value any) bool {
	b, ok := value.([]byte)
	return value == nil || ok && len(b) == 0
}

// Empty removes the rows that the events of a topic make, and sets the positions of its partitions, in one transaction: the sink
// readmodel goes on from there and makes them again. Until then pages and commands show less. Notes of imports and payees stay:
// no event makes them.
func (s *Store) Empty(ctx context.Context, actor operation.Actor, now time.Time, topic string, next map[int32]int64) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Positions come first and in order, as the sink moves them: one that is at work then finds its position moved.
		for _, p := range slices.Sorted(maps.Keys(next)) {
			if _, err := tx.Exec(ctx, `INSERT INTO disbursement_positions (topic, partition, next) VALUES ($1, $2, $3)
				ON CONFLICT (topic, partition) DO UPDATE SET next = excluded.next`, topic, p, next[p]); err != nil {
				return err
			}
		}
		for _, sql := range []string{`DELETE FROM disbursement_steps`, `DELETE FROM disbursement_lines`, `DELETE FROM disbursement_batches`, `DELETE FROM disbursement_agencies`} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "readmodel.rebuild", Subject: topic})
	})
	if err != nil {
		return fmt.Errorf("emptying the read model of batches: %w", err)
	}
	return nil
}
