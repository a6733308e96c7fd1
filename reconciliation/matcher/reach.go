package matcher

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"quittance/internal/journal"
	"quittance/internal/registry"
)

// Rows of the history are found in three steps. The memory tells which references the history may have. Then
// only the columns of references are read, of rows before the days that are read as a whole, without FINAL: it
// may find a row that does not count. Then the rows that were found are read by their ids, so that FINAL merges
// only these.

const (
	// fewRefs is how many references of new rows a run has at most that it looks up without asking the
	// memory which of them the history may have.
	fewRefs = maxHint
	// manyRefs is how many references of new rows are looked up as a list. More are looked up by a query,
	// which reads the references of the whole history.
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
	refs, err := r.newRefs(ctx)
	if err != nil {
		return false, err
	}
	if len(refs) > r.many {
		query, args := r.unreadRefs()
		return true, r.found(ctx, query, args, "1")
	}
	refs = append(refs, r.reachable()...)
	for some := range slices.Chunk(refs, maxHashes) {
		if err := r.found(ctx, "SELECT arrayJoin("+hashes(some)+")", nil, hint("ref_hashes", some)); err != nil {
			return false, err
		}
	}
	return len(refs) > 0, nil
}

// newRefs returns the hashes of the references of new rows that the history may have, of rows that were
// read since it was last called.
func (r *run) newRefs(ctx context.Context) ([]uint64, error) {
	slices.Sort(r.world.newRefs)
	refs := slices.Compact(r.world.newRefs)
	r.world.newRefs = nil
	if len(refs) > r.few {
		if err := r.learnRefs(ctx); err != nil {
			return nil, err
		}
		refs = slices.DeleteFunc(refs, func(hash uint64) bool { return !r.memory.refs.has(hash) })
	}
	if len(refs) <= r.many {
		for _, hash := range refs {
			r.world.askedRefs[hash] = true
		}
	}
	return refs, nil
}

// reachable returns the hashes of references that were not looked up yet of rows that are open or older
// than the days that were read as a whole. Those of new rows are looked up by newRefs.
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
	switch {
	case r.account.Kind == registry.AccountBank && len(r.settling) > 0:
		of, more := r.ofLines(r.settling)
		parts, args = append(parts, "SELECT DISTINCT cityHash64(batch) FROM statement_lines WHERE "+of+" AND "+r.unreadLines(r.settling)+" AND batch != ''"), append(args, more...)
	case r.account.Kind != registry.AccountBank && len(r.whose) > 0:
		of, more := r.ofExpected()
		parts, args = append(parts, "SELECT arrayJoin(ref_hashes) FROM expected_money WHERE "+of+" AND "+r.unreadMoney()), append(args, more...)
	}
	return strings.Join(parts, " UNION ALL "), args
}

// found reads the older rows that have one of the references whose hashes a query returns; hint is the
// condition for their index. Two references with one hash cost the reading of a row that nothing matches.
func (r *run) found(ctx context.Context, query string, args []any, hint string) error {
	has := hint + " AND arrayExists(hash -> hash IN (" + query + "), ref_hashes)"
	if r.account.Kind == registry.AccountBank {
		ids, err := r.olderLines(ctx, r.settling, hint+" AND batch != '' AND cityHash64(batch) IN ("+query+")", args)
		if err != nil {
			return err
		}
		if err := r.readLinesByID(ctx, r.settling, r.world.settles, ids); err != nil {
			return err
		}
	} else if err := r.foundExpected(ctx, has, args); err != nil {
		return err
	}
	own := []registry.StatementAccount{r.account}
	ids, err := r.olderLines(ctx, own, has, args)
	if err != nil {
		return err
	}
	return r.readLinesByID(ctx, own, r.world.lines, ids)
}

// foundExpected reads the older expected money that fulfils a condition.
func (r *run) foundExpected(ctx context.Context, has string, args []any) error {
	if len(r.whose) == 0 {
		return nil
	}
	of, all := r.ofExpected()
	ids, err := r.older(ctx, `SELECT DISTINCT concat(toString(local_date), '/', toString(entry_id)) FROM expected_money
		WHERE `+of+" AND local_date < "+quote(r.firstDate().String())+" AND NOT "+r.unreadMoney()+" AND "+has, append(all, args...))
	if err != nil {
		return err
	}
	return r.readExpectedByID(ctx, ids)
}

// olderLines returns the ids of older lines of accounts that fulfil a condition.
func (r *run) olderLines(ctx context.Context, accounts []registry.StatementAccount, has string, args []any) ([]string, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	of, all := r.ofLines(accounts)
	return r.older(ctx, "SELECT DISTINCT "+journal.LineRowSQL+` FROM statement_lines
		WHERE `+of+" AND local_day < "+quote(r.horizon.String())+" AND NOT "+r.unreadLines(accounts)+" AND "+has, append(all, args...))
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
