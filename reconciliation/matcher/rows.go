package matcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/go-faster/city"

	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/statement"
)

// marks are the watermarks of a run: offsets by topic/partition.
type marks map[string]int64

func markOf(topic string, partition int32) string {
	return topic + "/" + strconv.Itoa(int(partition))
}

// statements is the name of the mark of an account's statements.
func (m *Matcher) statements(a registry.StatementAccount) string {
	return markOf(schemas.TopicStatements, m.partition(schemas.TopicStatements, a.StatementAccountKey))
}

// reconciliation is the name of the mark of an account's findings.
func (m *Matcher) reconciliation(k registry.StatementAccountKey) string {
	return markOf(schemas.TopicReconciliation, m.partition(schemas.TopicReconciliation, k))
}

// ofAccount is the name of the mark that says that a run has read the lines of an account. Accounts
// share partitions, and one may begin to settle to a bank account later: nobody has read its lines.
func ofAccount(partition, code string) string { return partition + "/" + code }

// of returns the mark of an account's statements: 0 if it was not among the accounts. Earlier releases
// wrote marks of partitions only.
func (m marks) of(partition, code string) int64 {
	if at, ok := m[ofAccount(partition, code)]; ok {
		return at
	}
	for name := range m {
		if topic, rest, _ := strings.Cut(name, "/"); topic == schemas.TopicStatements && strings.Contains(rest, "/") {
			return 0
		}
	}
	return m[partition]
}

// world is what a run knows: the rows that it has read, and the findings in force that they are
// in.
type world struct {
	expected *table[match.Expected]
	// settles are the lines of other accounts that settle to a bank account.
	settles *table[match.Line]
	lines   *table[match.Line]
	// gone are entries of expected money and lines of statements that do not count any more.
	gone map[string]bool
	// left are lines of accounts that do not settle to the bank account any more.
	left map[string]bool
	// news is how many rows no earlier run has read, newRefs the hashes of their references, and fresh those
	// of days that are not read as a whole.
	news    int
	newRefs []uint64
	fresh   map[string]bool
	// inForce are matches by id. open are all proposals and breaks of the account.
	inForce map[string]journal.Finding
	open    map[string]journal.Finding
	// explained are breaks and proposals that people have explained or written off.
	explained map[string]journal.Finding
	// closes are those of the account, in their order.
	closes []journal.Close
	// askedRefs are hashes of references that were looked up, and asked rows whose findings were.
	askedRefs map[uint64]bool
	asked     map[string]bool
}

func newWorld() *world {
	return &world{
		expected: newTable[match.Expected](), settles: newTable[match.Line](), lines: newTable[match.Line](), gone: map[string]bool{}, left: map[string]bool{}, fresh: map[string]bool{},
		inForce: map[string]journal.Finding{}, open: map[string]journal.Finding{}, explained: map[string]journal.Finding{}, askedRefs: map[uint64]bool{}, asked: map[string]bool{},
	}
}

// closed returns the last close of the account; nil for none.
func (w *world) closed() *journal.Close {
	if n := len(w.closes); n > 0 {
		return &w.closes[n-1]
	}
	return nil
}

// has reports whether the row was read.
func (w *world) has(id string) bool {
	return w.expected.get(id) != nil || w.settles.get(id) != nil || w.lines.get(id) != nil || w.gone[id] || w.left[id]
}

// refs returns the references by which other rows name a row.
func (w *world) refs(id string) []string {
	if e := w.expected.get(id); e != nil {
		return e.Refs()
	}
	if l := w.settles.get(id); l != nil {
		return batchOf(l)
	}
	if l := w.lines.get(id); l != nil {
		return refsOf(l)
	}
	return nil
}

func refsOf(l *match.Line) []string { return append(l.Refs(), batchOf(l)...) }

func batchOf(l *match.Line) []string {
	if l.Batch == "" {
		return nil
	}
	return []string{l.Batch}
}

// matched returns the rows of the matches in force.
func (w *world) matched() map[string]bool {
	out := map[string]bool{}
	for _, f := range w.inForce {
		for _, id := range slices.Concat(f.Sources, f.Lines) {
			out[id] = true
		}
	}
	return out
}

// maxList is how many bytes of texts a query has at most. The development engine takes queries of
// a megabyte.
const maxList = 200_000

// maxHashes is how many hashes are about as long.
const maxHashes = maxList / 20

// chunks splits texts into lists that a query takes.
func chunks(texts []string) (out [][]string) {
	begin, size := 0, 0
	for i, text := range texts {
		if size += len(text) + 2; size > maxList && i > begin { // a line feed is two bytes
			out, begin, size = append(out, texts[begin:i]), i, len(text)+2
		}
	}
	if begin < len(texts) {
		out = append(out, texts[begin:])
	}
	return out
}

// dates is a list of days without repetition, and rest the part after the day.
func dates(ids []string) (days []string, rest []string) {
	for _, id := range ids {
		day, after, _ := strings.Cut(id, "/")
		days, rest = append(days, day), append(rest, after)
	}
	slices.Sort(days)
	return slices.Compact(days), rest
}

// list returns an expression of the texts as an array: a single literal, which ClickHouse reads
// faster than many.
func list(texts []string) string {
	return "splitByChar('\\n', " + quote(strings.Join(texts, "\n")) + ")"
}

// quote returns a text as a literal. It also escapes what clickhouse-go may take for a parameter, such
// as {a:String}, which it does inside of a literal too. A reference of an operator may have any text.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "?", `\x3f`, "$", `\x24`, "@", `\x40`, "{", `\x7b`).Replace(text) + "'"
}

// in returns the condition that an expression is one of the texts, which a function converts
// unless it is empty.
func in(expression, convert string, texts []string) string {
	return expression + " IN (SELECT " + convert + "(arrayJoin(" + list(texts) + ")))"
}

// hashOf returns what ClickHouse's cityHash64 returns for a text.
func hashOf(text string) uint64 { return city.CH64([]byte(text)) }

// hashes is a list as an expression.
func hashes(all []uint64) string {
	texts := make([]string, len(all))
	for i, hash := range all {
		texts[i] = strconv.FormatUint(hash, 10)
	}
	return "arrayMap(text -> toUInt64(text), " + list(texts) + ")"
}

// naming returns the condition that a finding names one of the rows. It compares hashes: two rows with one
// hash cost the reading of a finding that names none of them.
func naming(ids []string) string {
	all := make([]uint64, len(ids))
	for i, id := range ids {
		all[i] = hashOf(id)
	}
	return hint("row_hashes", all) + " AND arrayExists(hash -> hash IN (SELECT arrayJoin(" + hashes(all) + ")), row_hashes)"
}

// maxHint is how many hashes hint has at most. The bloom filter finds nearly all granules for more.
const maxHint = 500

// hint returns a condition that is always true, by which ClickHouse leaves out granules whose column of
// hashes has none of a list. It is for the skip index alone: to evaluate hasAny takes longer than a set.
func hint(column string, all []uint64) string {
	if len(all) > maxHint {
		return "1"
	}
	return "indexHint(hasAny(" + column + ", " + hashes(all) + "))"
}

// querying are the settings of all queries of a run. A query of single rows with FINAL reads most columns
// only of those rows with optimize_move_to_prewhere_if_final, which moves conditions of the sorting key.
func querying(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"max_query_size": 1 << 27, "do_not_merge_across_partitions_select_final": 1, "use_skip_indexes_if_final": 1, "optimize_move_to_prewhere_if_final": 1,
	}))
}

// pair is whose money an entry is: the offer and the merchant account.
type pair struct{ tenant, offer, account string }

// arriving returns whose money of the memory arrives on the account of the run.
func (r *run) arriving() []pair {
	out := slices.DeleteFunc(slices.Collect(maps.Keys(r.memory.pairs)), func(p pair) bool { return !r.arrives(p) })
	slices.SortFunc(out, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.offer, b.offer), cmp.Compare(a.account, b.account))
	})
	return out
}

// nameOf is whose money a pair's is, as the records of runs and closes name it.
func (r *run) nameOf(p pair) string {
	return journal.MoneyOf(p.tenant, r.account.Currency, p.offer, p.account)
}

// names returns whose money arrives on the account of the run, for its record.
func (r *run) names() []string {
	out := make([]string, len(r.whose))
	for i, p := range r.whose {
		out[i] = r.nameOf(p)
	}
	slices.Sort(out)
	return out
}

// knownMoney is the expected money that a run or a close knew: the rows below its watermarks, of a close
// those of days until its last one.
type knownMoney struct {
	names []string // whose money it had
	// all is true for one that does not say whose it had, of an earlier release: all that arrives now.
	all   bool
	at    marks
	until string // empty for a run
	// pairs are those of the account of which it is the last one that had them.
	pairs []pair
}

func (k knownMoney) had(name string) bool { return k.all || slices.Contains(k.names, name) }

// knownBy divides the money of the account by the last run or close that had it. list has these, from the
// latest to the earliest. A registry file may give a merchant account to a statement account later: then
// nobody has read its older payments, and their knownMoney has no marks.
func (r *run) knownBy(list []knownMoney) []knownMoney {
	rest := slices.Clone(r.whose)
	var out []knownMoney
	for _, k := range list {
		rest = slices.DeleteFunc(rest, func(p pair) bool {
			had := k.had(r.nameOf(p))
			if had {
				k.pairs = append(k.pairs, p)
			}
			return had
		})
		if len(k.pairs) > 0 {
			out = append(out, k)
		}
	}
	if len(rest) > 0 {
		out = append(out, knownMoney{pairs: rest, at: marks{}})
	}
	return out
}

// readBefore reads of which money earlier runs have read what. In nearly all cases the last run had all of
// it.
func (r *run) readBefore(ctx context.Context) error {
	list := []knownMoney{r.lastMoney}
	r.known = r.knownBy(list)
	if r.first || !slices.ContainsFunc(r.known, func(k knownMoney) bool { return len(k.at) == 0 }) {
		return nil
	}
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT watermarks, money_of FROM match_runs FINAL
		WHERE tenant_id = ? AND livemode = ? AND account = ? AND source_offset < ? AND hasAny(money_of, ?) ORDER BY source_offset DESC`,
		r.account.AgencyID, r.account.Live, r.account.Code, r.marks[r.reconciliation(r.account.StatementAccountKey)], r.names())
	if err != nil {
		return fmt.Errorf("reading earlier runs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var at map[string]int64
		var names []string
		if err := rows.Scan(&at, &names); err != nil {
			return fmt.Errorf("reading earlier runs: %w", err)
		}
		list = append(list, knownMoney{names: names, at: at})
	}
	r.known = r.knownBy(list)
	return rows.Err()
}

// arrives reports whether money arrives on the account of the run. A report of no known session
// names its merchant account only.
func (r *run) arrives(p pair) bool {
	a := r.account
	offer := p.offer
	if offer == "" {
		if a.Payouts() { // nobody reports a payout that no batch has
			return false
		}
		if _, known := r.cfg.Registry.AccountOfCollection(a.AgencyID, a.Live, a.Offer, p.account); !known || p.account == "" || a.Offer == "" {
			return false
		}
		offer = a.Offer
	} else if p.tenant == "" {
		return false
	}
	found, ok := r.cfg.Registry.StatementAccountOf(a.AgencyID, a.Live, offer, a.Currency, p.account)
	return ok && found.Code == a.Code
}

// readExpected reads expected money of the days from the horizon on, undecided collections, and
// what no earlier run has read. Like all that a run reads it is below the watermarks.
func (r *run) readExpected(ctx context.Context) error {
	if len(r.whose) == 0 {
		return nil
	}
	// A query for each, because ClickHouse uses no index for their union.
	from, unread := quote(r.firstDate().String()), r.unreadMoney()
	for _, which := range []string{"local_date >= " + from, "local_date < " + from + " AND " + unread} {
		if err := r.scanExpected(ctx, unread, which); err != nil {
			return err
		}
	}
	var undecided []string
	for id := range r.memory.undecided {
		if id[:len(time.DateOnly)] < r.firstDate().String() && !r.world.has(id) {
			undecided = append(undecided, id)
		}
	}
	slices.Sort(undecided)
	return r.readExpectedByID(ctx, undecided)
}

// firstDate returns the first day of expected money that is read as a whole. Days of expected
// money are those of Africa/Brazzaville; the account's may end later.
func (r *run) firstDate() statement.Day {
	if r.account.Zone == registry.DefaultZone {
		return r.horizon
	}
	return max(0, r.horizon-1)
}

// readExpectedByID reads expected money by its ids.
func (r *run) readExpectedByID(ctx context.Context, ids []string) error {
	if len(r.whose) == 0 {
		return nil
	}
	unread := r.unreadMoney()
	for _, ids := range chunks(ids) {
		days, entries := dates(ids)
		if err := r.scanExpected(ctx, unread, in("local_date", "toDate", days)+" AND "+in("entry_id", "toUUID", entries)); err != nil {
			return err
		}
	}
	return nil
}

// ofExpected returns the condition of expected money of the account of the run that is below the
// watermarks, and its arguments.
func (r *run) ofExpected() (string, []any) {
	return "tenant_id IN (?, '') AND livemode = ? AND currency = ? AND " + r.owned() + " AND " + r.below(moneyTopics...), []any{r.account.AgencyID, r.account.Live, r.account.Currency}
}

// scanExpected reads expected money that fulfils a condition.
func (r *run) scanExpected(ctx context.Context, unread, which string) error {
	of, args := r.ofExpected()
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_date), toString(entry_id), withdrawn, toString(kind), approved_at, gross, toString(currency),
			operator_ref, payment_ref, notice_refs, `+unread+`
		FROM expected_money FINAL WHERE `+of+" AND "+which, args...)
	if err != nil {
		return fmt.Errorf("reading expected money: %w", err)
	}
	defer func() { _ = rows.Close() }()
	one := words{}
	for rows.Next() {
		var day, entry string
		var e match.Expected
		var kind string
		var withdrawn, fresh uint8
		if err := rows.Scan(&day, &entry, scanBool{&withdrawn}, &kind, &e.At, &e.Amount, &e.Currency, &e.OperatorRef, &e.PaymentRef, &e.NoticeRefs, scanBool{&fresh}); err != nil {
			return fmt.Errorf("reading expected money: %w", err)
		}
		e.Currency = one.of(e.Currency)
		e.ID, e.Undecided, e.Refused = journal.ExpectedRow(day, entry), kind == journal.ExpectedUndecided, kind == journal.ExpectedRefused
		e.Payout = r.account.Payouts()
		if fresh != 0 {
			r.isNew(e.ID, e.Refs())
		}
		if withdrawn != 0 {
			r.world.gone[e.ID] = true
			r.world.expected.remove(e.ID)
		} else if !r.world.gone[e.ID] {
			r.world.expected.put(e.ID, e)
		}
	}
	return rows.Err()
}

// owned returns the condition that money arrives on the account of the run.
func (r *run) owned() string { return ownedBy(r.whose) }

// ownedBy returns the condition that money is that of pairs. It compares each column by itself,
// because ClickHouse compares a tuple of columns with the texts of every row.
func ownedBy(pairs []pair) string {
	accounts := map[pair][]string{}
	for _, p := range pairs {
		of := pair{tenant: p.tenant, offer: p.offer}
		accounts[of] = append(accounts[of], quote(p.account))
	}
	var out []string
	for of, names := range accounts {
		slices.Sort(names)
		out = append(out, "tenant_id = "+quote(of.tenant)+" AND offer_id = "+quote(of.offer)+" AND account IN ("+strings.Join(names, ", ")+")")
	}
	slices.Sort(out)
	return "(" + strings.Join(out, " OR ") + ")"
}

// scanBool reads a Bool or a UInt8, which expressions of ClickHouse return.
type scanBool struct{ to *uint8 }

// Scan implements sql.Scanner.
func (s scanBool) Scan(v any) error {
	switch v := v.(type) {
	case bool:
		*s.to = 0
		if v {
			*s.to = 1
		}
	case uint8:
		*s.to = v
	default:
		return fmt.Errorf("a truth value is a %T", v)
	}
	return nil
}

// readLines reads lines of statements of the days from the horizon on, and those that no earlier
// run has read: of the account of the run, or of the accounts that settle to it.
func (r *run) readLines(ctx context.Context, accounts []registry.StatementAccount, into *table[match.Line]) error {
	if len(accounts) == 0 {
		return nil
	}
	from, unread := quote(r.horizon.String()), r.unreadLines(accounts)
	for _, which := range []string{"local_day >= " + from, "local_day < " + from + " AND " + unread} { // as in readExpected
		if err := r.scanLines(ctx, accounts, into, unread, which); err != nil {
			return err
		}
	}
	return nil
}

// readLinesByID reads lines by their ids.
func (r *run) readLinesByID(ctx context.Context, accounts []registry.StatementAccount, into *table[match.Line], ids []string) error {
	if len(accounts) == 0 {
		return nil
	}
	unread := r.unreadLines(accounts)
	for _, ids := range chunks(ids) {
		if err := r.scanLines(ctx, accounts, into, unread, linesByID(ids)); err != nil {
			return err
		}
	}
	return nil
}

// linesByID returns the condition that a line is one of those with the ids. The sorting key has the day and
// the id of the line: a set of both finds the granules of the lines, two sets those of every day.
func linesByID(ids []string) string {
	days, lines := make([]string, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		day, line, _ := strings.Cut(id, "/")
		days[i], lines[i] = day, line[:strings.LastIndexByte(line, '#')]
	}
	return "(local_day, line_id) IN (SELECT toDate(day), line FROM (SELECT " + list(days) + " AS days, " + list(lines) + " AS lines) ARRAY JOIN days AS day, lines AS line) AND " +
		in(journal.LineRowSQL, "", ids)
}

// ofLines returns the condition of lines of accounts that are below the watermarks, and its
// arguments.
func (r *run) ofLines(accounts []registry.StatementAccount) (string, []any) {
	return "tenant_id = ? AND livemode = ? AND " + r.ofAccounts(accounts, r.marks, "<"), []any{r.account.AgencyID, r.account.Live}
}

// unreadLines returns the condition that no earlier run has read a line.
func (r *run) unreadLines(accounts []registry.StatementAccount) string {
	return r.ofAccounts(accounts, r.before, ">=")
}

func (r *run) ofAccounts(accounts []registry.StatementAccount, at marks, compare string) string {
	out := make([]string, len(accounts))
	for i, a := range accounts {
		out[i] = fmt.Sprintf("account = %s AND source_offset %s %d", quote(a.Code), compare, at.of(r.statements(a), a.Code))
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

// moneyLine is the condition of the columns of statement_lines that a line is money of its own.
var moneyLine = func() string {
	var without []string
	for _, kind := range statement.Kinds {
		if !kind.Money() {
			without = append(without, quote(string(kind)))
		}
	}
	return "kind NOT IN (" + strings.Join(without, ", ") + ")"
}()

// scanLines reads lines that fulfil a condition.
func (r *run) scanLines(ctx context.Context, accounts []registry.StatementAccount, into *table[match.Line], unread, which string) error {
	of, args := r.ofLines(accounts)
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_day), line_id, content, toString(account), at, toString(kind), amount, fee_amount, toString(currency), operator_ref, payment_ref, notice_ref, batch, reversal, withdrawn, `+unread+`
		FROM statement_lines FINAL WHERE `+of+" AND "+which, args...)
	if err != nil {
		return fmt.Errorf("reading lines of statements: %w", err)
	}
	defer func() { _ = rows.Close() }()
	one := words{}
	for rows.Next() {
		var day, id, kind string
		var content uint64
		var at *time.Time
		var l match.Line
		var withdrawn, isFresh uint8
		if err := rows.Scan(&day, &id, &content, &l.Account, &at, &kind, &l.Amount, &l.Fee, &l.Currency, &l.OperatorRef, &l.PaymentRef, &l.NoticeRef, &l.Batch, &l.Reversal, scanBool{&withdrawn}, scanBool{&isFresh}); err != nil {
			return fmt.Errorf("reading lines of statements: %w", err)
		}
		l.Account, l.Currency, kind = one.of(l.Account), one.of(l.Currency), one.of(kind)
		l.ID, l.Kind = journal.LineRow(day, id, content), statement.Kind(kind)
		if l.Day, err = statement.ParseDay(day); err != nil {
			return err
		}
		if at != nil {
			l.At = *at
		}
		if withdrawn != 0 {
			r.world.gone[l.ID] = true
			into.remove(l.ID)
		} else if !r.world.gone[l.ID] {
			into.put(l.ID, l)
		}
		switch {
		case isFresh != 0 && into == r.world.settles:
			r.isNew(l.ID, batchOf(&l))
		case isFresh != 0:
			r.isNew(l.ID, refsOf(&l))
		}
	}
	return rows.Err()
}

// counts returns what a line of the account counts: of a bank's what arrived, less its charges, as
// package match compares it with the lines of operators.
func (r *run) counts(l *match.Line) int64 {
	if r.account.Kind == registry.AccountBank {
		return l.Net()
	}
	return l.Amount
}

// countsColumn is the column of statement_lines with what counts returns.
func (r *run) countsColumn() string {
	if r.account.Kind == registry.AccountBank {
		return "net_amount"
	}
	return "amount"
}

// below returns the condition that a row was made of a record below the watermarks.
func (r *run) below(topics ...string) string { return r.offsets(r.marks, "<", topics) }

// moneyTopics are the topics that expected money comes from.
var moneyTopics = []string{schemas.TopicEvents, schemas.TopicCases, schemas.Disbursement.Events}

// unreadMoney returns the condition that no earlier run has read a row of expected money of the account.
func (r *run) unreadMoney() string {
	if len(r.known) == 1 { // the usual case, for which ClickHouse has an index
		return r.offsets(r.known[0].at, ">=", moneyTopics)
	}
	out := make([]string, len(r.known))
	for i, k := range r.known {
		out[i] = "(" + ownedBy(k.pairs) + " AND " + r.offsets(k.at, ">=", moneyTopics) + ")"
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

func (r *run) offsets(at marks, compare string, topics []string) string {
	var out []string
	for _, topic := range topics {
		for name := range r.marks {
			if base, partition, _ := strings.Cut(name, "/"); base == topic {
				out = append(out, fmt.Sprintf("source_topic = %s AND source_partition = %s AND source_offset %s %d", quote(topic), partition, compare, at[name]))
			}
		}
	}
	slices.Sort(out)
	return "(" + strings.Join(out, " OR ") + ")"
}

// among returns the condition that a finding of the account is one of a table that have a row that fulfils
// a condition. It reads only the columns of that condition; the findings are then read by their key.
func (r *run) among(table, which string) string {
	return fmt.Sprintf("(day, finding_id) IN (SELECT day, finding_id FROM %s WHERE tenant_id = %s AND livemode = %t AND account = %s AND %s)", table, quote(r.account.AgencyID), r.account.Live, quote(r.account.Code), which)
}

// findings reads the account's findings of a table that have a state and fulfil a condition.
func (r *run) findings(ctx context.Context, table string, state journal.FindingState, which string, into map[string]journal.Finding) error {
	return r.findingsIn(ctx, r.account.StatementAccountKey, table, state, which, into)
}

// findingsIn reads findings of an account of which the run has the mark.
func (r *run) findingsIn(ctx context.Context, of registry.StatementAccountKey, table string, state journal.FindingState, which string, into map[string]journal.Finding) error {
	// The last row of a finding tells its state. An aggregate function for each column would take longer.
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT finding_id, part, toString(type), toString(hop), toString(stage), toString(kind), toString(reason), toString(action), key, toString(day), toString(currency), amount,
			sources, lines, not_taken, rule, case_id, toString(resolution), source_offset
		FROM (SELECT * FROM `+table+` FINAL
			WHERE tenant_id = ? AND livemode = ? AND account = ? AND source_offset < ? AND `+which+`
			ORDER BY source_offset DESC LIMIT 1 BY finding_id, part)
		WHERE state = ? ORDER BY finding_id, part`, of.AgencyID, of.Live, of.Code, r.marks[r.reconciliation(of)], state)
	if err != nil {
		return fmt.Errorf("reading findings: %w", err)
	}
	defer func() { _ = rows.Close() }()
	parts := map[string]int{}
	for rows.Next() {
		f := journal.Finding{TenantID: of.AgencyID, Livemode: of.Live, Account: of.Code}
		var day string
		if err := rows.Scan(&f.ID, &f.Part, &f.Type, &f.Hop, &f.Stage, &f.Kind, &f.Reason, &f.Action, &f.Key, &day, &f.Currency, &f.Amount, &f.Sources, &f.Lines, &f.NotTaken, &f.Rule, &f.CaseID, &f.Resolution, &f.SourceOffset); err != nil {
			return fmt.Errorf("reading findings: %w", err)
		}
		if f.Day, err = time.Parse(time.DateOnly, day); err != nil {
			return fmt.Errorf("reading findings: %w", err)
		}
		if parts[f.ID]++; parts[f.ID] > 1 { // an earlier query may have read the finding, too
			first := into[f.ID]
			f.Sources, f.Lines, f.NotTaken = append(first.Sources, f.Sources...), append(first.Lines, f.Lines...), append(first.NotTaken, f.NotTaken...)
		}
		into[f.ID] = f
	}
	return rows.Err()
}
