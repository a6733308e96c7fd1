package matcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// maxWords is how many words a run tells at most. The others are told by the runs after it.
const maxWords = 200

// said is what statements say of a payout.
type said struct {
	source string // the row of the payout
	line   string // the row of the line; empty for no_debit
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
	all := slices.Concat(parts, some(r, slices.Concat(told, absent)))
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
	attempts, first := map[string]*attempt{}, r.today
	for _, id := range some(r, doubtful) {
		a, err := r.attempt(ctx, id)
		if err != nil {
			return nil, err
		}
		if a == nil || a.money.State != journal.ExpectedUnproven && a.money.State != journal.ExpectedPaid || !r.ofPresentAccount(a) {
			continue
		}
		attempts[id] = a
		first = min(first, r.firstDayOf(a))
	}
	if len(attempts) == 0 {
		return nil, nil
	}
	covered, err := r.coverage(ctx, first)
	if err != nil || covered == nil {
		return nil, err
	}
	unknown, all, err := r.unknownDebits(ctx, first, attempts, result, told)
	if err != nil || !all {
		return nil, err
	}
	for _, id := range doubtful {
		a := attempts[id]
		if a == nil || !covered.Covers(r.firstDayOf(a).String(), (r.dayOf(a.money.OccurredAt)+max(r.rules.Grace, 1)).String()) {
			continue
		}
		if !slices.ContainsFunc(unknown, func(d debit) bool { return d.amount == a.money.Gross && d.day >= r.firstDayOf(a).String() }) {
			out = append(out, said{source: id, kind: disbursement.WordNoDebit, of: a})
		}
	}
	return out, nil
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
		for rows.Next() {
			var day, entry string
			if err := rows.Scan(&day, &entry); err != nil {
				return nil, errors.Join(fmt.Errorf("reading payouts that are on no statement: %w", err), rows.Close())
			}
			out = append(out, journal.ExpectedRow(day, entry))
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, fmt.Errorf("reading payouts that are on no statement: %w", err)
		}
	}
	slices.Sort(out)
	return out, nil
}

// coverage returns the accepted statements from a day on; nil if a line may still come, if the run has not read all lines, or if
// they cannot be believed.
func (r *run) coverage(ctx context.Context, first statement.Day) (*intake.Coverage, error) {
	covered, err := intake.Cover(ctx, r.cfg.Pool, r.cfg.Verify, r.account.StatementAccountKey, first.String(), r.today.String(), r.cfg.Now())
	if err != nil {
		return nil, err
	}
	mine := r.partition(schemas.TopicStatements, r.account.StatementAccountKey)
	if covered.Pending || len(covered.Quarantined) > 0 || !covered.Below(mine, r.marks[r.statements(r.account)]) {
		return nil, nil
	}
	unproved, err := covered.Unproved(ctx, intake.Records{Kafka: r.cfg.Kafka, Topology: r.cfg.Topology, Codec: r.cfg.Codec})
	if err != nil || unproved != "" {
		return nil, err
	}
	return &covered, nil
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
	sent   time.Time
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
	a.sent = a.money.ApprovedAt
	for k := range e.Lines {
		if l := batches.ToLine(&e.Lines[k]); l.LineKey == a.line && l.Attempt == a.number {
			a.sent = l.SentAt
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
