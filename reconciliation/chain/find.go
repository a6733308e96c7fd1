package chain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/statement"
)

// most is how many chains Find returns.
const most = 20

// Evidence is where a record of Kafka is that proves a hop.
type Evidence struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// String returns the evidence as topic/partition@offset.
func (e Evidence) String() string { return fmt.Sprintf("%s/%d@%d", e.Topic, e.Partition, e.Offset) }

// Chain is what is known of one sum of money: what was due, the payment, what the ERP confirmed,
// and the lines of statements that prove it.
type Chain struct {
	// Money is nil for the chain of a line that proves no payment, and for that of a break.
	Money *Money `json:"money"`
	Items []Item `json:"items"`
	// Line is the line asked for, if it proves no payment, such as a line of the bank. Settles are
	// the lines of other accounts that it pays, at most 20 of the SettlesInAll.
	Line         *Line  `json:"line"`
	Settles      []Line `json:"settles"`
	SettlesInAll int    `json:"settles_in_all"`
	// Operator are lines of the operator's, the acquirer's or the counters' account, Bank those of
	// the bank's.
	Operator []Line `json:"operator_lines"`
	Bank     []Line `json:"bank_lines"`
	// Breaks are the open breaks and proposals that the money and its lines are in, or the break asked
	// for.
	Breaks []Break `json:"breaks"`
}

// Money is a row of expected_money. Amounts are minor units.
type Money struct {
	Row         string    `json:"row"` // as findings name it
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	Withdrawn   bool      `json:"withdrawn"`
	TenantID    string    `json:"tenant_id"`
	Live        bool      `json:"livemode"`
	SessionID   string    `json:"session_id"` // of a payout the batch
	OrderID     string    `json:"order_id"`
	PaymentRef  string    `json:"payment_ref"`
	NoticeRefs  []string  `json:"notice_refs"`
	OperatorRef string    `json:"operator_ref"`
	OfferID     string    `json:"offer_id"`
	ApprovedAt  time.Time `json:"approved_at"`
	Gross       int64     `json:"gross"`
	Fee         int64     `json:"fee"`
	Currency    string    `json:"currency"`
	Evidence    Evidence  `json:"evidence"`
	// Payout is the attempt to pay a line of a batch (journal.PayoutName); empty for money of a session.
	Payout string `json:"payout,omitempty"`

	entryID, collectionID string
}

// Item is a due of the payment with its confirmation to the agency's ERP.
type Item struct {
	Number      uint16 `json:"item"`
	Due         string `json:"erp_due_ref"`
	Transaction string `json:"transaction_id"`
	NoticeRef   string `json:"notice_ref"`
	Amount      int64  `json:"amount"`
	// ConfirmedAt is when the ERP accepted it, and ConfirmedBy the event that says so; empty while
	// it has not.
	ConfirmedAt *time.Time `json:"confirmed_at"`
	ConfirmedBy string     `json:"confirmed_by"`
}

// Line is a line of a statement, with the match that proves the money before it.
type Line struct {
	Row         string         `json:"row"` // as findings name it
	TenantID    string         `json:"tenant_id"`
	Live        bool           `json:"livemode"`
	Account     string         `json:"account"`
	Day         string         `json:"day"`
	Kind        statement.Kind `json:"kind"`
	Amount      int64          `json:"amount"`
	Fee         int64          `json:"fee"`
	Currency    string         `json:"currency"`
	OperatorRef string         `json:"operator_ref"`
	PaymentRef  string         `json:"payment_ref"`
	Batch       string         `json:"batch"`
	StatementID string         `json:"statement_id"`
	ImportID    string         `json:"import_id"`
	FileLine    uint32         `json:"file_line"`
	// Withdrawn says that two people have withdrawn its import: it does not count any more.
	Withdrawn bool     `json:"withdrawn"`
	Evidence  Evidence `json:"evidence"`
	// Match is empty for a line that no match in force has.
	Match         string    `json:"match_id"`
	Stage         string    `json:"stage"`
	Key           string    `json:"key"`
	MatchEvidence *Evidence `json:"match_evidence"`
	// Closed is the last day of the period with which the match was closed; empty while it is
	// open.
	Closed string `json:"closed"`
}

// Net is what an account that settles the line must pay for it, in minor units: the amount less the
// fee. Nothing is paid for the operator's own line of a payout.
func (l Line) Net() int64 {
	if !l.Kind.Money() {
		return 0
	}
	return l.Amount - l.Fee
}

// Break is a break or a proposal.
type Break struct {
	FindingID string `json:"finding_id"`
	Account   string `json:"account"`
	Type      string `json:"type"`
	State     string `json:"state"`
	Kind      string `json:"kind"`
	Reason    string `json:"reason"`
	Day       string `json:"day"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	CaseID    string `json:"case_id"`
	// Lines are lines of the account's statements in it, Sources the names of its other rows.
	Lines   []Line   `json:"lines"`
	Sources []string `json:"sources"`
	// ExpectedMoney and ExpectedLines are the sources, read: payments, or lines of the accounts that
	// settle to this one. At most 20 of each; only of a chain without Money.
	ExpectedMoney []Money `json:"expected_money,omitempty"`
	ExpectedLines []Line  `json:"expected_lines,omitempty"`
	// ExplainedBy are the breaks of lines that settle to the account, open or resolved by people, whose
	// amounts add up to this difference exactly: what the operator has stated beside the payments, and
	// the bank has not got. Empty if none do, or if it is not clear which.
	ExplainedBy []Explanation `json:"explained_by,omitempty"`
}

// Explanation is a break of another account that explains a difference. Amount is minor units of the
// difference's currency.
type Explanation struct {
	CaseID    string `json:"case_id"`
	FindingID string `json:"finding_id"`
	Account   string `json:"account"`
	State     string `json:"state"`
	Kind      string `json:"kind"`
	Amount    int64  `json:"amount"`
}

// Query says which chains to find. Term is a due, an order, a session, a payment or notice reference, a
// transaction, an operator's reference, a batch, a line or a row as findings name it, a finding, or the
// case of a break. TenantID selects an agency, all when it is empty; Live a mode, both when it is nil.
type Query struct {
	Term, TenantID string
	Live           *bool
}

// Find returns the chains of a term, at most 20.
func Find(ctx context.Context, conn driver.Conn, q Query) ([]Chain, error) {
	f := finder{conn, q}
	of, err := f.breaks(ctx, "finding_id = ? OR case_id = ?", "true", q.Term, q.Term)
	if err != nil {
		return nil, err
	}
	if len(of) > 0 {
		return f.ofBreaks(ctx, of)
	}
	money, err := f.money(ctx, `session_id = ? OR payment_ref = ? OR operator_ref = ? OR order_id = ? OR collection_id = ? OR has(notice_refs, ?)
		OR concat(toString(local_date), '/', toString(entry_id)) = ? OR toString(entry_id) = ?
		OR session_id IN (SELECT session_id FROM receipt_rows WHERE session_id != '' AND (erp_due_ref = ? OR transaction_id = ?))`, slices.Repeat([]any{q.Term}, 10)...)
	if err != nil {
		return nil, err
	}
	var lines []Line
	if len(money) == 0 {
		if money, lines, err = f.ofLines(ctx, q.Term); err != nil {
			return nil, err
		}
	}
	var out []Chain
	for i := range money {
		c := Chain{Money: &money[i]}
		if err := f.follow(ctx, &c); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for i := range lines {
		c := Chain{Line: &lines[i]}
		if err := f.followLine(ctx, &c); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// ofBreaks returns a chain for each break, with the rows of both sides.
func (f *finder) ofBreaks(ctx context.Context, list []found) ([]Chain, error) {
	var out []Chain
	for _, b := range list {
		if err := f.sides(ctx, &b); err != nil {
			return nil, err
		}
		out = append(out, Chain{Breaks: []Break{b.Break}})
	}
	return out, nil
}

// sides reads the sources of a break.
func (f *finder) sides(ctx context.Context, b *found) (err error) {
	var money, lines []string
	for _, id := range b.Sources {
		if ofLine(id) {
			lines = append(lines, id)
		} else {
			money = append(money, id)
		}
	}
	if len(money) > 0 {
		if b.ExpectedMoney, err = f.money(ctx, owned+" AND has(?, concat(toString(local_date), '/', toString(entry_id)))", b.of.args(money)...); err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		if b.ExpectedLines, err = f.lines(ctx, owned+" AND has(?, "+journal.LineRowSQL+")", b.of.args(lines)...); err != nil {
			return err
		}
		b.ExplainedBy, err = f.explained(ctx, b, lines)
	}
	return err
}

// explained returns what explains the difference of a break whose sources are lines.
func (f *finder) explained(ctx context.Context, b *found, lines []string) ([]Explanation, error) {
	if b.Amount == 0 {
		return nil, nil
	}
	all, err := f.breaks(ctx, owned+" AND type = 'break' AND account != ? AND hasAny(lines, ?)", "argMax(state, source_offset) IN ('open', 'resolved')", b.of.args(b.Account, lines)...)
	if err != nil || len(all) == most { // there may be more
		return nil, err
	}
	var list []Explanation
	for _, o := range all {
		if o.Currency == b.Currency {
			list = append(list, Explanation{CaseID: o.CaseID, FindingID: o.FindingID, Account: o.Account, State: o.State, Kind: o.Kind, Amount: o.Amount})
		}
	}
	return exactly(list, -b.Amount), nil
}

// exactly returns the breaks that add up to an amount: all of them, or else the only one that has it.
func exactly(list []Explanation, amount int64) []Explanation {
	var sum int64
	var alone []Explanation
	for _, e := range list {
		sum += e.Amount
		if e.Amount == amount {
			alone = append(alone, e)
		}
	}
	switch {
	case len(list) > 0 && sum == amount:
		return list
	case len(alone) == 1:
		return alone
	}
	return nil
}

// ofLine reports whether a name of a row is that of a line of a statement: it ends with the digest of
// its content.
func ofLine(row string) bool { return strings.Contains(row, "#") }

// finder reads chains.
type finder struct {
	conn driver.Conn
	Query
}

// mine is the condition that a row may be shown, whose arguments are f.args.
const mine = "(? = '' OR tenant_id = ?) AND has(?, toString(livemode))"

func (f *finder) args(more ...any) []any {
	modes := []string{"true", "false"}
	if f.Live != nil {
		modes = []string{strconv.FormatBool(*f.Live)}
	}
	return append([]any{f.TenantID, f.TenantID, modes}, more...)
}

// owner is whose rows belong to a chain. Rows of test and live money, and of several agencies, may have
// the same names. The agency is empty for money of no known session.
type owner struct {
	tenant string
	live   bool
}

// owned is the condition that a row is of an owner, whose args are its arguments.
const owned = "(? = '' OR tenant_id = ?) AND livemode = ?"

func (o owner) args(more ...any) []any { return append([]any{o.tenant, o.tenant, o.live}, more...) }

// money reads expected money that fulfils a condition.
func (f *finder) money(ctx context.Context, which string, args ...any) (out []Money, err error) {
	rows, err := f.conn.Query(ctx, `SELECT concat(toString(local_date), '/', toString(entry_id)), toString(any(kind)), toString(any(state)), max(withdrawn), toString(tenant_id), livemode, any(session_id), any(order_id), any(payment_ref), any(notice_refs),
			any(operator_ref), toString(any(offer_id)), any(approved_at), argMin(gross, withdrawn), argMin(fee, withdrawn), toString(any(currency)), toString(argMin(source_topic, withdrawn)), argMin(source_partition, withdrawn), argMin(source_offset, withdrawn),
			toString(entry_id), any(collection_id)
		FROM expected_money FINAL WHERE `+mine+` AND (`+which+`) GROUP BY tenant_id, livemode, local_date, entry_id ORDER BY min(approved_at), entry_id LIMIT ?`,
		f.args(append(args, most)...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the money of a chain: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var m Money
		if err := rows.Scan(&m.Row, &m.Kind, &m.State, &m.Withdrawn, &m.TenantID, &m.Live, &m.SessionID, &m.OrderID, &m.PaymentRef, &m.NoticeRefs, &m.OperatorRef, &m.OfferID, &m.ApprovedAt, &m.Gross, &m.Fee, &m.Currency,
			&m.Evidence.Topic, &m.Evidence.Partition, &m.Evidence.Offset, &m.entryID, &m.collectionID); err != nil {
			return nil, fmt.Errorf("reading the money of a chain: %w", err)
		}
		if m.Evidence.Topic == schemas.Disbursement.Events {
			m.Payout = m.collectionID
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// ofLines finds lines by a term. It returns the money that they prove, and the lines that prove
// none.
func (f *finder) ofLines(ctx context.Context, term string) (money []Money, alone []Line, err error) {
	found, err := f.lines(ctx, `line_id = ? OR operator_ref = ? OR payment_ref = ? OR notice_ref = ? OR batch = ? OR concat(toString(account), '/', line_id) = ? OR `+journal.LineRowSQL+` = ?
		OR `+journal.LineRowSQL+` IN (SELECT arrayJoin(lines) FROM matches WHERE finding_id = ?)`, slices.Repeat([]any{term}, 8)...)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, l := range found {
		sources, err := f.sources(ctx, owner{l.TenantID, l.Live}, l.Row)
		if err != nil {
			return nil, nil, err
		}
		var entries []string
		for _, id := range sources {
			if !seen[id] && !ofLine(id) {
				entries = append(entries, id)
			}
			seen[id] = true
		}
		if len(entries) == 0 {
			alone = append(alone, l)
			continue
		}
		more, err := f.money(ctx, "livemode = ? AND has(?, concat(toString(local_date), '/', toString(entry_id)))", l.Live, entries)
		if err != nil {
			return nil, nil, err
		}
		money = append(money, more...)
	}
	return money[:min(len(money), most)], alone, nil
}

// sources returns what the match in force of a line proves.
func (f *finder) sources(ctx context.Context, of owner, row string) (out []string, err error) {
	err = f.conn.QueryRow(ctx, `SELECT groupArrayArray(s) FROM (SELECT any(sources) AS s FROM matches WHERE `+owned+` AND finding_id IN (SELECT finding_id FROM matches WHERE has(lines, ?)) GROUP BY finding_id, part HAVING argMax(state, source_offset) = 'open')`,
		of.args(row)...).Scan(&out)
	if err != nil {
		return nil, fmt.Errorf("reading what a line proves: %w", err)
	}
	return out, nil
}

// lines reads lines that fulfil a condition.
func (f *finder) lines(ctx context.Context, which string, args ...any) (out []Line, err error) {
	rows, err := f.conn.Query(ctx, `SELECT `+journal.LineRowSQL+`, toString(tenant_id), livemode, toString(account), toString(local_day), toString(kind), amount, fee_amount, toString(currency), operator_ref, payment_ref, batch, statement_id, import_id, source_line, source_partition, source_offset, withdrawn
		FROM statement_lines FINAL WHERE `+mine+` AND (`+which+`) ORDER BY local_day, account, line_id, content, withdrawn LIMIT ?`, f.args(append(args, most)...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the lines of a chain: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		l := Line{Evidence: Evidence{Topic: "reconciliation.statements"}}
		if err := rows.Scan(&l.Row, &l.TenantID, &l.Live, &l.Account, &l.Day, (*string)(&l.Kind), &l.Amount, &l.Fee, &l.Currency, &l.OperatorRef, &l.PaymentRef, &l.Batch, &l.StatementID, &l.ImportID, &l.FileLine, &l.Evidence.Partition, &l.Evidence.Offset, &l.Withdrawn); err != nil {
			return nil, fmt.Errorf("reading the lines of a chain: %w", err)
		}
		if n := len(out) - 1; n >= 0 && l.Withdrawn && out[n].Row == l.Row { // the second row of the line
			out[n].Withdrawn = true
			continue
		}
		out = append(out, l)
	}
	return out, rows.Err()
}

// follow reads the hops after the money.
func (f *finder) follow(ctx context.Context, c *Chain) (err error) {
	if c.Items, err = f.items(ctx, c.Money); err != nil {
		return err
	}
	of := owner{cmp.Or(c.Money.TenantID, f.TenantID), c.Money.Live}
	if c.Operator, err = f.proofs(ctx, of, []string{c.Money.Row}); err != nil {
		return err
	}
	all := []string{c.Money.Row}
	for _, l := range c.Operator {
		all = append(all, l.Row)
	}
	if c.Bank, err = f.proofs(ctx, of, all[1:]); err != nil {
		return err
	}
	for _, l := range c.Bank {
		all = append(all, l.Row)
	}
	open, err := f.openBreaks(ctx, of, all)
	for _, b := range open {
		c.Breaks = append(c.Breaks, b.Break)
	}
	return err
}

// followLine reads what a line that proves no payment is compared with.
func (f *finder) followLine(ctx context.Context, c *Chain) (err error) {
	of := owner{c.Line.TenantID, c.Line.Live}
	if c.Bank, err = f.proofs(ctx, of, []string{c.Line.Row}); err != nil {
		return err
	}
	settles, err := f.sources(ctx, of, c.Line.Row)
	if err != nil {
		return err
	}
	if c.SettlesInAll = len(settles); len(settles) > 0 {
		if c.Settles, err = f.lines(ctx, owned+" AND has(?, "+journal.LineRowSQL+")", of.args(settles)...); err != nil {
			return err
		}
	}
	open, err := f.openBreaks(ctx, of, []string{c.Line.Row})
	for _, b := range open {
		if err = f.sides(ctx, &b); err != nil {
			return err
		}
		c.Breaks = append(c.Breaks, b.Break)
	}
	return err
}

// items reads the dues of a payment and their confirmations.
func (f *finder) items(ctx context.Context, m *Money) (out []Item, err error) {
	if m.SessionID == "" {
		return nil, nil
	}
	rows, err := f.conn.Query(ctx, `SELECT r.item, r.erp_due_ref, r.transaction_id, r.notice_ref, r.amount, minIf(j.occurred_at, j.event_id != ''), any(j.event_id)
		FROM (SELECT DISTINCT item, erp_due_ref, transaction_id, notice_ref, amount FROM receipt_rows FINAL WHERE tenant_id = ? AND session_id = ? AND collection_id = ? AND movement != 'reversal') AS r
		LEFT JOIN (SELECT occurred_at, event_id, if(detail['transaction_id'] = '', journal.transaction_id, detail['transaction_id']) AS of_transaction FROM journal WHERE tenant_id = ? AND session_id = ? AND event IN ('confirmation.accepted', 'confirmation.recorded')) AS j ON j.of_transaction = r.transaction_id
		GROUP BY ALL ORDER BY r.item`, m.TenantID, m.SessionID, m.collectionID, m.TenantID, m.SessionID)
	if err != nil {
		return nil, fmt.Errorf("reading the dues of a chain: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var i Item
		var at time.Time
		if err := rows.Scan(&i.Number, &i.Due, &i.Transaction, &i.NoticeRef, &i.Amount, &at, &i.ConfirmedBy); err != nil {
			return nil, fmt.Errorf("reading the dues of a chain: %w", err)
		}
		if i.ConfirmedBy != "" {
			i.ConfirmedAt = &at
		}
		out = append(out, i)
	}
	return out, rows.Err()
}

// proofs returns the lines of the matches in force that have one of the rows as a source.
func (f *finder) proofs(ctx context.Context, of owner, names []string) (out []Line, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := f.conn.Query(ctx, `SELECT m.id, m.stage, m.key, m.of_lines, m.partition, m.offset, toString(min(c.to_day)), countIf(c.close_id != '')
		FROM (SELECT finding_id AS id, toString(any(stage)) AS stage, any(key) AS key, groupUniqArrayArray(lines) AS of_lines, any(source_partition) AS partition, max(source_offset) AS offset,
				tenant_id AS tenant, livemode AS live, any(account) AS account, any(day) AS day
			FROM matches WHERE `+owned+` AND finding_id IN (SELECT finding_id FROM matches WHERE hasAny(sources, ?)) GROUP BY finding_id, tenant_id, livemode HAVING argMax(state, source_offset) = 'open') AS m
		LEFT JOIN (SELECT * FROM closes FINAL WHERE state = 'closed') AS c ON c.tenant_id = m.tenant AND c.livemode = m.live AND c.account = m.account AND c.to_day >= m.day AND c.source_offset > m.offset
		GROUP BY ALL ORDER BY m.id`, of.args(names)...)
	if err != nil {
		return nil, fmt.Errorf("reading the matches of a chain: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		m := Line{MatchEvidence: &Evidence{Topic: "reconciliation.events"}}
		var ids []string
		var closes uint64
		if err := rows.Scan(&m.Match, &m.Stage, &m.Key, &ids, &m.MatchEvidence.Partition, &m.MatchEvidence.Offset, &m.Closed, &closes); err != nil {
			return nil, fmt.Errorf("reading the matches of a chain: %w", err)
		}
		if closes == 0 {
			m.Closed = ""
		}
		lines, err := f.lines(ctx, owned+" AND has(?, "+journal.LineRowSQL+")", of.args(ids)...)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			l.Match, l.Stage, l.Key, l.MatchEvidence, l.Closed = m.Match, m.Stage, m.Key, m.MatchEvidence, m.Closed
			out = append(out, l)
		}
	}
	return out, rows.Err()
}

// found is a break with whose it is.
type found struct {
	Break
	of owner
}

// openBreaks returns the open breaks and proposals that have one of the rows.
func (f *finder) openBreaks(ctx context.Context, of owner, names []string) (out []found, err error) {
	return f.breaks(ctx, owned+" AND (hasAny(sources, ?) OR hasAny(lines, ?))", "argMax(state, source_offset) = 'open'", of.args(names, names)...)
}

// breaks returns the breaks and proposals of which rows fulfil a condition and all together another,
// with their last state.
func (f *finder) breaks(ctx context.Context, which, having string, args ...any) (out []found, err error) {
	rows, err := f.conn.Query(ctx, `SELECT finding_id, toString(tenant_id), livemode, toString(account), toString(any(type)), toString(argMax(state, source_offset)), toString(any(kind)), toString(argMax(reason, source_offset)),
			toString(any(day)), any(amount), toString(any(currency)), argMax(case_id, source_offset), groupUniqArrayArray(lines), groupUniqArrayArray(sources)
		FROM breaks WHERE `+mine+` AND (`+which+`) GROUP BY tenant_id, livemode, account, finding_id HAVING `+having+` ORDER BY finding_id LIMIT ?`, f.args(append(args, most)...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the breaks of a chain: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var b found
		var lines []string
		if err := rows.Scan(&b.FindingID, &b.of.tenant, &b.of.live, &b.Account, &b.Type, &b.State, &b.Kind, &b.Reason, &b.Day, &b.Amount, &b.Currency, &b.CaseID, &lines, &b.Sources); err != nil {
			return nil, fmt.Errorf("reading the breaks of a chain: %w", err)
		}
		if b.Lines, err = f.lines(ctx, owned+" AND has(?, "+journal.LineRowSQL+")", b.of.args(lines)...); err != nil {
			return nil, err
		}
		slices.Sort(b.Sources)
		out = append(out, b)
	}
	return out, rows.Err()
}
