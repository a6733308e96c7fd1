package sessions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/comparison"
	"quittance/internal/kafka"
	"quittance/schemas"
)

// A session whose sums differ is examined: all its events are read again, and its rows are made and compared one by
// one. That names rows and columns, and it is exact where the sums are not, such as for events that are not in order.

// examine names the differences of the sessions of a part whose sums differ.
func (p *part) examine(ctx context.Context) error {
	suspects := map[uint64]bool{}
	suspect := func(key uint64) {
		switch {
		case suspects[key]:
		case p.examined >= DifferencesAtMost:
			p.out.Unnamed++
		default:
			suspects[key] = true
			p.examined++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.unknown)) {
		suspect(key)
	}
	for key, s := range p.sessions {
		if s.state+s.told+s.erased != 0 {
			suspect(key)
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	x := &examination{part: p, suspects: suspects, histories: map[string]*history{}}
	for key, id := range p.unknown {
		if suspects[key] {
			x.histories[id] = &history{}
		}
	}
	found, err := x.compare(ctx)
	p.out.Differences = append(p.out.Differences, found...)
	return err
}

// examination compares the rows of some sessions.
type examination struct {
	*part
	suspects  map[uint64]bool
	histories map[string]*history // by session
	rows      map[string]row      // of Postgres, by key
}

// history has the events of a session.
type history struct{ events []happened }

// happened is an event, and where it is in the topic.
type happened struct {
	Snapshot
	partition int32
	offset    int64
}

// compare returns the differences of the rows now. Those of rows that an event above the positions makes are none:
// a replay may have applied it.
func (x *examination) compare(ctx context.Context) ([]Difference, error) {
	read := maps.Clone(x.begin)
	if err := x.collect(ctx, read, x.reached); err != nil {
		return nil, err
	}
	var now map[int32]int64
	err := pgx.BeginTxFunc(ctx, x.store.pool, oneSnapshot, func(tx pgx.Tx) (err error) {
		if now, err = positions.Read(ctx, tx, x.topic); err != nil {
			return err
		}
		return x.readRows(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	for partition, at := range x.reached {
		if now[partition] < at {
			return nil, ErrRebuilt
		}
	}
	if err := x.collect(ctx, read, now); err != nil {
		return nil, err
	}
	found := x.differences(now)
	if len(found) == 0 {
		return nil, nil
	}
	spans, err := kafka.Bounds(ctx, x.adm, x.topic)
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for partition, span := range spans {
		ends[partition] = span.To
	}
	if err := x.collect(ctx, read, ends); err != nil {
		return nil, err
	}
	still := map[string]bool{}
	for _, d := range x.differences(ends) {
		still[d.Table+"/"+d.SessionID+"/"+d.Row] = true
	}
	return slices.DeleteFunc(found, func(d Difference) bool { return !still[d.Table+"/"+d.SessionID+"/"+d.Row] }), nil
}

// collect reads the events of the sessions from read up to offsets, and sets read.
func (x *examination) collect(ctx context.Context, read, to map[int32]int64) error {
	spans := map[int32]kafka.Span{}
	ends, err := kafka.Bounds(ctx, x.adm, x.topic)
	if err != nil {
		return err
	}
	for partition, from := range read {
		if end := min(to[partition], ends[partition].To); end > from {
			spans[partition] = kafka.Span{From: from, To: end}
		}
	}
	_, _, err = x.each(ctx, spans, nil, func(id string) bool { return x.suspects[hashOf(id)] }, func(rec *kgo.Record, s Snapshot) {
		h := x.histories[s.ID]
		if h == nil {
			h = &history{}
			x.histories[s.ID] = h
		}
		h.events = append(h.events, happened{s, rec.Partition, rec.Offset})
	})
	for partition, span := range spans {
		read[partition] = span.To
	}
	return err
}

// readRows reads the rows of the sessions, and those of their payments, whatever session these rows name.
func (x *examination) readRows(ctx context.Context, tx pgx.Tx) error {
	x.rows = map[string]row{}
	ids := slices.Sorted(maps.Keys(x.histories))
	payments := []string{}
	for _, h := range x.histories {
		for _, e := range h.events {
			for _, c := range completions(e.Snapshot) {
				payments = append(payments, c.TransactionID)
			}
		}
	}
	for _, t := range derivedTables {
		query, args := fmt.Sprintf(`SELECT %s FROM %s WHERE %s = ANY($1)`, t.list(), t.name, t.columns[t.session]), []any{ids}
		if t == confirmationsTable {
			query, args = query+` OR transaction_id = ANY($2)`, append(args, payments)
		}
		if err := eachRow(ctx, tx, t, func(r row) { x.rows[r.keyOf()] = r }, query, args...); err != nil {
			return fmt.Errorf("reading %s: %w", t.name, err)
		}
	}
	return nil
}

// made is a row that events make.
type made struct {
	row
	session   string
	partition int32
	offset    int64
	// demanded says that Postgres must have the row, because the last state of the session makes it.
	demanded bool
	// others are the rows that earlier states make under the same key. Apply keeps the first one.
	others []row
}

// rowsUntil returns the rows that the events of a session below offsets make, by key.
func (h *history) rowsUntil(to map[int32]int64) map[string]*made {
	out := map[string]*made{}
	var last *happened
	var erased int64
	for i := range h.events {
		e := &h.events[i]
		if e.offset >= to[e.partition] {
			continue
		}
		if last == nil || last.Sequence < e.Sequence {
			last = e
		}
		if e.Erased {
			erased = max(erased, e.Sequence)
		}
	}
	if last == nil {
		return nil
	}
	for i := range h.events {
		e := &h.events[i]
		if e.offset >= to[e.partition] {
			continue
		}
		if e.Told != nil {
			r := eventRow(e.Snapshot, e.Told)
			if e.Sequence < erased {
				r.values[eventBody] = nil
			}
			if key := r.keyOf(); out[key] == nil {
				out[key] = &made{row: r, session: e.ID, partition: e.partition, offset: e.offset, demanded: true}
			}
		}
		for _, r := range stateRows(e.Snapshot) {
			if e != last && r.table == sessionsTable {
				continue
			}
			key := r.keyOf()
			m := out[key]
			switch {
			case m == nil:
				out[key] = &made{row: r, session: e.ID, partition: e.partition, offset: e.offset, demanded: e == last}
			case e == last:
				m.others, m.demanded = append(m.others, r), true
			default:
				m.others = append(m.others, r)
			}
		}
	}
	return out
}

// equals reports whether a row of Postgres is one that the events make.
func (m *made) equals(r row) bool {
	return len(columnsOf(r, m.row)) == 0 || slices.ContainsFunc(m.others, func(other row) bool { return len(columnsOf(r, other)) == 0 })
}

// differences compares the rows of Postgres with those that events below offsets make.
func (x *examination) differences(to map[int32]int64) (out []Difference) {
	known := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(x.histories)) {
		for key, m := range x.histories[id].rowsUntil(to) {
			known[key] = true
			stored, there := x.rows[key]
			switch {
			case !there && m.demanded:
				out = append(out, differenceOf(FaultMissing, m.row, m))
			case there && !m.equals(stored):
				d := differenceOf(FaultDifferent, m.row, m)
				d.Columns = columnsOf(stored, m.row)
				out = append(out, d)
			}
		}
	}
	for key, stored := range x.rows {
		id := stored.sessionID()
		if known[key] || x.unproven(id, x.sessions[hashOf(id)], stored) {
			continue
		}
		out = append(out, differenceOf(FaultAdded, stored, nil))
	}
	return out
}

// differenceOf names a row. m is nil for a row that no event makes.
func differenceOf(f Fault, r row, m *made) Difference {
	id := r.sessionID()
	d := Difference{Table: r.table.name, Fault: f, SessionID: id, Place: placeOf(id), Topic: schemas.TopicEvents, Offset: -1}
	if at, err := checkout.SessionMade(id); err == nil {
		d.At = at
	}
	for i, value := range r.values[:r.table.key] {
		if i == r.table.session {
			continue
		}
		if d.Row != "" {
			d.Row += " "
		}
		d.Row += comparison.Text(value)
	}
	if m != nil {
		d.Partition, d.Offset = m.partition, m.offset
	}
	return d
}

// columnsOf returns the columns in which a row of Postgres differs from one that events make.
func columnsOf(stored, m row) (out []ColumnDifference) {
	for i, name := range stored.table.columns {
		if !comparison.Same(stored.values[i], m.values[i]) {
			out = append(out, ColumnDifference{Name: name, Postgres: comparison.Text(stored.values[i]), Kafka: comparison.Text(m.values[i])})
		}
	}
	return out
}
