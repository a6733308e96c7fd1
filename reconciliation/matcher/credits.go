package matcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/statement"
)

// Credits is what a run over an account to which citizens transfer money needs.
type Credits struct {
	// Sessions finds the session of a payment reference. The error is sessions.ErrNotFound if there is none, or more than one.
	Sessions interface {
		ByPaymentRef(ctx context.Context, ref string) (checkout.Session, error)
	}
	// Processor decides what a credit does. It signs as this role.
	Processor interface {
		Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
	}
	// HonoursLate reports whether an agency's policy honours late payments.
	HonoursLate func(tenantID string) bool
}

// credits tells the processor of the transfers that statements show, and of those that they show no more. It does so before the
// run reads anything, so that the run finds the payments that the transfers made, and matches them. It reports whether it
// told anything. What it tells is made of the records in Kafka, as for payouts (words). It looks at the lines that no run has
// read, and at those that no payment explains, because the session may not have been found: Postgres may come from before it.
//
// A run that fails tells all again. The processor knows each credit by its line.
func (r *run) credits(ctx context.Context) (told bool, err error) {
	if !r.account.Transfers() {
		return false, nil
	}
	lines, err := r.newTransfers(ctx)
	if err != nil {
		return false, err
	}
	for _, ref := range slices.Sorted(maps.Keys(lines)) {
		s, err := r.cfg.Credits.Sessions.ByPaymentRef(ctx, ref)
		switch {
		case errors.Is(err, sessions.ErrNotFound):
			continue // the line is a break
		case err != nil:
			return told, fmt.Errorf("looking for the payments of transfers: %w", err)
		case s.TenantID != r.account.AgencyID || s.Live != r.account.Live:
			continue
		}
		for _, do := range r.creditsOf(s, lines[ref]) {
			if _, err := r.cfg.Credits.Processor.Ask(ctx, checkout.Command{At: r.cfg.Now(), SessionID: s.ID, Live: s.Live, Do: do}); err != nil {
				return told, fmt.Errorf("telling the processor of a transfer: %w", err)
			}
			told = true
		}
	}
	return told, nil
}

// newTransfers returns the lines that name payments: the last record of each, by payment reference, in the order of the statements.
func (r *run) newTransfers(ctx context.Context) (map[string][]*journal.Line, error) {
	last := map[string]*journal.Line{}
	var order []string
	note := func(l *journal.Line) {
		if l.PaymentRef == "" || l.Batch != "" || !checkout.ValidPaymentRef(l.PaymentRef) || l.Currency != r.account.Currency {
			return
		}
		id := creditID(l)
		if _, known := last[id]; !known {
			order = append(order, id)
		}
		last[id] = l
	}
	open, err := r.unexplained(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range some(r, open) {
		l, err := r.lineInKafka(ctx, row)
		if err != nil {
			return nil, err
		}
		if l != nil {
			note(l)
		}
	}
	if err := r.unreadTransfers(ctx, note); err != nil {
		return nil, err
	}
	out := map[string][]*journal.Line{}
	for _, id := range order {
		out[last[id].PaymentRef] = append(out[last[id].PaymentRef], last[id])
	}
	return out, nil
}

// unreadTransfers reads the lines of the account that no run has read.
func (r *run) unreadTransfers(ctx context.Context, each func(*journal.Line)) error {
	mark := r.statements(r.account)
	p := r.partition(schemas.TopicStatements, r.account.StatementAccountKey)
	span := kafka.Span{From: r.before.of(mark, r.account.Code), To: r.marks[mark]}
	if span.From >= span.To {
		return nil
	}
	return r.cfg.Kafka.Read(ctx, r.cfg.Topology.Name(schemas.TopicStatements), map[int32]kafka.Span{p: span}, nil, func(rec *kgo.Record) (bool, error) {
		var line record.StatementLine
		if kind, err := r.cfg.Codec.NameOf(rec.Value); err != nil || kind != line.Name() {
			return true, err
		}
		if err := r.cfg.Codec.Decode(rec.Value, &line); err != nil {
			return false, err
		}
		l, err := journal.LineOf(&line, p, rec.Offset)
		if err != nil {
			return false, err
		}
		if l.TenantID == r.account.AgencyID && l.Livemode == r.account.Live && l.Account == r.account.Code {
			each(l)
		}
		return true, nil
	})
}

// unexplained returns the rows of lines that are in an open break without money.
func (r *run) unexplained(ctx context.Context) (out []string, err error) {
	open := map[string]journal.Finding{}
	if err := r.findings(ctx, "breaks", journal.FindingOpen, "kind = "+quote(string(match.BreakUnmatchedLine))+" AND empty(sources)", open); err != nil {
		return nil, err
	}
	for _, f := range open {
		if f.Type == journal.FindingBreak {
			out = append(out, f.Lines...)
		}
	}
	slices.Sort(out)
	return out, nil
}

// creditsOf returns what the processor has to know of the lines that name a session.
func (r *run) creditsOf(s checkout.Session, lines []*journal.Line) (out []checkout.Action) {
	var reversed []string
	for _, l := range lines {
		if l.Withdrawn || !isReversal(l) {
			continue
		}
		if id := reverses(s, lines, l); id != "" {
			reversed = append(reversed, id)
		}
	}
	for _, l := range lines {
		id := creditID(l)
		switch {
		case l.Reversal:
		case l.Withdrawn:
			out = append(out, checkout.CreditWithdrawn{CollectionID: id, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Cause: checkout.CreditUnreported})
		case isReversal(l) || l.NetAmount <= 0 || slices.Contains(reversed, id) && s.HasCredit(id):
		case !s.HasCredit(id) || inDoubt(s, id):
			out = append(out, checkout.Credit{
				CollectionID: id, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Amount: l.NetAmount, Currency: l.Currency, Reference: cmp.Or(l.OperatorRef, l.ID), Account: l.Account,
				BookedAt: noon(l, r.rules.Zone), HonourLate: r.cfg.Credits.HonoursLate(s.TenantID),
			})
		}
	}
	for _, id := range reversed {
		out = append(out, checkout.CreditWithdrawn{CollectionID: id, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Cause: checkout.CreditReversed})
	}
	return out
}

// isReversal reports whether a line undoes another one.
func isReversal(l *journal.Line) bool {
	return l.Amount < 0 && (l.Reversal || statement.Kind(l.Kind) == statement.KindReversal || statement.Kind(l.Kind) == statement.KindReturn)
}

// reverses returns the id of the transfer that a line undoes: the only one of the session, or of the new lines, with its
// amount; empty if there is none, or several that it may be.
func reverses(s checkout.Session, lines []*journal.Line, undoes *journal.Line) string {
	amount := -undoes.NetAmount
	found := map[string]bool{}
	if c := s.Collection; c.Origin() == checkout.OriginStatement && c.Amount == amount {
		found[c.ID] = true
	}
	for _, c := range s.Cases {
		if c.Channel.Origin() == checkout.OriginStatement && c.Amount == amount && c.Kind == checkout.CaseOrphan {
			found[c.CollectionID] = true
		}
	}
	for _, l := range lines {
		if !l.Withdrawn && l.NetAmount == amount {
			found[creditID(l)] = true
		}
	}
	if len(found) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(found))[0]
}

// inDoubt reports whether an open case says that a credit of the session is not there any more.
func inDoubt(s checkout.Session, id string) bool {
	return slices.ContainsFunc(s.Cases, func(c checkout.Case) bool {
		return c.Open() && c.CollectionID == id && (c.Contradicted || c.Notice())
	})
}

// creditID returns the id of the collection that a line makes. A line has its id in each report, and keeps it when its statement is
// withdrawn and imported again.
func creditID(l *journal.Line) string {
	name := "quittance/credit/" + l.TenantID + "/" + strconv.FormatBool(l.Livemode) + "/" + l.Account + "/" + l.ID + "/" + strconv.Itoa(int(l.Occurrence))
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String()
}

// noon returns when the money of a line was booked, for a payment that has a time: the bank tells a day.
func noon(l *journal.Line, zone *time.Location) time.Time {
	return time.Date(l.LocalDay.Year(), l.LocalDay.Month(), l.LocalDay.Day(), 12, 0, 0, 0, zone).UTC()
}
