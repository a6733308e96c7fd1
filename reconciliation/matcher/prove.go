package matcher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/reconciliation/chain"
	"quittance/schemas"
	"quittance/statement"
)

// hops are the lines that prove an entry of expected money.
type hops struct{ operator, bank []string }

// chain returns the tree over the rows of a close. Package audit, which computes the same from Kafka,
// says which rows these are.
func (p *period) chain(ctx context.Context) (*chain.Tree, error) {
	touched, proofs := map[string]bool{}, map[string][]string{} // sources, and the lines that prove them
	for id := range p.sources.fresh {
		touched[id] = true
	}
	lines := map[string][]string{} // of matches, whose parts have some each
	for _, c := range p.matched {
		if c.sign > 0 {
			lines[c.id] = append(lines[c.id], c.lines...)
		}
	}
	for _, c := range p.matched {
		for _, id := range c.sources {
			touched[id] = true
			if c.sign > 0 {
				proofs[id] = lines[c.id]
			}
		}
	}
	entries := map[string]hops{}
	for id := range touched {
		if !isLine(id) { // the money arrived on the account itself
			entries[id] = hops{operator: proofs[id]}
			delete(touched, id)
		}
	}
	if err := p.behind(ctx, touched, proofs, entries); err != nil {
		return nil, err
	}
	rows, err := p.chainRows(ctx, entries)
	if err != nil {
		return nil, err
	}
	return chain.New(rows)
}

// settlingCodes returns the accounts that settle to the account of the run, sorted.
func (r *run) settlingCodes() []string {
	out := make([]string, len(r.settling))
	for i, a := range r.settling {
		out[i] = a.Code
	}
	slices.Sort(out)
	return out
}

// behind sets the entries that lines of the accounts prove that settle to the bank's. proofs are the
// bank's lines by line.
func (p *period) behind(ctx context.Context, touched map[string]bool, proofs map[string][]string, entries map[string]hops) error {
	if len(touched) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(touched)))[:len(time.DateOnly)]
	var all []journal.Finding
	var others []string // lines of the same matches
	for _, a := range p.settling {
		found := map[string]journal.Finding{}
		// The day of a match is the latest of its rows. The list of all lines would take longer.
		if err := p.findingsIn(ctx, a.StatementAccountKey, "matches", journal.FindingOpen, "day >= "+quote(first), found); err != nil {
			return err
		}
		for _, f := range found {
			if !slices.ContainsFunc(f.Lines, func(id string) bool { return touched[id] }) {
				continue
			}
			all = append(all, f)
			for _, id := range f.Lines {
				if !touched[id] {
					others = append(others, id)
				}
			}
		}
	}
	if err := p.settledBefore(ctx, unique(others), proofs); err != nil {
		return err
	}
	for _, f := range all {
		h := hops{operator: f.Lines}
		for _, id := range f.Lines {
			h.bank = append(h.bank, proofs[id]...)
		}
		for _, id := range f.Sources {
			entries[id] = h
		}
	}
	return nil
}

// settledBefore adds the bank's lines by which earlier closes have settled lines.
func (p *period) settledBefore(ctx context.Context, lines []string, proofs map[string][]string) error {
	for _, some := range chunks(lines) {
		found := map[string]journal.Finding{}
		which := "day <= " + quote(p.sheet.To) + " AND " + p.among("matches", naming(some))
		if err := p.findings(ctx, "matches", journal.FindingOpen, which, found); err != nil {
			return err
		}
		for _, f := range found {
			for _, id := range f.Sources {
				proofs[id] = f.Lines
			}
		}
	}
	return nil
}

// chainRows returns the rows of entries. Those that were withdrawn have none.
func (p *period) chainRows(ctx context.Context, entries map[string]hops) ([]chain.Row, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	days, _ := dates(slices.Collect(maps.Keys(entries)))
	list, err := p.chainEntries(ctx, entries, days)
	if err != nil {
		return nil, err
	}
	confirmed, err := p.confirmations(ctx, list, days[0])
	if err != nil {
		return nil, err
	}
	var out []chain.Row
	for id, e := range list {
		out = append(out, e.Rows(func(transaction string) string { return confirmed[transaction] }, entries[id].operator, entries[id].bank)...)
	}
	return out, nil
}

// chainEntries reads entries of expected money, by row.
func (p *period) chainEntries(ctx context.Context, which map[string]hops, days []string) (map[string]*chain.Entry, error) {
	below := p.offsets(p.run.before, "<", moneyTopics)
	rows, err := p.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_date), toString(entry_id), withdrawn, toString(state), session_id, operator_ref, toString(currency), gross, due_refs, transaction_ids, amounts
		FROM expected_money FINAL WHERE tenant_id IN (?, '') AND livemode = ? AND NOT `+journal.UncountedSQL+` AND (NOT withdrawn OR `+below+") AND "+in("local_date", "toDate", days), p.account.AgencyID, p.account.Live)
	if err != nil {
		return nil, fmt.Errorf("reading the money of a close: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out, gone := map[string]*chain.Entry{}, map[string]bool{}
	for rows.Next() {
		var e chain.Entry
		var day, state string
		var withdrawn uint8
		if err := rows.Scan(&day, &e.ID, scanBool{&withdrawn}, &state, &e.Session, &e.OperatorRef, &e.Currency, &e.Gross, &e.DueRefs, &e.Transactions, &e.Amounts); err != nil {
			return nil, fmt.Errorf("reading the money of a close: %w", err)
		}
		id := journal.ExpectedRow(day, e.ID)
		_, wanted := which[id]
		switch {
		case withdrawn != 0:
			gone[id] = true
		case wanted && len(e.Amounts) == 0 && slices.Contains(withDues, state):
			return nil, operation.Refuse("period.rebuild_needed", "", nil)
		case wanted:
			out[id] = &e
		}
	}
	maps.DeleteFunc(out, func(id string, _ *chain.Entry) bool { return gone[id] })
	return out, rows.Err()
}

// withDues are the states of money that always pays dues. A row without them was written by a release
// before they had a column.
var withDues = []string{journal.ExpectedCompleted, journal.ExpectedLate}

// confirmations reads the first event that confirms each transaction of entries, of which the first is
// of a day.
func (p *period) confirmations(ctx context.Context, entries map[string]*chain.Entry, first string) (map[string]string, error) {
	out := map[string]string{}
	for _, e := range entries {
		for _, t := range e.Transactions {
			out[t] = ""
		}
	}
	delete(out, "")
	if len(out) == 0 {
		return out, nil
	}
	day, err := statement.ParseDay(first)
	if err != nil {
		return nil, err
	}
	at := markOf(schemas.TopicEvents, p.cfg.Topology.Partition(schemas.TopicEvents, p.account.AgencyID))
	// An operator's clock may be ahead of ours by a day, so the payment may be confirmed before its own.
	rows, err := p.cfg.ClickHouse.Query(querying(ctx), `SELECT if(detail[?] = '', transaction_id, detail[?]) AS of_transaction, argMin(event_id, (source_offset, sequence))
		FROM journal WHERE tenant_id = ? AND livemode = ? AND event IN (?, ?) AND toDate(occurred_at) >= toDate(?) AND source_offset < ? GROUP BY of_transaction`,
		checkout.DetailTransactionID, checkout.DetailTransactionID, p.account.AgencyID, p.account.Live, string(checkout.EventConfirmationAccepted), string(checkout.EventConfirmationRecorded),
		(day - 2).String(), p.run.before[at])
	if err != nil {
		return nil, fmt.Errorf("reading the confirmations of a close: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var transaction, event string
		if err := rows.Scan(&transaction, &event); err != nil {
			return nil, fmt.Errorf("reading the confirmations of a close: %w", err)
		}
		if _, wanted := out[transaction]; wanted {
			out[transaction] = event
		}
	}
	return out, rows.Err()
}
