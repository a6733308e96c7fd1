package matcher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/casework"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/reconciliation/match"
	"quittance/statement"
)

// Count is a number of rows and their sum in minor units.
type Count struct {
	N      int64 `json:"count"`
	Amount int64 `json:"amount"`
}

func (c *Count) add(amount, sign int64) { c.N, c.Amount = c.N+sign, c.Amount+sign*amount }

// Roll says how the open rows of a side came about: Start and New less Matched and Resolved is
// End. Rows of a period that became known after its close are New in the next one.
type Roll struct {
	Start    Count `json:"start"`
	New      Count `json:"new"`
	Matched  Count `json:"matched"`
	Resolved Count `json:"resolved"` // explained or written off by people
	End      Count `json:"end"`
}

func (r *Roll) end() {
	r.End = Count{r.Start.N + r.New.N - r.Matched.N - r.Resolved.N, r.Start.Amount + r.New.Amount - r.Matched.Amount - r.Resolved.Amount}
}

// Sheet is what people approve when they close a period of an account: everything that is known of
// its days, and of earlier ones since the close before. Days are local days of the account.
type Sheet struct {
	AgencyID string `json:"agency_id"`
	Live     bool   `json:"livemode"`
	Account  string `json:"account"`
	Currency string `json:"currency"`
	From     string `json:"from"`
	To       string `json:"to"`
	// Statements have the id, the page and the digest of each statement with days of the period.
	Statements []string `json:"statements"`
	// Sources are expected money, or of a bank account lines that settle to it.
	Sources Roll `json:"sources"`
	Lines   Roll `json:"lines"`
	// OpenBreaks are those of days until To, and OpenBreaksDigest the SHA-256 of their sorted ids.
	OpenBreaks       Count  `json:"open_breaks"`
	OpenBreaksDigest string `json:"open_breaks_digest"`
	// Findings is the SHA-256 of the sorted ids of the matches and explanations that count from now on,
	// or not any more.
	Findings string `json:"findings"`
	// Corrections are matches and explanations of earlier closes that do not hold any more.
	Corrections int64 `json:"corrections"`
	// Previous is the digest of the close before; empty for the first.
	Previous string `json:"previous"`
	Rule     int    `json:"rule"`
	// Reports is what the reports say of the days (report.Closing).
	Reports []string `json:"reports,omitempty"`
}

// Digest returns the SHA-256 of the sheet in hexadecimal.
func (s *Sheet) Digest() (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte("quittance-close/1\n"), text...))
	return hex.EncodeToString(sum[:]), nil
}

// Sheet returns what a close of an account until a local day, such as 2026-11-30, would say now. A
// refusal is an *operation.Error.
func (m *Matcher) Sheet(ctx context.Context, key registry.StatementAccountKey, to string) (*Sheet, error) {
	cl, err := m.cfg.Kafka.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if _, err := m.whole(ctx, kadm.NewClient(cl)); err != nil {
		return nil, err
	}
	r, err := m.newRun(key)
	if err != nil {
		return nil, err
	}
	r.marks = marks{}
	for topic, partitions := range r.sources() {
		for _, p := range partitions {
			r.marks[markOf(topic, p)] = math.MaxInt64
		}
	}
	if err := r.last(ctx); err != nil {
		return nil, err
	}
	if err := r.readCloses(ctx); err != nil {
		return nil, err
	}
	p, err := r.period(ctx, to)
	if err != nil {
		return nil, err
	}
	return p.sheet, nil
}

// readCloses reads the closes of the account below the watermarks.
func (r *run) readCloses(ctx context.Context) error {
	at := r.reconciliation(r.account.StatementAccountKey)
	list, err := journal.NewStore(r.cfg.ClickHouse).Closes(querying(ctx), journal.CloseFilter{TenantID: r.account.AgencyID, Live: &r.account.Live, Account: r.account.Code})
	if err != nil {
		return err
	}
	r.world.closes = slices.DeleteFunc(list, func(c journal.Close) bool { return c.State != journal.CloseClosed || c.SourceOffset >= r.marks[at] })
	return nil
}

// beginning is a day before all rows.
const beginning = "1970-01-01"

// period is the work on a sheet.
type period struct {
	*run
	sheet *Sheet
	to    statement.Day
	// before are the watermarks of the close before, closed its last day (the empty text for none)
	// and offset where it is. The period itself has the rows that the last run has read: those below
	// the watermarks run.before.
	before marks
	closed string
	offset int64
	// amounts are those of rows, by side, and fresh the rows that the close before did not know.
	sources, lines side
	// matched are the matches that count from now on, or not any more, and counted the ids of these and
	// of explanations, with the sign.
	matched []change
	counted []string
}

// side is one side of an account.
type side struct {
	roll *Roll
	// fresh are the amounts of rows that the close before did not know, and older those of others.
	fresh, older map[string]int64
	// withdrawn are rows that do not count any more since the close before, gone those that were
	// read and were withdrawn at any time, moneyless rows that are no money of their own (payouts,
	// undecided collections), and settled rows that a step has counted.
	withdrawn, gone, moneyless, settled map[string]bool
}

func newSide(roll *Roll) side {
	return side{roll, map[string]int64{}, map[string]int64{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// period computes the sheet of a period that ends with a day, from the rows that the last run has
// read.
func (r *run) period(ctx context.Context, to string) (*period, error) {
	p := &period{run: r, before: marks{}, sheet: &Sheet{AgencyID: r.account.AgencyID, Live: r.account.Live, Account: r.account.Code, Currency: r.account.Currency, To: to, Rule: match.RuleVersion}}
	var err error
	if p.to, err = statement.ParseDay(to); err != nil {
		return nil, operation.Refuse("period.day_malformed", "day", nil)
	}
	if c := r.world.closed(); c != nil {
		p.before, p.closed, p.offset, p.sheet.Previous = c.Watermarks, c.ToDay.Format(time.DateOnly), c.SourceOffset, c.Hash()
		p.sheet.Sources.Start, p.sheet.Lines.Start = Count{c.SourcesEnd, c.SourcesEndAmount}, Count{c.LinesEnd, c.LinesEndAmount}
	}
	switch {
	case to <= p.closed:
		return nil, operation.Refuse("period.closed", "day", operation.Args{"to": p.closed})
	case p.to >= r.today:
		return nil, operation.Refuse("period.not_over", "day", operation.Args{"today": r.today.String()})
	case r.first || r.lastDay <= p.to:
		return nil, operation.Refuse("period.not_matched", "", nil)
	}
	p.sources, p.lines = newSide(&p.sheet.Sources), newSide(&p.sheet.Lines)
	for _, step := range []func(context.Context) error{p.readFresh, p.readMatches, p.readExplanations, p.readBreaks, p.readStatements} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	p.sheet.Sources.end()
	p.sheet.Lines.end()
	slices.Sort(p.counted)
	p.sheet.Findings = digestOf(slices.Compact(p.counted))
	if err := p.readReports(ctx); err != nil {
		return nil, err
	}
	if p.sheet.Sources.Matched.Amount != p.sheet.Lines.Matched.Amount {
		return nil, fmt.Errorf("the matches of account %s until %s do not add up: %d and %d", r.account.Code, to, p.sheet.Sources.Matched.Amount, p.sheet.Lines.Matched.Amount)
	}
	return p, nil
}

// readReports reads what the reports say of the days.
func (p *period) readReports(ctx context.Context) error {
	from, err := time.Parse(time.DateOnly, p.sheet.From)
	if err != nil {
		return fmt.Errorf("the first day of a period: %w", err)
	}
	to, err := time.Parse(time.DateOnly, p.sheet.To)
	if err != nil {
		return fmt.Errorf("the last day of a period: %w", err)
	}
	p.sheet.Reports, err = report.Closing{TenantID: p.account.AgencyID, Live: p.account.Live, Account: p.account.Code, From: from, To: to}.Totals(querying(ctx), p.cfg.ClickHouse)
	return err
}

// fresh returns the condition that a row is of the period, or older and unknown to the close
// before. known is the condition that the close before had read it.
func (p *period) fresh(day, known string) string {
	return fmt.Sprintf("%s <= %s AND NOT (%s <= %s AND %s)", day, quote(p.sheet.To), day, quote(cmp.Or(p.closed, beginning)), known)
}

// readFresh reads the rows that the close before did not know.
func (p *period) readFresh(ctx context.Context) error {
	own := []registry.StatementAccount{p.account}
	if err := p.readLinesOf(ctx, own, p.countsColumn(), "", &p.lines, p.lines.fresh); err != nil {
		return err
	}
	if err := p.readLinesOf(ctx, p.settling, "net_amount", "", &p.sources, p.sources.fresh); err != nil {
		return err
	}
	p.memory = newMemory(0) // of this sheet alone: its watermarks are no run's
	if err := p.learnPairs(ctx, "1"); err != nil {
		return err
	}
	// What the last run did not expect is of a later period.
	p.whose = slices.DeleteFunc(p.arriving(), func(of pair) bool { return !p.lastMoney.had(p.nameOf(of)) })
	if err := p.readExpectedOf(ctx, "", p.sources.fresh); err != nil {
		return err
	}
	p.sheet.From = p.sheet.To
	for _, s := range []*side{&p.sources, &p.lines} {
		for id, amount := range s.fresh {
			s.roll.New.add(amount, 1)
			p.sheet.From = min(p.sheet.From, id[:len(time.DateOnly)])
		}
	}
	if p.closed != "" {
		day, err := statement.ParseDay(p.closed)
		if err != nil {
			return err
		}
		p.sheet.From = (day + 1).String()
	}
	return nil
}

// readLinesOf reads the amounts of lines: of the ids, or those that the close before did not know. What was
// withdrawn since is new with its negative amount. Payouts are no money of their own.
func (p *period) readLinesOf(ctx context.Context, accounts []registry.StatementAccount, amount, which string, s *side, into map[string]int64) error {
	if len(accounts) == 0 {
		return nil
	}
	all := which == ""
	if all {
		which = moneyLine + " AND " + p.fresh("local_day", p.ofAccounts(accounts, p.before, "<"))
	}
	rows, err := p.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_day), line_id, content, withdrawn, `+amount+`, `+moneyLine+` FROM statement_lines FINAL
		WHERE tenant_id = ? AND livemode = ? AND `+p.ofAccounts(accounts, p.run.before, "<")+" AND "+which, p.account.AgencyID, p.account.Live)
	if err != nil {
		return fmt.Errorf("reading the lines of a period: %w", err)
	}
	defer func() { _ = rows.Close() }()
	withdrawn := map[string]int64{}
	for rows.Next() {
		var day, id string
		var content uint64
		var sum int64
		var gone, money uint8
		if err := rows.Scan(&day, &id, &content, scanBool{&gone}, &sum, scanBool{&money}); err != nil {
			return fmt.Errorf("reading the lines of a period: %w", err)
		}
		switch row := journal.LineRow(day, id, content); {
		case money == 0:
			s.moneyless[row] = true
		case gone != 0:
			withdrawn[row] = sum
		default:
			into[row] = sum
		}
	}
	s.withdraw(withdrawn, all)
	return rows.Err()
}

// withdraw takes rows that do not count any more, with their opposite amounts. since says that they are those
// that were withdrawn since the close before, which are new with these amounts unless the row itself is new, too.
func (s *side) withdraw(rows map[string]int64, since bool) {
	for id, amount := range rows {
		if !since {
			s.gone[id] = true
			continue
		}
		s.withdrawn[id] = true
		if _, both := s.fresh[id]; both {
			delete(s.fresh, id)
		} else {
			s.roll.New.N--
			s.roll.New.Amount += amount
		}
	}
}

// readExpectedOf reads the amounts of expected money: of the ids, or of what the close before did
// not know. What was withdrawn since is new with its negative amount.
func (p *period) readExpectedOf(ctx context.Context, which string, into map[string]int64) error {
	if len(p.whose) == 0 {
		return nil
	}
	all := which == ""
	if all {
		which = "NOT " + journal.UncountedSQL + " AND " + p.fresh("local_date", p.knownMoney())
	}
	rows, err := p.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_date), toString(entry_id), withdrawn, `+journal.UncountedSQL+`, gross FROM expected_money FINAL
		WHERE tenant_id IN (?, '') AND livemode = ? AND currency = ? AND `+p.owned()+" AND "+p.offsets(p.run.before, "<", moneyTopics)+" AND "+which,
		p.account.AgencyID, p.account.Live, p.account.Currency)
	if err != nil {
		return fmt.Errorf("reading the expected money of a period: %w", err)
	}
	defer func() { _ = rows.Close() }()
	withdrawn := map[string]int64{}
	for rows.Next() {
		var day, entry string
		var gone, uncounted uint8
		var gross int64
		if err := rows.Scan(&day, &entry, scanBool{&gone}, scanBool{&uncounted}, &gross); err != nil {
			return fmt.Errorf("reading the expected money of a period: %w", err)
		}
		switch id := journal.ExpectedRow(day, entry); {
		case uncounted != 0:
			p.sources.moneyless[id] = true
		case gone != 0:
			withdrawn[id] = gross
		default:
			into[id] = gross
		}
	}
	p.sources.withdraw(withdrawn, all)
	return rows.Err()
}

// knownMoney returns the condition that an earlier close knew a row of expected money: the last one that had
// its pair.
func (p *period) knownMoney() string {
	var list []knownMoney
	for _, c := range slices.Backward(p.world.closes) {
		list = append(list, knownMoney{names: c.MoneyOf, all: c.ChainVersion == 0, at: c.Watermarks, until: c.ToDay.Format(time.DateOnly)})
	}
	known := p.knownBy(list)
	if len(known) == 1 && (known[0].until == p.closed || p.closed == "") {
		return p.offsets(known[0].at, "<", moneyTopics)
	}
	out := []string{"false"}
	for _, k := range known {
		if k.until != "" {
			out = append(out, "("+ownedBy(k.pairs)+" AND local_date <= "+quote(k.until)+" AND "+p.offsets(k.at, "<", moneyTopics)+")")
		}
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

// change is a finding that counts in the period: from now on, or not any more.
type change struct {
	id             string
	sources, lines []string
	now, was       uint8 // in the state that counts: now, and when the close before was made
	sign           int64
}

// changes reads the findings of a table that have come into a state since the close before, or
// left it. A withdrawn payment or line ends an explanation. A finding is of the last day of all its rows,
// also if it has parts.
func (p *period) changes(ctx context.Context, table, state, which string) (out []change, err error) {
	last := "day"
	if table == "breaks" { // whose day is the first one
		last = "arrayMax(arrayMap(row -> left(row, 10), arrayConcat(sources, lines, [''])))"
	}
	touched := fmt.Sprintf("source_offset >= %d OR %s > %s", p.offset, last, quote(cmp.Or(p.closed, beginning)))
	for _, s := range []*side{&p.sources, &p.lines} {
		if len(s.withdrawn) > 0 {
			touched += " OR " + naming(slices.Collect(maps.Keys(s.withdrawn)))
		}
	}
	at := p.reconciliation(p.account.StatementAccountKey)
	mine := fmt.Sprintf("tenant_id = %s AND livemode = %t AND account = %s AND source_offset < %d", quote(p.account.AgencyID), p.account.Live, quote(p.account.Code), p.marks[at])
	rows, err := p.cfg.ClickHouse.Query(querying(ctx), `SELECT finding_id, part, any(sources), any(lines), argMax(state, source_offset) = ?, argMaxIf(state, source_offset, source_offset < ?) = ?
		FROM `+table+` FINAL WHERE `+mine+" AND "+which+` AND finding_id IN (SELECT finding_id FROM `+table+" WHERE "+mine+" AND ("+touched+`))
		GROUP BY finding_id, part ORDER BY finding_id, part`, state, p.offset, state)
	if err != nil {
		return nil, fmt.Errorf("reading the findings of a period: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var part uint32
		var c change
		if err := rows.Scan(&c.id, &part, &c.sources, &c.lines, scanBool{&c.now}, scanBool{&c.was}); err != nil {
			return nil, fmt.Errorf("reading the findings of a period: %w", err)
		}
		out = append(out, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if err := p.readRowsOf(ctx, out); err != nil {
		return nil, err
	}
	var counts []change
	for begin, end := 0, 0; begin < len(out); begin = end {
		for end = begin; end < len(out) && out[end].id == out[begin].id; end++ {
		}
		if sign := p.sign(out[begin:end]); sign != 0 {
			p.counted = append(p.counted, fmt.Sprintf("%s %+d", out[begin].id, sign))
			for _, c := range out[begin:end] {
				c.sign = sign
				counts = append(counts, c)
			}
		}
	}
	return counts, nil
}

// sign returns how the parts of a finding count: 1 from now on, -1 not any more, 0 as before.
func (p *period) sign(parts []change) int64 {
	day, withdrawn, before := "", false, false
	for _, c := range parts {
		if len(c.sources)+len(c.lines) > 0 { // a part may have only rows that were not taken
			day = max(day, lastDay(c.sources, c.lines))
		}
		for _, of := range []struct {
			side *side
			ids  []string
		}{{&p.sources, c.sources}, {&p.lines, c.lines}} {
			for _, id := range of.ids {
				withdrawn = withdrawn || of.side.withdrawn[id] || of.side.gone[id]
				before = before || of.side.gone[id] && !of.side.withdrawn[id]
			}
		}
	}
	holds := parts[0].now != 0 && !withdrawn
	counted := parts[0].was != 0 && !before && p.closed != "" && day <= p.closed
	switch {
	case holds && !counted && day <= p.sheet.To:
		return 1
	case counted && !holds:
		p.sheet.Corrections++
		return -1
	}
	return 0
}

// readMatches counts the matches of the period, and those of earlier ones that do not hold any
// more.
func (p *period) readMatches(ctx context.Context) error {
	var err error
	if p.matched, err = p.changes(ctx, "matches", journal.FindingOpen, "1"); err != nil {
		return err
	}
	return p.count(p.matched, func(r *Roll) *Count { return &r.Matched })
}

// readExplanations counts what people have explained or written off.
func (p *period) readExplanations(ctx context.Context) error {
	list, err := p.changes(ctx, "breaks", journal.FindingResolved, "(state != 'resolved' OR resolution IN ('explain', "+quote(string(casework.ResolutionWriteOff))+"))")
	if err != nil {
		return err
	}
	return p.count(list, func(r *Roll) *Count { return &r.Resolved })
}

// readRowsOf reads the rows of findings that were not read yet.
func (p *period) readRowsOf(ctx context.Context, list []change) error {
	var sources, lines []string
	for _, c := range list {
		sources, lines = append(sources, p.sources.unknown(c.sources)...), append(lines, p.lines.unknown(c.lines)...)
	}
	return p.readOlder(ctx, unique(sources), unique(lines))
}

// count adds the rows of findings to a step of both sides.
func (p *period) count(list []change, step func(*Roll) *Count) error {
	for _, c := range list {
		for _, of := range []struct {
			side *side
			ids  []string
		}{{&p.sources, c.sources}, {&p.lines, c.lines}} {
			if err := of.side.count(of.ids, c.sign, step(of.side.roll)); err != nil {
				return fmt.Errorf("account %s: %w", p.account.Code, err)
			}
		}
	}
	return nil
}

// unknown returns the rows whose amount is not read yet.
func (s *side) unknown(ids []string) (out []string) {
	for _, id := range ids {
		_, fresh := s.fresh[id]
		_, older := s.older[id]
		if !fresh && !older && !s.moneyless[id] {
			out = append(out, id)
		}
	}
	return out
}

var (
	errTwice   = errors.New("a row is settled twice")
	errMissing = errors.New("a row of a finding is not in ClickHouse: check the tables with `quittance rebuild journal`")
)

// count adds rows to a step.
func (s *side) count(ids []string, sign int64, to *Count) error {
	for _, id := range ids {
		amount, fresh := s.fresh[id]
		if !fresh {
			var older bool
			if amount, older = s.older[id]; !older {
				if s.moneyless[id] {
					continue
				}
				return fmt.Errorf("%w: %s", errMissing, id)
			}
		}
		if sign > 0 {
			if s.settled[id] {
				return fmt.Errorf("%w: %s", errTwice, id)
			}
			s.settled[id] = true
		}
		to.add(amount, sign)
	}
	return nil
}

// readOlder reads the amounts of rows that the close before knew.
func (p *period) readOlder(ctx context.Context, sources, lines []string) error {
	ofLines := func(ids []string, accounts []registry.StatementAccount, amount string, s *side) error {
		for _, some := range chunks(ids) {
			if err := p.readLinesOf(ctx, accounts, amount, linesByID(some), s, s.older); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ofLines(lines, []registry.StatementAccount{p.account}, p.countsColumn(), &p.lines); err != nil {
		return err
	}
	entries, settled := parted(sources, func(id string) bool { return !isLine(id) })
	if err := ofLines(settled, p.settling, "net_amount", &p.sources); err != nil {
		return err
	}
	for _, some := range chunks(entries) {
		days, entries := dates(some)
		if err := p.readExpectedOf(ctx, in("local_date", "toDate", days)+" AND "+in("entry_id", "toUUID", entries), p.sources.older); err != nil {
			return err
		}
	}
	return nil
}

// readBreaks counts the open breaks of days until the end of the period.
func (p *period) readBreaks(ctx context.Context) error {
	open := map[string]journal.Finding{}
	if err := p.findings(ctx, "breaks", journal.FindingOpen, "day <= "+quote(p.sheet.To), open); err != nil {
		return err
	}
	maps.DeleteFunc(open, func(_ string, f journal.Finding) bool { return f.Type != journal.FindingBreak })
	for _, f := range open {
		p.sheet.OpenBreaks.add(f.Amount, 1)
	}
	p.sheet.OpenBreaksDigest = digestOf(slices.Sorted(maps.Keys(open)))
	return nil
}

// digestOf returns the SHA-256 of ids in hexadecimal.
func digestOf(ids []string) string {
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:])
}

// readStatements names the statements of the period, and refuses it while one is missing, under
// way or in quarantine.
func (p *period) readStatements(ctx context.Context) error {
	c, err := intake.Cover(ctx, p.cfg.Pool, p.cfg.Verify, p.account.StatementAccountKey, p.sheet.From, p.sheet.To, p.cfg.Now())
	if err != nil {
		return err
	}
	p.sheet.Statements = c.Statements
	switch {
	case len(c.Quarantined) > 0:
		return operation.Refuse("period.quarantined", "", operation.Args{"import": c.Quarantined[0]})
	case c.Pending:
		return operation.Refuse("period.import_pending", "", nil)
	case c.Last < p.sheet.To:
		return operation.Refuse("period.statement_missing", "", operation.Args{"day": p.sheet.To})
	}
	unproved, err := c.Unproved(ctx, intake.Records{Kafka: p.cfg.Kafka, Topology: p.cfg.Topology, Codec: p.cfg.Codec})
	if err != nil {
		return err
	}
	if unproved != "" {
		return operation.Refuse("period.statement_unproved", "", operation.Args{"import": unproved})
	}
	if p.account.Kind == registry.AccountBank { // its balances and numbers tell of gaps
		return nil
	}
	shown := map[string]bool{}
	for id := range p.lines.fresh {
		shown[id[:len(time.DateOnly)]] = true
	}
	missing := ""
	for id := range p.sources.fresh {
		day := id[:len(time.DateOnly)]
		if day >= p.sheet.From && !shown[day] && !p.sources.settled[id] && (missing == "" || day < missing) {
			missing = day
		}
	}
	if missing != "" {
		return operation.Refuse("period.statement_missing", "", operation.Args{"day": missing})
	}
	return nil
}
