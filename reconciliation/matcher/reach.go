package matcher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/statement"
)

// Rows of the history are found in three steps. The memory tells which references the history has, and on which
// days. Then only the columns of references of these days are read, of rows before the days that are read as a
// whole, without FINAL: it may find a row that does not count. Then the rows that were found are read by their
// ids, so that FINAL merges only these.

const (
	// fewRefs is how many references of new rows a run has at most that it looks up without asking the
	// memory which of them the history has.
	fewRefs = maxHint
	// manyRefs is how many references of new rows are looked up as a list. More are looked up by a query,
	// which reads all references of the days.
	manyRefs = maxHint
)

// reach reads the older rows that share a reference with rows that are new, open, or older than
// the days that were read as a whole. A waiting or matched row of those days needs no look-up: a
// row that came later and shares its reference is looked up itself. It reports whether there were
// references that were not looked up yet.
func (r *run) reach(ctx context.Context) (bool, error) {
	if r.first {
		return false, nil // all rows are read
	}
	slices.Sort(r.world.newRefs)
	refs := slices.Compact(r.world.newRefs)
	r.world.newRefs = nil
	if len(refs) > r.few {
		if err := r.learnRefs(ctx); err != nil {
			return false, err
		}
		r.asksMemory = true
	}
	refs, days := r.inHistory(refs)
	if len(refs) > r.many {
		query, args := r.unreadRefs()
		return true, r.found(ctx, query, args, "1", days)
	}
	for _, hash := range refs {
		r.world.askedRefs[hash] = true
	}
	more, moreDays := r.inHistory(r.reachable())
	refs = append(refs, more...)
	maps.Copy(days, moreDays)
	for some := range slices.Chunk(refs, maxHashes) {
		if err := r.found(ctx, "SELECT arrayJoin("+hashes(some)+")", nil, hint("ref_hashes", some), days); err != nil {
			return false, err
		}
	}
	return len(refs) > 0, nil
}

// inHistory returns the hashes of references that the history has, and the days of their rows: all of them,
// and no days, of a run that does not ask the memory.
func (r *run) inHistory(refs []uint64) ([]uint64, map[statement.Day]bool) {
	if !r.asksMemory {
		return refs, map[statement.Day]bool{}
	}
	slices.Sort(refs)
	return r.memory.refs.known(refs)
}

// reachable returns the hashes of references that were not looked up yet of rows that are open or older
// than the days that were read as a whole. Those of new rows are looked up by reach.
func (r *run) reachable() (refs []uint64) {
	ask := func(id string) {
		for _, ref := range r.world.refs(id) {
			if hash := hashOf(ref); !r.world.askedRefs[hash] {
				r.world.askedRefs[hash] = true
				refs = append(refs, hash)
			}
		}
	}
	each := func(id string) {
		if !r.inWindow(id) && !r.world.fresh[id] {
			ask(id)
		}
	}
	for id := range r.world.expected.ids() {
		each(id)
	}
	for id := range r.world.settles.ids() {
		each(id)
	}
	for id := range r.world.lines.ids() {
		each(id)
	}
	for _, f := range r.world.open {
		for _, id := range slices.Concat(f.Sources, f.Lines) {
			ask(id)
		}
	}
	return refs
}

// unreadRefs returns a query of the hashes of references of the rows that no earlier run has read. ClickHouse
// has them: to send a million of them back would take longer than the look-up.
func (r *run) unreadRefs() (query string, args []any) {
	own := []registry.StatementAccount{r.account}
	of, args := r.ofLines(own)
	parts := []string{"SELECT arrayJoin(ref_hashes) FROM statement_lines WHERE " + of + " AND " + r.unreadLines(own)}
	if len(r.settling) > 0 {
		of, more := r.ofLines(r.settling)
		parts, args = append(parts, "SELECT DISTINCT cityHash64(batch) FROM statement_lines WHERE "+of+" AND "+r.unreadLines(r.settling)+" AND batch != ''"), append(args, more...)
	}
	if len(r.whose) > 0 {
		of, more := r.ofExpected()
		parts, args = append(parts, "SELECT arrayJoin(ref_hashes) FROM expected_money WHERE "+of+" AND "+r.unreadMoney()), append(args, more...)
	}
	return strings.Join(parts, " UNION ALL "), args
}

// found reads the older rows of days, or of all if there are none, that have one of the references whose hashes
// a query returns; hint is the condition for their index. Two references with one hash cost the reading of a row
// that nothing matches.
func (r *run) found(ctx context.Context, query string, args []any, hint string, days map[statement.Day]bool) error {
	has := hint + " AND arrayExists(hash -> hash IN (" + query + "), ref_hashes)"
	ids, err := r.olderLines(ctx, r.settling, days, hint+" AND batch != '' AND cityHash64(batch) IN ("+query+")", args)
	if err != nil {
		return err
	}
	if err := r.readLinesByID(ctx, r.settling, r.world.settles, ids); err != nil {
		return err
	}
	if err := r.foundExpected(ctx, days, has, args); err != nil {
		return err
	}
	own := []registry.StatementAccount{r.account}
	ids, err = r.olderLines(ctx, own, days, has, args)
	if err != nil {
		return err
	}
	return r.readLinesByID(ctx, own, r.world.lines, ids)
}

// foundExpected reads the older expected money of days that fulfils a condition.
func (r *run) foundExpected(ctx context.Context, days map[statement.Day]bool, has string, args []any) error {
	if len(r.whose) == 0 {
		return nil
	}
	of, all := r.ofExpected()
	ids, err := r.older(ctx, `SELECT DISTINCT concat(toString(local_date), '/', toString(entry_id)) FROM expected_money
		WHERE `+of+" AND local_date < "+quote(r.firstDate().String())+ofDays("local_date", days)+" AND NOT "+r.unreadMoney()+" AND "+has, append(all, args...))
	if err != nil {
		return err
	}
	return r.readExpectedByID(ctx, ids)
}

// ofDays returns the rest of a condition, that a column has one of the days; the empty text for none.
func ofDays(column string, days map[statement.Day]bool) string {
	if len(days) == 0 {
		return ""
	}
	texts := make([]string, 0, len(days))
	for day := range days {
		texts = append(texts, day.String())
	}
	slices.Sort(texts)
	return " AND " + in(column, "toDate", texts)
}

// olderLines returns the ids of older lines of accounts, of days, that fulfil a condition.
func (r *run) olderLines(ctx context.Context, accounts []registry.StatementAccount, days map[statement.Day]bool, has string, args []any) ([]string, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	of, all := r.ofLines(accounts)
	return r.older(ctx, "SELECT DISTINCT "+journal.LineRowSQL+` FROM statement_lines
		WHERE `+of+" AND local_day < "+quote(r.horizon.String())+ofDays("local_day", days)+" AND NOT "+r.unreadLines(accounts)+" AND "+has, append(all, args...))
}

// older returns the ids that a query returns, without those of rows that were read already.
func (r *run) older(ctx context.Context, query string, args []any) (ids []string, err error) {
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), query, args...)
	if err != nil {
		return nil, fmt.Errorf("looking up references: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("looking up references: %w", err)
		}
		if !r.world.has(id) {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}
