package matcher

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/statement"
)

// Summary is what a run did.
type Summary struct {
	RunID string
	marks marks
	// Rows is how many rows it read.
	Rows int
	// Changes is what it wrote. Written is false if nothing had changed.
	match.Changes
	// Agreed is how many findings people have ended, and matches that they made.
	Agreed  int
	Written bool
}

// run is a run over an account.
type run struct {
	*Matcher
	account registry.StatementAccount
	// settling are the accounts that settle to a bank account.
	settling []registry.StatementAccount
	rules    match.Rules
	today    statement.Day
	id       string
	at       time.Time
	client   *kgo.Client
	marks    marks
	// before are the watermarks of the last run, and horizon its earliest waiting day. first
	// is true when there was none.
	before  marks
	horizon statement.Day
	first   bool
	lastDay statement.Day
	whose   []pair
	// known is the money of the account by the last run that has read it, and lastMoney what the last run
	// has read.
	known     []knownMoney
	lastMoney knownMoney
	world     *world
	// agreed are the records of what people agreed on, and again the breaks about which they
	// decide once more.
	agreed []*record.Finding
	again  []again
	// horizonText is horizon as rows begin with it, once it was needed.
	horizonText string
	// memory is what the process keeps of the account, while the run has it. asksMemory is true when its
	// references are up to date, because the run has many.
	memory     *memory
	asksMemory bool
}

// ErrBehind says that the sink journal has not stored what Kafka has.
var ErrBehind = errors.New("the sink journal has not written to ClickHouse yet what the run needs: check that `quittance sink journal` runs; the run is tried again")

// Account runs over one account: it matches what Kafka has by now, and writes what changed in
// one Kafka transaction. A run of the same account that began earlier and is still under way,
// also in another process, cannot write any more. After an error nothing was written, unless
// the broker did not confirm the end; the account may be run again either way.
func (m *Matcher) Account(ctx context.Context, key registry.StatementAccountKey) (Summary, error) {
	r, err := m.newRun(key)
	if err != nil {
		return Summary{}, err
	}
	if err := r.fence(ctx); err != nil {
		return Summary{}, err
	}
	defer r.client.Close()
	if err := m.reached(stepFenced); err != nil {
		return Summary{}, err
	}
	if err := r.watermarks(ctx); err != nil {
		return Summary{}, err
	}
	if err := r.last(ctx); err != nil {
		return Summary{}, err
	}
	switch told, err := r.credits(ctx); {
	case err != nil:
		return Summary{}, err
	case told: // the run has what the processor has made of it
		if err := r.watermarks(ctx); err != nil {
			return Summary{}, err
		}
	}
	if err := r.readCloses(ctx); err != nil {
		return Summary{}, err
	}
	if err := r.read(ctx); err != nil {
		return Summary{}, err
	}
	if err := r.settle(ctx); err != nil {
		return Summary{}, err
	}
	result, err := r.match()
	if err != nil {
		return Summary{}, err
	}
	return r.write(ctx, result)
}

// newRun makes a run that has not read anything.
func (m *Matcher) newRun(key registry.StatementAccountKey) (*run, error) {
	account, ok := m.cfg.Registry.StatementAccount(key)
	if !ok {
		return nil, fmt.Errorf("the registry has no account %s of agency %s", key.Code, key.AgencyID)
	}
	zone, err := account.Location()
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	now := m.cfg.Now().UTC()
	r := &run{
		Matcher: m, account: account, id: id.String(), at: now, today: statement.DayOf(now, zone), world: newWorld(),
		rules: match.Rules{Zone: zone, Cutoff: account.Cutoff, Grace: statement.Day(account.GraceDays)}, //nolint:gosec // at most 31
	}
	if account.Kind == registry.AccountBank {
		for _, a := range m.cfg.Registry.StatementAccounts(key.AgencyID, key.Live) {
			if a.SettlesTo == account.Code {
				r.settling = append(r.settling, a)
			}
		}
	}
	return r, nil
}

// fence takes the account's transactional id: the broker aborts what an earlier run has not
// committed, and refuses that run from then on.
func (r *run) fence(ctx context.Context) error {
	k := r.account.StatementAccountKey
	var err error
	r.client, err = r.cfg.Kafka.Client(
		kgo.TransactionalID(r.cfg.Kafka.Prefix+TransactionalIDs+k.AgencyID+"-"+registry.Mode(k.Live)+"-"+k.Code), kgo.TransactionTimeout(transactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(patience), kgo.ConcurrentTransactionsBackoff(20*time.Millisecond))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, _, err = r.client.ProducerID(ctx); err != nil {
		r.client.Close()
		return fmt.Errorf("asking Kafka to begin a run: %w", err)
	}
	return nil
}

func keyOf(k registry.StatementAccountKey) string {
	return k.AgencyID + "/" + registry.Mode(k.Live) + "/" + k.Code
}

func (m *Matcher) partition(topic string, k registry.StatementAccountKey) int32 {
	return m.cfg.Topology.Partition(topic, keyOf(k))
}

// sources returns the partitions that have what a run of the account reads, by topic.
func (r *run) sources() map[string][]int32 {
	of := func(topic string) []int32 {
		out := []int32{r.partition(topic, r.account.StatementAccountKey)}
		for _, a := range r.settling {
			out = append(out, r.partition(topic, a.StatementAccountKey))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	out := map[string][]int32{
		schemas.TopicEvents:         {r.cfg.Topology.Partition(schemas.TopicEvents, r.account.AgencyID)},
		schemas.TopicCases:          {0},
		schemas.TopicStatements:     of(schemas.TopicStatements),
		schemas.TopicReconciliation: of(schemas.TopicReconciliation),
	}
	if r.account.Payouts() { // no payday keeps the runs of other accounts waiting
		out[schemas.Disbursement.Events] = []int32{r.cfg.Topology.Partition(schemas.Disbursement.Events, r.account.AgencyID)}
	}
	return out
}

// watermarks sets the ends of the partitions that the run reads, and waits until the sink
// journal has written what is below. It refuses if the sink has set aside some of that.
func (r *run) watermarks(ctx context.Context) error {
	adm := kadm.NewClient(r.client)
	r.marks = marks{}
	for topic, partitions := range r.sources() {
		bounds, err := kafka.Bounds(ctx, adm, r.cfg.Topology.Name(topic))
		if err != nil {
			return err
		}
		for _, p := range partitions {
			r.marks[markOf(topic, p)] = bounds[p].To
		}
	}
	for _, a := range append([]registry.StatementAccount{r.account}, r.settling...) {
		r.marks[ofAccount(r.statements(a), a.Code)] = r.marks[r.statements(a)]
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	for {
		behind, err := r.behind(ctx, adm)
		switch {
		case ctx.Err() != nil:
			return ErrBehind
		case err != nil:
			return err
		case !behind:
			return r.complete(ctx, adm)
		}
		select {
		case <-ctx.Done():
			return ErrBehind
		case <-time.After(r.pause):
		}
	}
}

// behind reports whether ClickHouse lacks rows of a record below the watermarks. It returns
// journal.ErrRestored if ClickHouse had them.
func (r *run) behind(ctx context.Context, adm *kadm.Client) (bool, error) {
	positions, err := r.whole(ctx, adm)
	if err != nil {
		return false, err
	}
	written := map[string]int64{}
	for _, p := range positions {
		written[p.At()] = p.Position
	}
	for topic, partitions := range r.sources() {
		name := r.cfg.Topology.Name(topic)
		bounds, err := kafka.Bounds(ctx, adm, name)
		if err != nil {
			return false, err
		}
		spans := map[int32]kafka.Span{}
		for _, p := range partitions {
			from := max(bounds[p].From, written[journal.Position{Topic: name, Partition: p}.At()])
			if to := r.marks[markOf(topic, p)]; from < to {
				spans[p] = kafka.Span{From: from, To: to}
			}
		}
		// The end of a transaction is no record: no position is after it.
		found := false
		err = r.cfg.Kafka.Read(ctx, name, spans, nil, func(*kgo.Record) (bool, error) {
			found = true
			return false, nil
		})
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// whole returns the positions of ClickHouse, or journal.ErrRestored if it is behind what it once had.
func (m *Matcher) whole(ctx context.Context, adm *kadm.Client) ([]journal.Position, error) {
	committed, err := kafka.Committed(ctx, adm, m.cfg.Kafka.Prefix+m.cfg.JournalGroup)
	if err != nil {
		return nil, err
	}
	positions, err := journal.NewStore(m.cfg.ClickHouse).Positions(ctx)
	if err != nil {
		return nil, err
	}
	return positions, journal.Whole(positions, committed)
}

// firstToSayWhose is the version of the rules from which every run says whose money it expected.
const firstToSayWhose = 2

// last reads the last run of the account.
func (r *run) last(ctx context.Context) error {
	at := r.reconciliation(r.account.StatementAccountKey)
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT watermarks, toString(horizon), toString(today), money_of, rule FROM match_runs FINAL
		WHERE tenant_id = ? AND livemode = ? AND account = ? AND source_offset < ? ORDER BY source_offset DESC LIMIT 1`, r.account.AgencyID, r.account.Live, r.account.Code, r.marks[at])
	if err != nil {
		return fmt.Errorf("reading the last run: %w", err)
	}
	defer func() { _ = rows.Close() }()
	r.first = true
	for rows.Next() {
		r.first = false
		var before map[string]int64
		var horizon, today string
		var names []string
		var rule uint32
		if err := rows.Scan(&before, &horizon, &today, &names, &rule); err != nil {
			return fmt.Errorf("reading the last run: %w", err)
		}
		r.before = before
		r.lastMoney = knownMoney{names: names, all: rule < firstToSayWhose, at: before}
		if r.horizon, err = statement.ParseDay(horizon); err != nil {
			return err
		}
		if r.lastDay, err = statement.ParseDay(today); err != nil {
			return err
		}
	}
	return rows.Err()
}

// read reads the new and the open rows, and the matched ones that a reference reaches from
// these (package match, "Which rows a run needs").
func (r *run) read(ctx context.Context) error {
	if err := r.recall(ctx); err != nil {
		return err
	}
	defer r.keep()
	if err := r.learn(ctx); err != nil {
		return err
	}
	r.whose = r.arriving()
	if err := r.readBefore(ctx); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if err := r.findings(ctx, "breaks", journal.FindingOpen, "1", r.world.open); err != nil {
		return err
	}
	if err := r.findings(ctx, "matches", journal.FindingOpen, "day >= "+quote(r.horizon.String()), r.world.inForce); err != nil {
		return err
	}
	for {
		var missing []string // rows of findings that were not read
		for _, f := range []map[string]journal.Finding{r.world.open, r.world.inForce, r.world.explained} {
			for _, finding := range f {
				for _, id := range slices.Concat(finding.Sources, finding.Lines) {
					if !r.world.has(id) {
						missing = append(missing, id)
					}
				}
			}
		}
		if len(missing) > 0 {
			if err := r.loadRows(ctx, unique(missing)); err != nil {
				return err
			}
		}
		for _, id := range missing {
			if r.leftBehind(id) {
				r.world.left[id] = true
			}
			if !r.world.has(id) {
				return fmt.Errorf("row %s of a finding of account %s is not in ClickHouse: check the tables with `quittance rebuild journal`", id, r.account.Code)
			}
		}
		reached, err := r.reach(ctx)
		if err != nil {
			return err
		}
		grown, err := r.matchesOf(ctx)
		if err != nil {
			return err
		}
		explained, err := r.readExplained(ctx)
		if err != nil {
			return err
		}
		if len(missing) == 0 && !reached && !grown && !explained {
			return nil
		}
	}
}

// leftBehind reports whether a row is a line of an account that does not settle to the bank account any
// more. Breaks and proposals with it end, matches stay.
func (r *run) leftBehind(id string) bool {
	if _, line, ok := strings.Cut(id, "/"); ok && strings.Contains(id, "#") && r.account.Kind == registry.AccountBank {
		code, _, _ := strings.Cut(line, "/")
		return code != r.account.Code && !slices.ContainsFunc(r.settling, func(a registry.StatementAccount) bool { return a.Code == code })
	}
	return false
}

// load reads the days from the horizon on, and what no earlier run has read.
func (r *run) load(ctx context.Context) error {
	if err := r.readLines(ctx, r.settling, r.world.settles); err != nil {
		return err
	}
	if err := r.readExpected(ctx); err != nil {
		return err
	}
	return r.readLines(ctx, []registry.StatementAccount{r.account}, r.world.lines)
}

// loadRows reads rows by their ids.
func (r *run) loadRows(ctx context.Context, ids []string) error {
	var entries, lines []string
	for _, id := range ids {
		if strings.Contains(id, "#") {
			lines = append(lines, id)
		} else {
			entries = append(entries, id)
		}
	}
	if err := r.readLinesByID(ctx, r.settling, r.world.settles, lines); err != nil {
		return err
	}
	if err := r.readExpectedByID(ctx, entries); err != nil {
		return err
	}
	return r.readLinesByID(ctx, []registry.StatementAccount{r.account}, r.world.lines, lines)
}

// all returns the ids of all rows.
func (w *world) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, ids := range []iter.Seq[string]{w.expected.ids(), w.settles.ids(), w.lines.ids(), maps.Keys(w.gone)} {
			for id := range ids {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// size returns how many rows were read.
func (w *world) size() int {
	return len(w.expected.rows) + len(w.settles.rows) + len(w.lines.rows) + len(w.gone)
}

// isNew notes a row that no earlier run has read, and the references by which older rows are looked up.
func (r *run) isNew(id string, refs []string) {
	r.world.news++
	if !r.inWindow(id) { // the others are read as a whole
		r.world.fresh[id] = true
	}
	if r.first {
		return // all rows are read
	}
	for _, ref := range refs {
		r.world.newRefs = append(r.world.newRefs, hashOf(ref))
	}
}

// inWindow reports whether a row is of the days that are read as a whole.
func (r *run) inWindow(id string) bool {
	if r.horizonText == "" {
		r.horizonText = r.horizon.String()
	}
	return id[:len(time.DateOnly)] >= r.horizonText
}

// matchesOf reads the matches in force of older rows that are in no finding that was read, and
// of entries that do not count any more. It reports whether there are any.
func (r *run) matchesOf(ctx context.Context) (bool, error) {
	if r.first {
		return false, nil
	}
	matched := r.world.matched()
	for _, f := range r.world.open {
		for _, id := range slices.Concat(f.Sources, f.Lines) {
			matched[id] = true
		}
	}
	var ids []string
	for id := range r.world.all() {
		if !matched[id] && !r.world.asked["row "+id] && (!r.inWindow(id) && !r.world.fresh[id] || r.world.gone[id]) {
			r.world.asked["row "+id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return false, nil
	}
	before := len(r.world.inForce)
	for _, ids := range chunks(unique(ids)) {
		// The day of a match is the latest of its rows.
		if err := r.findings(ctx, "matches", journal.FindingOpen, r.among("matches", "day >= "+quote(ids[0][:len(time.DateOnly)])+" AND "+naming(ids)), r.world.inForce); err != nil {
			return false, err
		}
	}
	return len(r.world.inForce) > before, nil
}

func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// match runs the rules over the rows.
func (r *run) match() (match.Result, error) {
	settled, closeLine := r.world.settled(), func(l *match.Line) { l.Closed = true }
	lines := marked(r.world.lines, settled, closeLine)
	expected := marked(r.world.expected, settled, func(e *match.Expected) { e.Closed = true })
	receipts := match.Receipts{Account: r.account.Code, Rules: r.rules, Today: r.today, Expected: expected, Lines: lines}
	if r.account.Kind == registry.AccountBank {
		cutoffs := map[string]match.Rules{}
		for _, a := range r.settling {
			zone, err := a.Location()
			if err != nil {
				return match.Result{}, err
			}
			cutoffs[a.Code] = match.Rules{Zone: zone, Cutoff: a.Cutoff, Grace: statement.Day(a.GraceDays)} //nolint:gosec // at most 31
		}
		settlements := match.Settlements{Account: r.account.Code, Rules: r.rules, Today: r.today, Lines: marked(r.world.settles, settled, closeLine), Cutoffs: cutoffs, Bank: lines}
		if !r.account.Transfers() {
			return settlements.Run()
		}
		settlements.Bank, receipts.Lines = direct(lines)
		receipts.ByName = true
		return match.Both(receipts, settlements)
	}
	return receipts.Run()
}

// direct divides the lines of a bank account to which citizens transfer money: others, and those that name a payment, with
// what arrived. A payout of an operator names its batch.
func direct(lines []match.Line) (others, named []match.Line) {
	for _, l := range lines {
		if l.PaymentRef == "" || l.Batch != "" {
			others = append(others, l)
			continue
		}
		l.Amount, l.Fee = l.Net(), 0
		named = append(named, l)
	}
	return others, named
}

// stored returns the findings in force as a result, without the matches that never change.
func (r *run) stored() (out match.Result) {
	for id, f := range r.world.inForce {
		if !r.world.frozen(f) {
			out.Matches = append(out.Matches, match.Match{ID: id})
		}
	}
	for id, f := range r.world.open {
		if f.Type == journal.FindingProposal {
			out.Proposals = append(out.Proposals, match.Proposal{Match: match.Match{ID: id}})
		} else {
			out.Breaks = append(out.Breaks, match.Break{ID: id})
		}
	}
	return out
}

// write writes what changed in one transaction; nothing if nothing changed.
func (r *run) write(ctx context.Context, result match.Result) (Summary, error) {
	horizon, changes := r.horizonOf(result), match.Compare(r.stored(), result)
	totals, err := r.totals(ctx, result, changes)
	if err != nil {
		return Summary{}, err
	}
	words, err := r.words(ctx, &result)
	if err != nil {
		return Summary{}, err
	}
	out := Summary{RunID: r.id, marks: r.marks, Rows: r.world.size(), Changes: changes, Agreed: len(r.agreed)}
	r.world.expected, r.world.settles, r.world.lines = nil, nil, nil // for the collector: the findings name rows by their ids
	if changes.Empty() && len(totals) == 0 && r.world.news == 0 && len(r.agreed)+len(r.again)+len(words) == 0 && r.lastDay == r.today && !r.first {
		return out, nil
	}
	if err := r.commit(ctx, r.records(changes, totals, horizon, out.Rows), words...); err != nil {
		return out, err
	}
	out.Written = true
	return out, nil
}

// commit writes records, and words of statements to the processor of batches, in one transaction. After an error nothing was written, unless the broker
// did not confirm the end.
func (r *run) commit(ctx context.Context, records iter.Seq[record.Record], words ...*kgo.Record) error {
	if _, err := r.whole(ctx, kadm.NewClient(r.client)); err != nil { // restored while the run read it
		return err
	}
	if err := r.client.BeginTransaction(); err != nil {
		return err
	}
	topic, partition := r.cfg.Topology.Name(schemas.TopicReconciliation), r.partition(schemas.TopicReconciliation, r.account.StatementAccountKey)
	promise := kgo.AbortingFirstErrPromise(r.client)
	for rec := range records {
		value, err := r.cfg.Codec.Encode(rec)
		if err != nil {
			return errors.Join(err, r.abort(ctx))
		}
		r.client.Produce(ctx, &kgo.Record{Topic: topic, Partition: partition, Key: []byte(keyOf(r.account.StatementAccountKey)), Value: value}, promise.Promise())
	}
	for _, word := range words {
		r.client.Produce(ctx, word, promise.Promise())
	}
	if err := promise.Err(); err != nil {
		return errors.Join(fmt.Errorf("writing a run: %w", err), r.abort(ctx))
	}
	if err := r.reached(stepProduced); err != nil {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := r.client.EndTransaction(ending, kgo.TryCommit); err != nil {
		return fmt.Errorf("the broker did not confirm the run, which is tried again: %w", err)
	}
	return nil
}

// abort ends the transaction without effect. If it fails, the next run of the account aborts it.
func (r *run) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := r.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	return r.client.EndTransaction(ctx, kgo.TryAbort)
}

// horizonOf returns the earliest day of a source that waits for its line. Undecided
// collections are always read.
func (r *run) horizonOf(result match.Result) statement.Day {
	day := r.today
	for _, id := range result.Waiting {
		if e := r.world.expected.get(id); e != nil && e.Undecided {
			continue
		}
		if at, err := statement.ParseDay(id[:len(time.DateOnly)]); err == nil {
			day = min(day, at)
		}
	}
	return day
}
