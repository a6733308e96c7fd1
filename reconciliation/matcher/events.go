package matcher

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/internal/cases"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/reconciliation/match"
	"quittance/schemas/record"
	"quittance/statement"
)

// partSize is how many rows a record of a finding has at most: Kafka takes a record of a
// megabyte.
const partSize = 5000

// records returns the records of a run, in order: what ended, what is new, the sums of days, and
// the run. It makes each when it is asked for: a million of them need half a gigabyte.
func (r *run) records(c match.Changes, totals []*record.DayTotal, horizon statement.Day, rows int) iter.Seq[record.Record] {
	return func(yield func(record.Record) bool) {
		for f := range r.findingsOf(c) {
			for _, part := range split(f) {
				if !yield(part) {
					return
				}
			}
		}
		for _, t := range totals {
			if !yield(t) {
				return
			}
		}
		watermarks := make(map[string]string, len(r.marks))
		for at, offset := range r.marks {
			watermarks[at] = strconv.FormatInt(offset, 10)
		}
		yield(&record.MatchRun{
			RunID: r.id, TenantID: r.account.AgencyID, Livemode: r.account.Live, Account: r.account.Code, Today: r.today.String(), Horizon: horizon.String(), Rule: match.RuleVersion,
			Watermarks: watermarks, Rows: int64(rows), Matches: int64(len(c.Matches)), Proposals: int64(len(c.Proposals)), Breaks: int64(len(c.Breaks)),
			Ended: int64(len(c.Superseded) + len(c.Withdrawn) + len(c.Cleared)), MoneyOf: r.names(), At: r.at,
		})
	}
}

// findingsOf returns the records of findings, in order.
func (r *run) findingsOf(c match.Changes) iter.Seq[*record.Finding] {
	return func(yield func(*record.Finding) bool) {
		ended := r.endedBy(c)
		for _, f := range ended {
			if !yield(f) {
				return
			}
		}
		for _, m := range c.Matches {
			if !yield(r.finding(m, journal.FindingMatch)) {
				return
			}
		}
		for _, p := range c.Proposals {
			f := r.finding(p.Match, journal.FindingProposal)
			f.Action = string(p.Action)
			if p.Action == match.ActionMatch { // the other is decided in the case of its session
				f.CaseID = cases.OfFinding(f.FindingID, r.id)
			}
			if !yield(f) {
				return
			}
		}
		for _, b := range c.Breaks {
			f := r.finding(match.Match{ID: b.ID, Stage: b.Stage, Amount: b.Difference, Currency: b.Currency, Sources: b.Sources, Lines: b.Lines, NotTaken: b.NotTaken, Rule: b.Rule}, journal.FindingBreak)
			f.Kind, f.Reason, f.Action, f.Day = string(b.Kind), b.Reason, string(b.Action), b.Day.String()
			f.CaseID = cases.OfFinding(f.FindingID, r.id)
			if !yield(f) {
				return
			}
		}
	}
}

// endedBy returns the records of what people agreed on and of what a run ends.
func (r *run) endedBy(c match.Changes) []*record.Finding {
	out := slices.Clone(r.agreed)
	for _, end := range []struct {
		ids   []string
		from  map[string]journal.Finding
		state string
	}{{c.Superseded, r.world.inForce, journal.FindingSuperseded}, {c.Withdrawn, r.world.open, journal.FindingWithdrawn}, {c.Cleared, r.world.open, journal.FindingCleared}} {
		for _, id := range end.ids {
			out = append(out, r.ended(end.from[id], end.state))
		}
	}
	return append(out, r.reopened(slices.Concat(c.Cleared, c.Withdrawn))...)
}

// finding returns the record of a new match, or one that a proposal or a break completes.
func (r *run) finding(m match.Match, of journal.FindingType) *record.Finding {
	return &record.Finding{
		RunID: r.id, TenantID: r.account.AgencyID, Livemode: r.account.Live, Account: r.account.Code, FindingID: m.ID, Type: of, State: journal.FindingOpen,
		Hop: r.hop(m.Sources), Stage: string(m.Stage), Key: m.Key, Day: lastDay(m.Sources, m.Lines), Currency: cmp.Or(m.Currency, r.account.Currency), Amount: m.Amount,
		Sources: m.Sources, Lines: m.Lines, NotTaken: m.NotTaken, Rule: int32(m.Rule), At: r.at, //nolint:gosec // a version
	}
}

// ended returns the record of the end of a finding.
func (r *run) ended(f journal.Finding, state journal.FindingState) *record.Finding {
	return &record.Finding{
		RunID: r.id, TenantID: r.account.AgencyID, Livemode: r.account.Live, Account: r.account.Code, FindingID: f.ID, Type: f.Type, State: state,
		Hop: f.Hop, Stage: f.Stage, Kind: f.Kind, Key: f.Key, Reason: f.Reason, Action: f.Action, Day: f.Day.Format(time.DateOnly), Currency: f.Currency, Amount: f.Amount,
		Sources: f.Sources, Lines: f.Lines, NotTaken: f.NotTaken, Rule: int32(f.Rule), CaseID: f.CaseID, At: r.at, //nolint:gosec // a version
	}
}

// hop returns what a finding compares: a bank's lines settle those of other accounts, or prove transfers of citizens.
func (r *run) hop(sources []string) string {
	if r.account.Kind == registry.AccountBank && (len(sources) == 0 || isLine(sources[0])) {
		return journal.HopSettlement
	}
	return journal.HopReceipt
}

// isLine reports whether a row is a line of a statement, and not expected money.
func isLine(row string) bool { return strings.Contains(row, "#") }

// lastDay returns the latest day of rows, which their ids begin with.
func lastDay(lists ...[]string) string {
	return slices.Max(slices.Concat(lists...))[:len(time.DateOnly)]
}

// split returns a finding in parts that Kafka takes.
func split(f *record.Finding) []*record.Finding {
	var parts []*record.Finding
	sources, lines, notTaken := f.Sources, f.Lines, f.NotTaken
	take := func(from *[]string) []string {
		n := min(len(*from), partSize)
		out := (*from)[:n:n]
		*from = (*from)[n:]
		return out
	}
	for len(parts) == 0 || len(sources)+len(lines)+len(notTaken) > 0 {
		part := *f
		part.Sources, part.Lines, part.NotTaken = take(&sources), take(&lines), take(&notTaken)
		parts = append(parts, &part)
	}
	for i, p := range parts {
		p.Part, p.Parts = int32(i+1), int32(len(parts)) //nolint:gosec // few
	}
	return parts
}

// changedDays returns the days whose sums may differ from the stored ones: those that were read as a whole,
// and those of other rows that are new, or that come into a finding or leave it.
func (r *run) changedDays(c match.Changes) map[string]bool {
	days := map[string]bool{}
	of := func(lists ...[]string) {
		for _, ids := range lists {
			for _, id := range ids {
				days[id[:len(time.DateOnly)]] = true
			}
		}
	}
	for id := range r.world.all() {
		if r.inWindow(id) || r.world.fresh[id] {
			days[id[:len(time.DateOnly)]] = true
		}
	}
	for _, f := range r.endedBy(c) {
		of(f.Sources, f.Lines)
	}
	for i := range c.Matches {
		of(c.Matches[i].Sources, c.Matches[i].Lines)
	}
	for i := range c.Proposals {
		of(c.Proposals[i].Sources, c.Proposals[i].Lines)
	}
	for i := range c.Breaks {
		of(c.Breaks[i].Sources, c.Breaks[i].Lines)
	}
	for _, findings := range []map[string]journal.Finding{r.world.explained, r.world.inForce} {
		for _, f := range findings {
			if !r.world.stands(f) { // its other rows are free again
				of(f.Sources, f.Lines)
			}
		}
	}
	return days
}

// totals returns the sums of the days that changed, if they differ from the stored ones.
func (r *run) totals(ctx context.Context, result match.Result, c match.Changes) ([]*record.DayTotal, error) {
	days := r.changedDays(c)
	if c := r.world.closed(); c != nil { // the sums of closed days stay
		to := c.ToDay.Format(time.DateOnly)
		maps.DeleteFunc(days, func(day string, _ bool) bool { return day <= to })
	}
	if len(days) == 0 {
		return nil, nil
	}
	sums := map[string]*record.DayTotal{}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		sums[day] = &record.DayTotal{RunID: r.id, TenantID: r.account.AgencyID, Livemode: r.account.Live, Account: r.account.Code, Day: day, Currency: r.account.Currency, At: r.at}
	}
	if err := r.sum(ctx, sums); err != nil {
		return nil, err
	}
	r.stillOpen(result, sums)
	stored, err := r.storedTotals(ctx, slices.Sorted(maps.Keys(days)))
	if err != nil {
		return nil, err
	}
	var out []*record.DayTotal
	for _, day := range slices.Sorted(maps.Keys(sums)) {
		now, was := *sums[day], stored[day]
		now.RunID, now.At = was.RunID, was.At
		if was.Day == "" || now != was {
			out = append(out, sums[day])
		}
	}
	return out, nil
}

// stillOpen adds what has no match to the sums of its day.
func (r *run) stillOpen(result match.Result, sums map[string]*record.DayTotal) {
	expected, settles, lines := newTicked(r.world.expected), newTicked(r.world.settles), newTicked(r.world.lines)
	mark := func(id string) { expected.tick(id); settles.tick(id); lines.tick(id) }
	for id := range r.world.settled() {
		mark(id)
	}
	for i := range result.Matches {
		for _, id := range result.Matches[i].Sources {
			mark(id)
		}
		for _, id := range result.Matches[i].Lines {
			mark(id)
		}
	}
	source := func(id string, amount int64) {
		if t := sums[id[:len(time.DateOnly)]]; t != nil { // the sums of closed days stay
			t.OpenSources++
			t.OpenSourcesAmount += amount
		}
	}
	for id, e := range expected.others() {
		if !e.Undecided && !e.Refused {
			source(id, e.Amount)
		}
	}
	for id, l := range settles.others() {
		if l.Kind.Money() {
			source(id, l.Net())
		}
	}
	for id, l := range lines.others() {
		if t := sums[id[:len(time.DateOnly)]]; t != nil && l.Kind.Money() {
			t.OpenLines++
			t.OpenLinesAmount += r.counts(l)
		}
	}
}

// sum sets the sums of all rows of days.
func (r *run) sum(ctx context.Context, sums map[string]*record.DayTotal) error {
	days := slices.Sorted(maps.Keys(sums))
	each := func(query string, args []any, set func(t *record.DayTotal, count, amount, fee int64)) error {
		rows, err := r.cfg.ClickHouse.Query(querying(ctx), query, args...)
		if err != nil {
			return fmt.Errorf("summing days: %w", err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var day string
			var count, amount, fee int64
			if err := rows.Scan(&day, &count, &amount, &fee); err != nil {
				return fmt.Errorf("summing days: %w", err)
			}
			set(sums[day], count, amount, fee)
		}
		return rows.Err()
	}
	lines := func(accounts []registry.StatementAccount, amount string) (string, []any) {
		of, args := r.ofLines(accounts)
		return `SELECT toString(local_day) AS day, sum(if(withdrawn, -1, 1)), sum(` + amount + `), sum(fee_amount) FROM statement_lines FINAL
			WHERE ` + moneyLine + " AND " + of + " AND " + in("local_day", "toDate", days) + " GROUP BY day", args
	}
	query, args := lines([]registry.StatementAccount{r.account}, r.countsColumn())
	if err := each(query, args, func(t *record.DayTotal, count, amount, fee int64) {
		t.Lines, t.LinesAmount, t.LinesFee = count, amount, fee
	}); err != nil {
		return err
	}
	sources := func(t *record.DayTotal, count, amount, _ int64) {
		t.Sources, t.SourcesAmount = t.Sources+count, t.SourcesAmount+amount
	}
	if len(r.settling) > 0 {
		query, args = lines(r.settling, "net_amount")
		if err := each(query, args, sources); err != nil {
			return err
		}
	}
	if len(r.whose) == 0 {
		return nil
	}
	query, args = r.sumExpected(days)
	return each(query, args, sources)
}

// sumExpected returns the query of the sums of expected money. A withdrawn entry is two rows
// that add up to nothing.
func (r *run) sumExpected(days []string) (string, []any) {
	return `SELECT toString(local_date) AS day, sum(if(withdrawn, -1, 1)), sum(gross), sum(fee) FROM expected_money FINAL
		WHERE tenant_id IN (?, '') AND livemode = ? AND currency = ? AND NOT ` + journal.UncountedSQL + " AND " + r.owned() + " AND " + r.below(moneyTopics...) +
		" AND " + in("local_date", "toDate", days) + " GROUP BY day", []any{r.account.AgencyID, r.account.Live, r.account.Currency}
}

// storedTotals reads the sums of days as the last run left them.
func (r *run) storedTotals(ctx context.Context, days []string) (map[string]record.DayTotal, error) {
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(day), toString(currency), sources, sources_amount, lines, lines_amount, lines_fee, open_sources, open_sources_amount, open_lines, open_lines_amount, run_id, at
		FROM day_totals FINAL WHERE tenant_id = ? AND livemode = ? AND account = ? AND `+in("day", "toDate", days), r.account.AgencyID, r.account.Live, r.account.Code)
	if err != nil {
		return nil, fmt.Errorf("reading the sums of days: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]record.DayTotal{}
	for rows.Next() {
		t := record.DayTotal{TenantID: r.account.AgencyID, Livemode: r.account.Live, Account: r.account.Code}
		if err := rows.Scan(&t.Day, &t.Currency, &t.Sources, &t.SourcesAmount, &t.Lines, &t.LinesAmount, &t.LinesFee, &t.OpenSources, &t.OpenSourcesAmount, &t.OpenLines, &t.OpenLinesAmount, &t.RunID, &t.At); err != nil {
			return nil, fmt.Errorf("reading the sums of days: %w", err)
		}
		out[t.Day] = t
	}
	return out, rows.Err()
}
