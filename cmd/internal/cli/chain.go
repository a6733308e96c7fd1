package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/reconciliation/chain"
)

func chainCommand() Command {
	var agency, mode string
	var verify bool
	return Command{
		Use: "chain TERM", Short: "Show a sum of money from the due to the line of the bank, with what proves each step", JSON: "the chains, or with --verify the proofs",
		Long: `Show a sum of money from the due to the line of the bank, with what proves each step: the record in Kafka as topic/partition@offset, the match, and the period with which it was closed.

TERM is a due, an order, a session, a payment or notice reference, a transaction, an operator's reference, or a line of a statement as the breaks name it. At most 20 chains are shown.

--verify asks Kafka alone. It computes each close of the agency again that can have the money, compares the root with the record of the close, and shows the rows of the money with their proofs, which anybody can check with the root (RFC 6962). TERM is then no line. It reads all that Kafka has of the agency, and ends with code 1 unless a close that holds has the money.`,
		Missing:  "say what to look for: {usage}, for instance a payment reference or an operator's reference",
		Examples: []string{"chain 6214534488655905", "chain MP261123.1001.A1 --agency impots --json", "chain 6214534488655905 --verify --agency impots --mode live"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&agency, "agency", "", "money of this agency, by slug or id")
			takesMode(f, &mode)
			f.BoolVar(&verify, "verify", false, "compute the closes again from Kafka, and prove that they have the money; needs --agency and --mode")
		},
		Check: func(m *Meta) error {
			switch {
			case verify && agency == "":
				return usage("say whose closes: --agency SLUG_OR_ID")
			case verify:
				return errors.Join(needsMode(mode), quiet(m))
			case mode != "":
				return usage("--mode is for --verify: leave it out")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *Meta) error {
			tenant, err := m.agencyID(ctx, agency)
			if err != nil {
				return err
			}
			if verify {
				return m.verify(ctx, tenant, mode == registry.Mode(true), m.args[0])
			}
			conn, err := m.openJournal(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			list, err := chain.Find(ctx, conn, m.args[0], tenant)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return asArgument(operation.Refuse("chain.nothing", "term", nil), "term", "TERM")
			}
			return m.show(list, func(p *page) {
				for i, c := range list {
					if i > 0 {
						p.say("")
					}
					p.chain(c)
				}
			})
		},
	}
}

// chain shows the steps of a chain, one after the other.
func (p *page) chain(c chain.Chain) {
	var rows [][]any
	if m := c.Money; m != nil {
		for _, i := range c.Items {
			rows = append(rows, []any{"due", orDash(i.Due), decimal(i.Amount, m.Currency), "transaction " + orDash(i.Transaction), "-"})
		}
		state := m.State
		if m.Withdrawn {
			state += ", withdrawn"
		}
		rows = append(rows, []any{"payment", orDash(m.PaymentRef), decimal(m.Gross, m.Currency), fmt.Sprintf("%s %s, %s, operator's reference %s", m.Kind, state, moment(m.ApprovedAt), orDash(m.OperatorRef)), m.Evidence.String()})
		for _, i := range c.Items {
			said := "the ERP has not accepted it"
			switch {
			case i.ConfirmedAt != nil:
				said = "accepted by the ERP " + moment(*i.ConfirmedAt)
			case i.Due == "":
				said = "none: the due is in no ERP"
			}
			rows = append(rows, []any{"confirmation", orDash(i.Transaction), decimal(i.Amount, m.Currency), said, orDash(i.ConfirmedBy)})
		}
	}
	for _, of := range []struct {
		step  string
		lines []chain.Line
	}{{"operator's line", c.Operator}, {"bank's line", c.Bank}} {
		for _, l := range of.lines {
			rows = append(rows, []any{of.step, l.Row, decimal(l.Amount, l.Currency), fmt.Sprintf("account %s, statement %s, line %d of its file", l.Account, l.StatementID, l.FileLine), l.Evidence.String()})
			if l.Match != "" {
				closed := "the period is open"
				if l.Closed != "" {
					closed = "closed with the period until " + l.Closed
				}
				rows = append(rows, []any{"  match", l.Match, "", fmt.Sprintf("by %s %s, %s", l.Stage, l.Key, closed), l.MatchEvidence.String()})
			}
		}
	}
	for _, b := range c.Breaks {
		currency := ""
		if c.Money != nil {
			currency = c.Money.Currency
		} else if len(c.Operator) > 0 {
			currency = c.Operator[0].Currency
		}
		rows = append(rows, []any{"open " + b.Type, orDash(b.CaseID), decimal(b.Amount, currency), fmt.Sprintf("account %s: %s, %s", b.Account, b.Kind, b.Reason), "-"})
		for _, l := range b.Lines {
			rows = append(rows, []any{"  its line", l.Row, decimal(l.Amount, l.Currency), fmt.Sprintf("statement %s, line %d of its file", l.StatementID, l.FileLine), l.Evidence.String()})
		}
	}
	p.table("", "STEP,NAME,AMOUNT,WHAT,EVIDENCE", rows)
	if m := c.Money; m != nil {
		p.say("Session %s, order %s, expected row %s, %s", orDash(m.SessionID), orDash(m.OrderID), m.Row, m.ApprovedAt.UTC().Format(time.DateOnly))
	}
}
