package matcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/statement"
)

// maxWords is how many words a run tells at most, and how many it takes back. The others are for the runs after it.
const maxWords = 200

// said is what statements say of a payout.
type said struct {
	source string // the row of the payout
	line   string // the row of the line; empty for the words that no line says
	kind   disbursement.WordKind
	of     *attempt // nil unless it was read already
}

// saidBy returns what the findings of a run say of payouts, new ones and old ones: what the processor could not take when it was
// told first is told again, until the finding ends. Such a finding has one line. Parts that came back are told by the run that finds
// them alone, because the processor counts each part that it is told.
func (r *run) saidBy(result *match.Result) (out, parts []said) {
	for i := range result.Proposals {
		if p := &result.Proposals[i]; p.Action == match.ActionPaid {
			out = append(out, said{source: p.Sources[0], line: p.Lines[0], kind: disbursement.WordPaid})
		}
	}
	for i := range result.Breaks {
		b := &result.Breaks[i]
		switch b.Action {
		case match.ActionPaid, match.ActionReturned:
		default:
			continue
		}
		line := r.world.lines.get(b.Lines[0])
		for _, id := range b.NotTaken {
			switch e := r.world.expected.get(id); {
			case e == nil || line == nil:
			case b.Action == match.ActionPaid && e.Refused && e.Amount == line.Amount:
				out = append(out, said{source: id, line: b.Lines[0], kind: disbursement.WordPaid})
			case b.Action == match.ActionReturned && !e.Refused && e.Amount == -line.Amount:
				out = append(out, said{source: id, line: b.Lines[0], kind: disbursement.WordReturned})
			case b.Action == match.ActionReturned && !e.Refused && 0 < line.Amount && line.Amount < -e.Amount:
				if _, known := r.world.open[b.ID]; !known {
					parts = append(parts, said{source: id, line: b.Lines[0], kind: disbursement.WordReturned})
				}
			}
		}
	}
	return out, parts
}

// words returns the commands that tell the processor of batches what statements say of payouts. They are in the transaction of
// the run. What the processor knows already changes nothing there. The processor believes this role, and whoever can write
// ClickHouse could forge the rows that a finding is of: so each word is made of the records in Kafka that the rows name.
func (r *run) words(ctx context.Context, result *match.Result) ([]*kgo.Record, error) {
	if !r.account.Payouts() {
		return nil, nil
	}
	told, parts := r.saidBy(result)
	absent, err := r.absent(ctx, result, slices.Concat(told, parts))
	if err != nil {
		return nil, err
	}
	gone, err := r.takenBack(ctx, result, slices.Concat(told, parts))
	if err != nil {
		return nil, err
	}
	all := slices.Concat(parts, some(r, gone), some(r, slices.Concat(told, absent)))
	protocol := commands.DisbursementProtocol(r.cfg.Codec, r.cfg.Topology)
	var out []*kgo.Record
	for _, s := range all {
		do, batch, err := r.wordOf(ctx, s)
		if err != nil {
			return nil, err
		}
		if do == nil {
			continue
		}
		record, err := protocol.Encode(disbursement.Command{At: r.at, TenantID: r.account.AgencyID, Live: r.account.Live, Batch: batch, Do: *do}, nil)
		if err != nil {
			return nil, err
		}
		record.Topic = r.cfg.Topology.Name(schemas.Disbursement.Commands)
		r.cfg.Words.Sign(record)
		out = append(out, record)
	}
	return out, nil
}

// some returns as many of a list as a run tells. Each run begins elsewhere, so that each gets its turn.
func some[T any](r *run, all []T) []T {
	if len(all) <= maxWords {
		return all
	}
	from := int(r.at.Unix() % int64(len(all)))
	return slices.Concat(all[from:], all[:from])[:maxWords]
}

// wordOf returns a word, and the batch that it is about; nil if Kafka does not have what the rows say.
func (r *run) wordOf(ctx context.Context, s said) (*disbursement.Word, string, error) {
	a := s.of
	if a == nil {
		var err error
		if a, err = r.attempt(ctx, s.source); a == nil || err != nil {
			return nil, "", err
		}
	}
	word := disbursement.Word{Source: disbursement.FromStatement, Kind: s.kind, Position: a.line.Position, Attempt: a.number}
	if s.line == "" {
		return &word, a.line.Batch, nil
	}
	l, err := r.lineInKafka(ctx, s.line)
	if l == nil || err != nil {
		return nil, "", err
	}
	amount := a.money.Gross
	if s.kind == disbursement.WordReturned {
		if amount = -amount; 0 < l.Amount && l.Amount < amount {
			amount = l.Amount
		}
	}
	named := l.PaymentRef == a.money.PaymentRef || l.OperatorRef != "" && l.OperatorRef == a.money.OperatorRef
	if !statement.Kind(l.Kind).Pays() || l.Amount != amount || l.Currency != a.money.Currency || !named {
		return nil, "", nil
	}
	word.Amount, word.Currency, word.OperatorRef = max(l.Amount, -l.Amount), l.Currency, l.OperatorRef
	return &word, a.line.Batch, nil
}

// unseen returns the payouts that are on no statement: those about which nobody knows, and those that are missing.
func (r *run) unseen(result *match.Result) (out []string) {
	for _, id := range result.Waiting {
		if e := r.world.expected.get(id); e != nil && e.Undecided {
			out = append(out, id)
		}
	}
	for i := range result.Breaks {
		if b := &result.Breaks[i]; b.Kind == match.BreakMissingLine {
			out = append(out, b.Sources...)
		}
	}
	return out
}

// absent returns the attempts of which statements prove that no money moved. It is told at each run until the processor has taken
// it. The proof must be beyond doubt, because a person may pay the line again then:
//
//   - accepted statements, which Kafka has too and of which the run has read all lines, have each day from the one before the
//     attempt was sent until the days of grace, at least one, after it was refused or said to be paid;
//   - nothing of the account is in quarantine or under way;
//   - the attempt was made from the payout account that the statements are of now;
//   - no debit of the same amount stands on these days that is not matched with another payout, whatever it names and whatever
//     people have said of it.
func (r *run) absent(ctx context.Context, result *match.Result, told []said) (out []said, err error) {
	doubtful, err := r.doubtful(ctx, r.unseen(result))
	if err != nil {
		return nil, err
	}
	attempts, err := r.attempts(ctx, some(r, doubtful), func(a *attempt) bool {
		return (a.money.State == journal.ExpectedUnproven || a.money.State == journal.ExpectedPaid) && r.ofPresentAccount(a)
	})
	if err != nil || len(attempts) == 0 {
		return nil, err
	}
	e, err := r.evidence(ctx, attempts, result, told)
	if err != nil {
		return nil, err
	}
	for _, id := range doubtful {
		if a := attempts[id]; a != nil && e.sure && e.covers(r, a) && !e.mayBe(r, a) {
			out = append(out, said{source: id, kind: disbursement.WordNoDebit, of: a})
		}
	}
	return out, nil
}

// attempts reads the attempts of rows that are wanted.
func (r *run) attempts(ctx context.Context, ids []string, wanted func(*attempt) bool) (map[string]*attempt, error) {
	out := map[string]*attempt{}
	for _, id := range ids {
		a, err := r.attempt(ctx, id)
		if err != nil {
			return nil, err
		}
		if a != nil && wanted(a) {
			out[id] = a
		}
	}
	return out, nil
}

// evidence is what statements say of attempts.
type evidence struct {
	covered intake.Coverage
	// sure says that no line is missing or may still come, and that the statements can be believed. forged says that they cannot.
	sure, forged bool
	// unknown are the debits of an amount of one of the attempts that no match has.
	unknown []debit
}

// covers reports whether accepted statements have each day on which the attempt may stand.
func (e *evidence) covers(r *run, a *attempt) bool {
	return e.covered.Covers(r.firstDayOf(a).String(), (r.dayOf(a.ended) + max(r.rules.Grace, 1)).String())
}

// mayBe reports whether an unknown debit may be that of the attempt.
func (e *evidence) mayBe(r *run, a *attempt) bool {
	return slices.ContainsFunc(e.unknown, func(d debit) bool { return d.amount == a.money.Gross && d.day >= r.firstDayOf(a).String() })
}

// evidence reads what accepted statements say of attempts.
func (r *run) evidence(ctx context.Context, attempts map[string]*attempt, result *match.Result, told []said) (e evidence, err error) {
	first := r.today
	for _, a := range attempts {
		first = min(first, r.firstDayOf(a))
	}
	if e.covered, err = intake.Cover(ctx, r.cfg.Pool, r.cfg.Verify, r.account.StatementAccountKey, first.String(), r.today.String(), r.cfg.Now()); err != nil {
		return e, err
	}
	mine := r.partition(schemas.TopicStatements, r.account.StatementAccountKey)
	if e.covered.Pending || len(e.covered.Quarantined) > 0 || !e.covered.Below(mine, r.marks[r.statements(r.account)]) {
		return e, nil
	}
	unproved, err := e.covered.Unproved(ctx, intake.Records{Kafka: r.cfg.Kafka, Topology: r.cfg.Topology, Codec: r.cfg.Codec})
	if err != nil || unproved != "" {
		e.forged = unproved != ""
		return e, err
	}
	e.unknown, e.sure, err = r.unknownDebits(ctx, first, attempts, result, told)
	return e, err
}

// remembered is for how long after its withdrawal a statement takes back what it had said. The processor takes the word within
// seconds; a matcher that is away for longer leaves the proof.
const remembered = 90 * 24 * time.Hour

// takenBack returns what withdrawn statements had said and no other statement says. It is told until the processor has taken it:
//
//   - that an attempt paid nobody (no_debit), if accepted statements do not have all its days any more, or have a debit that may be it;
//   - that money came back (returned), if no line says so.
func (r *run) takenBack(ctx context.Context, result *match.Result, told []said) (out []said, err error) {
	from, last, err := intake.WithdrawnAfter(ctx, r.cfg.Pool, r.account.StatementAccountKey, r.cfg.Now().Add(-remembered))
	if err != nil || from == "" {
		return nil, err
	}
	proven, err := r.provenBetween(ctx, from, (r.dayOf(last) + 1).String())
	if err != nil {
		return nil, err
	}
	attempts, err := r.attempts(ctx, some(r, proven), func(a *attempt) bool { return a.money.State == journal.ExpectedProven })
	if err != nil {
		return nil, err
	}
	if len(attempts) > 0 {
		e, err := r.evidence(ctx, attempts, result, told)
		if err != nil {
			return nil, err
		}
		for _, id := range proven {
			if a := attempts[id]; a != nil && (e.forged || !e.covers(r, a) || e.mayBe(r, a)) {
				out = append(out, said{source: id, kind: disbursement.WordNoProof, of: a})
			}
		}
	}
	returned, err := r.attempts(ctx, some(r, r.unseenReturns(result)), func(a *attempt) bool { return a.shown })
	if err != nil {
		return nil, err
	}
	for id, a := range returned {
		stands, err := r.standsOnLine(ctx, a)
		if err != nil {
			return nil, err
		}
		if !stands {
			out = append(out, said{source: id, kind: disbursement.WordNoReturn, of: a})
		}
	}
	return out, nil
}

// provenBetween returns the rows of refusals that statements have proven on local days such as 2026-11-30.
func (r *run) provenBetween(ctx context.Context, from, until string) ([]string, error) {
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_date) AS day, toString(entry_id) FROM expected_money
		WHERE tenant_id = ? AND livemode = ? AND local_date >= toDate(?) AND local_date <= toDate(?) AND kind = ? AND state = ? GROUP BY local_date, entry_id HAVING NOT max(withdrawn) ORDER BY local_date, entry_id`,
		r.account.AgencyID, r.account.Live, from, until, journal.ExpectedRefused, journal.ExpectedProven)
	if err != nil {
		return nil, fmt.Errorf("reading proven refusals: %w", err)
	}
	return scanExpectedRows(rows)
}

// unseenReturns returns the money that came back, and is on no statement.
func (r *run) unseenReturns(result *match.Result) (out []string) {
	ids := slices.Clone(result.Waiting)
	for i := range result.Breaks {
		if b := &result.Breaks[i]; b.Kind == match.BreakMissingLine {
			ids = append(ids, b.Sources...)
		}
	}
	for _, id := range ids {
		if e := r.world.expected.get(id); e != nil && e.Payout && e.Amount > 0 && !e.Undecided && !e.Refused {
			out = append(out, id)
		}
	}
	return out
}

// standsOnLine reports whether a line of the account says that the whole amount of an attempt came back, whatever finding has it.
func (r *run) standsOnLine(ctx context.Context, a *attempt) (bool, error) {
	of, args := r.ofLines([]registry.StatementAccount{r.account})
	named := "payment_ref = " + quote(a.money.PaymentRef)
	if a.operatorRef != "" {
		named += " OR operator_ref = " + quote(a.operatorRef)
	}
	var lines uint64
	err := r.cfg.ClickHouse.QueryRow(querying(ctx), `SELECT count() FROM (SELECT 1 FROM statement_lines WHERE `+of+" AND local_day >= toDate("+quote(r.firstDayOf(a).String())+") AND ("+named+`)
		GROUP BY local_day, line_id, content HAVING max(amount) = ? AND NOT max(withdrawn))`, append(args, a.money.Gross)...).Scan(&lines)
	if err != nil {
		return false, fmt.Errorf("looking for the line of a return: %w", err)
	}
	return lines > 0, nil
}

// doubtful returns those of the rows that statements can disprove: refusals that prove nothing, and payments that the operator
// tells of.
func (r *run) doubtful(ctx context.Context, ids []string) (out []string, err error) {
	for _, ids := range chunks(ids) {
		days, entries := dates(ids)
		rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT DISTINCT toString(local_date), toString(entry_id) FROM expected_money
			WHERE tenant_id = ? AND livemode = ? AND state IN (?, ?) AND `+in("local_date", "toDate", days)+" AND "+in("entry_id", "toUUID", entries),
			r.account.AgencyID, r.account.Live, journal.ExpectedUnproven, journal.ExpectedPaid)
		if err != nil {
			return nil, fmt.Errorf("reading payouts that are on no statement: %w", err)
		}
		more, err := scanExpectedRows(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.Sort(out)
	return out, nil
}

// scanExpectedRows returns the ids of rows of expected money of which the query has the day and the entry, and closes it.
func scanExpectedRows(rows driver.Rows) (out []string, err error) {
	for rows.Next() {
		var day, entry string
		if err := rows.Scan(&day, &entry); err != nil {
			return nil, errors.Join(fmt.Errorf("reading payouts: %w", err), rows.Close())
		}
		out = append(out, journal.ExpectedRow(day, entry))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, fmt.Errorf("reading payouts: %w", err)
	}
	return out, nil
}

// debit is money that left the account, on a day such as 2026-11-21.
type debit struct {
	row, day string
	amount   int64
}

// maxDebits is how many debits are looked at. With more, statements prove nothing.
const maxDebits = 100_000

// unknownDebits returns the debits from a day on, of an amount of one of the attempts, that no match has and that name no payout. all
// is false if there are too many.
func (r *run) unknownDebits(ctx context.Context, first statement.Day, attempts map[string]*attempt, result *match.Result, told []said) (out []debit, all bool, err error) {
	var amounts []string
	for _, a := range attempts {
		amounts = append(amounts, fmt.Sprint(a.money.Gross))
	}
	slices.Sort(amounts)
	of, args := r.ofLines([]registry.StatementAccount{r.account})
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT `+journal.LineRowSQL+` AS row, toString(any(local_day)), any(amount) FROM statement_lines FINAL
		WHERE `+of+" AND local_day >= toDate("+quote(first.String())+") AND (withdrawn OR "+in("amount", "toInt64", slices.Compact(amounts))+`)
		GROUP BY row HAVING NOT max(withdrawn) AND row NOT IN
			(SELECT arrayJoin(l) FROM (SELECT any(lines) AS l FROM matches WHERE tenant_id = ? AND livemode = ? AND account = ? AND day >= toDate(`+quote(first.String())+`) AND source_offset < ? GROUP BY finding_id, part HAVING argMax(state, source_offset) = 'open'))
		LIMIT ?`, append(args, r.account.AgencyID, r.account.Live, r.account.Code, r.marks[r.reconciliation(r.account.StatementAccountKey)], maxDebits)...)
	if err != nil {
		return nil, false, fmt.Errorf("reading debits that prove no payout: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var d debit
		if err := rows.Scan(&d.row, &d.day, &d.amount); err != nil {
			return nil, false, fmt.Errorf("reading debits that prove no payout: %w", err)
		}
		out = append(out, d)
	}
	all = len(out) < maxDebits
	known := map[string]bool{}
	for i := range result.Matches {
		for _, id := range result.Matches[i].Lines {
			known[id] = true
		}
	}
	for _, s := range told {
		known[s.line] = true // it names another payout
	}
	return slices.DeleteFunc(out, func(d debit) bool { return known[d.row] }), all, rows.Err()
}

// ofPresentAccount reports whether an attempt was made from the payout account that the statement account is of.
func (r *run) ofPresentAccount(a *attempt) bool {
	named, ok := r.cfg.Registry.PayoutAccount(r.account.AgencyID, r.account.Live, r.account.Offer, a.money.Account)
	return ok && named.Replaced == (r.account.Fingerprint != "")
}

// firstDayOf returns the first day on which a statement may have an attempt: clocks differ.
func (r *run) firstDayOf(a *attempt) statement.Day { return r.dayOf(a.sent) - 1 }

func (r *run) dayOf(at time.Time) statement.Day { return statement.DayOf(at, r.rules.Zone) }

// attempt is an attempt to pay a line, as the event in Kafka tells of it.
type attempt struct {
	money  journal.Expected
	line   disbursement.LineKey
	number int
	// sent is when it was first requested, and ended when it was refused or said to be paid.
	sent, ended time.Time
	operatorRef string
	// shown says that the event tells of a return, by the word of a statement.
	shown bool
}

// attempt reads the attempt of a row of expected money; nil if Kafka has no such row of this account.
func (r *run) attempt(ctx context.Context, row string) (*attempt, error) {
	days, entries := dates([]string{row})
	var topic string
	var partition int32
	var offset int64
	err := r.cfg.ClickHouse.QueryRow(querying(ctx), `SELECT toString(any(source_topic)), any(source_partition), min(source_offset) FROM expected_money
		WHERE tenant_id = ? AND livemode = ? AND NOT withdrawn AND `+in("local_date", "toDate", days)+" AND "+in("entry_id", "toUUID", entries), r.account.AgencyID, r.account.Live).Scan(&topic, &partition, &offset)
	if err != nil {
		return nil, fmt.Errorf("reading where a payout is from: %w", err)
	}
	var e record.DisbursementEvent
	if topic != schemas.Disbursement.Events {
		return nil, nil
	}
	if found, err := r.readRecord(ctx, topic, partition, offset, &e); err != nil || !found {
		return nil, err
	}
	all, err := journal.PayoutsOf(&e)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(x journal.Expected) bool { return x.Row() == row && !x.Withdrawn })
	if i < 0 || all[i].TenantID != r.account.AgencyID || all[i].Livemode != r.account.Live || !r.arrives(pair{all[i].TenantID, all[i].OfferID, all[i].Account}) {
		return nil, nil
	}
	a := attempt{money: all[i]}
	if a.line, a.number, err = journal.ParsePayoutName(a.money.CollectionID); err != nil {
		return nil, err
	}
	a.sent, a.ended = a.money.ApprovedAt, a.money.OccurredAt
	a.shown = disbursement.EventType(e.Type) == disbursement.EventLineReturned && e.Detail[disbursement.DetailSource] == string(disbursement.FromStatement)
	for k := range e.Lines {
		l := batches.ToLine(&e.Lines[k])
		if l.LineKey != a.line {
			continue
		}
		a.operatorRef = l.OperatorRef
		if l.Attempt == a.number {
			a.sent = l.SentAt
			if !l.EndedAt.IsZero() {
				a.ended = l.EndedAt
			}
		}
	}
	return &a, nil
}

// lineInKafka reads the line of a row of statement_lines; nil if Kafka has no such line of this account.
func (r *run) lineInKafka(ctx context.Context, row string) (*journal.Line, error) {
	var partition int32
	var offset int64
	err := r.cfg.ClickHouse.QueryRow(querying(ctx), `SELECT any(source_partition), min(source_offset) FROM statement_lines
		WHERE tenant_id = ? AND livemode = ? AND account = ? AND NOT withdrawn AND `+linesByID([]string{row}), r.account.AgencyID, r.account.Live, r.account.Code).Scan(&partition, &offset)
	if err != nil {
		return nil, fmt.Errorf("reading where a line is from: %w", err)
	}
	var rec record.StatementLine
	if found, err := r.readRecord(ctx, schemas.TopicStatements, partition, offset, &rec); err != nil || !found {
		return nil, err
	}
	l, err := journal.LineOf(&rec, partition, offset)
	if err != nil || l.Row() != row || l.TenantID != r.account.AgencyID || l.Livemode != r.account.Live || l.Account != r.account.Code {
		return nil, err
	}
	return l, nil
}

// readRecord reads the record of a topic at an offset. It returns false if Kafka has none there of this kind.
func (r *run) readRecord(ctx context.Context, topic string, partition int32, offset int64, into record.Record) (found bool, err error) {
	name := r.cfg.Topology.Name(topic)
	err = r.cfg.Kafka.Read(ctx, name, map[int32]kafka.Span{partition: {From: offset, To: offset + 1}}, nil, func(rec *kgo.Record) (bool, error) {
		if rec.Offset != offset {
			return false, nil
		}
		kind, err := r.cfg.Codec.NameOf(rec.Value)
		if err != nil || kind != into.Name() {
			return false, err
		}
		found = true
		return false, r.cfg.Codec.Decode(rec.Value, into)
	})
	return found, err
}
