package matcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/statement"
)

// said is what a line of a statement says of a payout.
type said struct {
	source string // the row of the payout
	line   string
	kind   disbursement.WordKind
}

// saidBy returns what new findings say of payouts. Such a finding has one line.
func (r *run) saidBy(c match.Changes) (out []said) {
	for i := range c.Proposals {
		if p := &c.Proposals[i]; p.Action == match.ActionPaid {
			out = append(out, said{p.Sources[0], p.Lines[0], disbursement.WordPaid})
		}
	}
	for i := range c.Breaks {
		b := &c.Breaks[i]
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
				out = append(out, said{id, b.Lines[0], disbursement.WordPaid})
			case b.Action == match.ActionReturned && !e.Refused && e.Amount == -line.Amount:
				out = append(out, said{id, b.Lines[0], disbursement.WordReturned})
			}
		}
	}
	return out
}

// words returns the commands that tell the processor of batches what new findings say, and of which attempts statements prove that
// no money moved. They are in the transaction of the run, so a finding is told once. What the processor knows already changes
// nothing there.
func (r *run) words(ctx context.Context, c match.Changes, result *match.Result) ([]*kgo.Record, error) {
	if !r.account.Payouts() {
		return nil, nil
	}
	all := r.saidBy(c)
	unseen := r.unseen(result)
	ids := slices.Clone(unseen)
	for i := range all {
		ids = append(ids, all[i].source)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	attempts, err := r.attempts(ctx, ids)
	if err != nil {
		return nil, err
	}
	absent, err := r.absent(ctx, attempts, unseen)
	if err != nil {
		return nil, err
	}
	protocol := commands.DisbursementProtocol(r.cfg.Codec, r.cfg.Topology)
	var out []*kgo.Record
	for _, s := range append(all, absent...) {
		key, attempt, err := journal.ParsePayoutName(attempts[s.source].name)
		if err != nil {
			return nil, fmt.Errorf("row %s of expected_money: %w", s.source, err)
		}
		word := disbursement.Word{Source: disbursement.FromStatement, Kind: s.kind, Position: key.Position, Attempt: attempt}
		if line := r.world.lines.get(s.line); line != nil {
			word.Amount, word.Currency, word.OperatorRef = max(line.Amount, -line.Amount), line.Currency, line.OperatorRef
		}
		record, err := protocol.Encode(disbursement.Command{At: r.at, TenantID: r.account.AgencyID, Live: r.account.Live, Batch: key.Batch, Do: word}, nil)
		if err != nil {
			return nil, err
		}
		record.Topic = r.cfg.Topology.Name(schemas.Disbursement.Commands)
		r.cfg.Words.Sign(record)
		out = append(out, record)
	}
	return out, nil
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

// absent returns the attempts of which statements prove that no money moved: no line names them on any day from the one on which
// the attempt was sent until the days of grace after it was refused or said to be paid, and accepted statements have all these
// days. It is told at each run until the processor has taken it.
func (r *run) absent(ctx context.Context, attempts map[string]attempt, unseen []string) (out []said, err error) {
	var doubtful []string
	first := r.today
	for _, id := range unseen {
		switch a := attempts[id]; a.state {
		case journal.ExpectedUnproven, journal.ExpectedPaid:
			doubtful = append(doubtful, id)
			first = min(first, r.firstDayOf(a))
		}
	}
	if len(doubtful) == 0 {
		return nil, nil
	}
	covered, err := intake.Cover(ctx, r.cfg.Pool, r.cfg.Verify, r.account.StatementAccountKey, first.String(), r.today.String(), r.cfg.Now())
	if err != nil {
		return nil, err
	}
	mine := r.partition(schemas.TopicStatements, r.account.StatementAccountKey)
	if covered.Pending || len(covered.Quarantined) > 0 || !covered.Below(mine, r.marks[r.statements(r.account)]) {
		return nil, nil // a line may still come, or the run has not read it
	}
	for _, id := range doubtful {
		if a := attempts[id]; covered.Covers(r.firstDayOf(a).String(), (r.dayOf(a.decided) + r.rules.Grace).String()) {
			out = append(out, said{source: id, kind: disbursement.WordNoDebit})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	unproved, err := covered.Unproved(ctx, intake.Records{Kafka: r.cfg.Kafka, Topology: r.cfg.Topology, Codec: r.cfg.Codec})
	if err != nil || unproved != "" {
		return nil, err
	}
	return out, nil
}

// firstDayOf returns the first day on which a statement may have an attempt. The row of one that was paid does not say when it was
// sent.
func (r *run) firstDayOf(a attempt) statement.Day {
	if a.state == journal.ExpectedPaid {
		return r.dayOf(a.at) - r.rules.Grace
	}
	return r.dayOf(a.at)
}

func (r *run) dayOf(at time.Time) statement.Day { return statement.DayOf(at, r.rules.Zone) }

// attempt is an attempt to pay a line, as a row of expected money names it.
type attempt struct {
	name, state string
	// at is when an unproven attempt was sent, or one that was paid was known to be; decided is when it was refused or known.
	at, decided time.Time
}

// attempts reads the attempts of rows of expected money, by the row.
func (r *run) attempts(ctx context.Context, ids []string) (map[string]attempt, error) {
	out := map[string]attempt{}
	for _, ids := range chunks(ids) {
		days, entries := dates(ids)
		if err := r.readAttempts(ctx, in("local_date", "toDate", days)+" AND "+in("entry_id", "toUUID", entries), out); err != nil {
			return nil, fmt.Errorf("reading the payouts of findings: %w", err)
		}
	}
	return out, nil
}

func (r *run) readAttempts(ctx context.Context, which string, into map[string]attempt) error {
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_date), toString(entry_id), collection_id, toString(state), approved_at, occurred_at FROM expected_money FINAL
		WHERE tenant_id = ? AND livemode = ? AND NOT withdrawn AND `+which, r.account.AgencyID, r.account.Live)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var day, entry string
		var a attempt
		if err := rows.Scan(&day, &entry, &a.name, &a.state, &a.at, &a.decided); err != nil {
			return err
		}
		into[journal.ExpectedRow(day, entry)] = a
	}
	return rows.Err()
}
