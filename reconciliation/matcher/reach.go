package matcher

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/schemas"
)

// Rows of the history are found in two steps. The first reads only the columns of references, of
// rows before the days that are read as a whole, without FINAL: it may find a row that does not
// count. The second reads the rows that were found, by their ids. So the history costs a few bytes
// for each row, and FINAL merges only days of rows that were found.

// reach reads the older rows that share a reference with rows that are new, open, or older than
// the days that were read as a whole. A waiting or matched row of those days needs no look-up: a
// row that came later and shares its reference is looked up itself. It reports whether there were
// references that were not looked up yet.
func (r *run) reach(ctx context.Context) (bool, error) {
	if r.first {
		return false, nil // all rows are read
	}
	if !r.reachedFresh {
		r.reachedFresh = true
		return true, r.found(ctx, r.freshRefs())
	}
	refs := r.reachable()
	for _, some := range chunks(refs) {
		if err := r.found(ctx, "SELECT arrayJoin("+list(some)+")", nil); err != nil {
			return false, err
		}
	}
	return len(refs) > 0, nil
}

// reachable returns the references that were not looked up yet of rows that are open or older
// than the days that were read as a whole.
func (r *run) reachable() (refs []string) {
	ask := func(id string) {
		for _, ref := range r.world.refs(id) {
			if !r.world.asked[ref] {
				r.world.asked[ref] = true
				refs = append(refs, ref)
			}
		}
	}
	each := func(id string) {
		if !r.inWindow(id) && !r.world.fresh[id] {
			ask(id)
		}
	}
	for id := range r.world.expected {
		each(id)
	}
	for id := range r.world.settled {
		each(id)
	}
	for id := range r.world.lines {
		each(id)
	}
	for _, f := range r.world.open {
		for _, id := range slices.Concat(f.Sources, f.Lines) {
			ask(id)
		}
	}
	return refs
}

// freshRefs returns a query of the references of the rows that no earlier run has read. ClickHouse
// has them: sending a million of them back would take longer than the look-up.
func (r *run) freshRefs() (query string, args []any) {
	of, args := r.ofLines([]registry.StatementAccount{r.account})
	parts := []string{"SELECT arrayJoin([operator_ref, payment_ref, notice_ref, batch]) AS ref FROM statement_lines WHERE " + of + " AND " + r.unreadLines([]registry.StatementAccount{r.account}) + " AND ref != ''"}
	switch {
	case r.account.Kind == registry.AccountBank && len(r.settling) > 0:
		of, more := r.ofLines(r.settling)
		parts, args = append(parts, "SELECT DISTINCT batch AS ref FROM statement_lines WHERE "+of+" AND "+r.unreadLines(r.settling)+" AND ref != ''"), append(args, more...)
	case r.account.Kind != registry.AccountBank && len(r.whose) > 0:
		of, more := r.ofExpected()
		parts = append(parts, "SELECT arrayJoin(arrayConcat([operator_ref, payment_ref], notice_refs)) AS ref FROM expected_money WHERE "+of+" AND "+r.unread(schemas.TopicEvents, schemas.TopicCases)+" AND ref != ''")
		args = append(args, more...)
	}
	return strings.Join(parts, " UNION ALL "), args
}

// found reads the older rows that have one of the references that a query returns.
func (r *run) found(ctx context.Context, refs string, args []any) error {
	own := []registry.StatementAccount{r.account}
	lines, err := r.older(ctx, own, refs, args)
	if err != nil {
		return err
	}
	if r.account.Kind == registry.AccountBank {
		settled, err := r.older(ctx, r.settling, refs, args)
		if err != nil {
			return err
		}
		if err := r.readLines(ctx, r.settling, r.world.settled, selection{ids: settled}); err != nil && len(settled) > 0 {
			return err
		}
	}
	_ = lines
	return nil
}

var _ = fmt.Sprint
var _ journal.Finding
