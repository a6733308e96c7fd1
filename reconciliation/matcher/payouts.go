package matcher

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/journal"
	"quittance/reconciliation/match"
	"quittance/schemas"
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

// words returns the commands that tell the processor of batches what new findings say. They are in the transaction of the run, so
// each is written once. What the processor knows already changes nothing there.
func (r *run) words(ctx context.Context, c match.Changes) ([]*kgo.Record, error) {
	all := r.saidBy(c)
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].source
	}
	names, err := r.payoutNames(ctx, ids)
	if err != nil {
		return nil, err
	}
	protocol := commands.DisbursementProtocol(r.cfg.Codec, r.cfg.Topology)
	var out []*kgo.Record
	for _, s := range all {
		line := r.world.lines.get(s.line)
		key, attempt, err := journal.ParsePayoutName(names[s.source])
		if err != nil {
			return nil, fmt.Errorf("row %s of expected_money: %w", s.source, err)
		}
		word := wordOf(line, s.kind)
		word.Position, word.Attempt = key.Position, attempt
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

// wordOf returns the word that a line is.
func wordOf(line *match.Line, kind disbursement.WordKind) disbursement.Word {
	return disbursement.Word{
		Source: disbursement.FromStatement, Kind: kind, Amount: max(line.Amount, -line.Amount), Currency: line.Currency, OperatorRef: line.OperatorRef,
	}
}

// payoutNames reads the names of the attempts of rows of expected money, by the row.
func (r *run) payoutNames(ctx context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for _, ids := range chunks(ids) {
		days, entries := dates(ids)
		rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT toString(local_date), toString(entry_id), any(collection_id) FROM expected_money
			WHERE tenant_id = ? AND livemode = ? AND `+in("local_date", "toDate", days)+" AND "+in("entry_id", "toUUID", entries)+" GROUP BY local_date, entry_id", r.account.AgencyID, r.account.Live)
		if err != nil {
			return nil, fmt.Errorf("reading the payouts of findings: %w", err)
		}
		for rows.Next() {
			var day, entry, name string
			if err := rows.Scan(&day, &entry, &name); err != nil {
				return nil, fmt.Errorf("reading the payouts of findings: %w", err)
			}
			out[journal.ExpectedRow(day, entry)] = name
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("reading the payouts of findings: %w", err)
		}
		_ = rows.Close()
	}
	return out, nil
}
