package period

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/reconciliation/chain"
	"quittance/statement"
)

const chainHelp = `Show a sum of money from the due to the line of the bank, with what proves each step: the record in Kafka as topic/partition@offset, the match, and the period with which it was closed.

TERM is a due, an order, a session, a payment or notice reference, a transaction, an operator's reference, a batch, a line of a statement as the breaks name it, or a break: its id or its case. A break is shown with the rows of both sides and what each counts. At most 20 chains are shown, and at most 20 rows of each side.

--verify asks Kafka alone. It computes each close of the agency again that can have the money, compares the root with the record of the close, and shows the rows of the money with their proofs, which anybody can check with the root (RFC 6962). TERM is then no line. Without --agency or --mode ClickHouse is asked whose money it is; what it says proves nothing. It reads all that Kafka has of the agency, and ends with code 1 unless a close that holds has the money.`

// Chain returns the command `chain`.
func Chain() cli.Command {
	var agency, mode string
	var verify bool
	return cli.Command{
		Use: "chain TERM", Short: "Show a sum of money from the due to the line of the bank, with what proves each step", JSON: "the chains, or with --verify the proofs", Words: words,
		Long:     chainHelp,
		Missing:  "say what to look for: {usage}, for instance a payment reference or an operator's reference",
		Examples: []string{"chain 6214534488655905", "chain MP261123.1001.A1 --agency impots --json", "chain case_u0f7qos9bf7eo2tnlcjotbuuafnrphi7", "chain 6214534488655905 --verify"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "money of this agency, by slug or id")
			cli.TakesMode(f, &mode)
			f.BoolVar(&verify, "verify", false, "compute the closes again from Kafka, and prove that they have the money")
		},
		Check: func(m *cli.Meta) error {
			if verify {
				return cli.Quiet(m)
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			tenant, err := access.AgencyID(ctx, m, agency)
			if err != nil {
				return err
			}
			q := chain.Query{Term: m.Args[0], TenantID: tenant}
			if mode != "" {
				q.Live = new(mode == registry.Mode(true))
			}
			if verify && tenant != "" && q.Live != nil {
				return verifyTerm(ctx, m, tenant, *q.Live, m.Args[0])
			}
			conn, err := access.OpenJournal(ctx, m)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			list, err := chain.Find(ctx, conn, q)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return m.AsArgument(operation.Refuse("chain.nothing", "term", nil), "term", "TERM")
			}
			if verify {
				of, err := ownerOf(list)
				if err != nil {
					return err
				}
				return verifyTerm(ctx, m, of.tenant, of.live, m.Args[0])
			}
			return m.Show(list, func(p *render.Page) {
				for i, c := range list {
					if i > 0 {
						p.Say("")
					}
					sayChain(p, c)
				}
			})
		},
	}
}

// owner is whose money it is.
type owner struct {
	tenant string
	live   bool
}

// ownerOf returns whose money chains have, if it is one agency's in one mode.
func ownerOf(list []chain.Chain) (owner, error) {
	found := map[owner]bool{}
	for _, c := range list {
		if c.Money != nil && c.Money.TenantID != "" {
			found[owner{c.Money.TenantID, c.Money.Live}] = true
		}
	}
	if len(found) != 1 {
		return owner{}, cli.Usage("the term names money of %d agencies and modes: say whose closes with --agency SLUG_OR_ID and --mode", len(found))
	}
	return slices.Collect(maps.Keys(found))[0], nil
}

// sayChain shows the steps of a chain, one after the other.
func sayChain(p *render.Page, c chain.Chain) {
	var rows [][]any
	if m := c.Money; m != nil {
		for _, i := range c.Items {
			rows = append(rows, []any{"due", render.OrDash(i.Due), render.Decimal(i.Amount, m.Currency), "transaction " + render.OrDash(i.Transaction), "-"})
		}
		state := m.State
		if m.Withdrawn {
			state += ", withdrawn"
		}
		rows = append(rows, []any{"payment", render.OrDash(m.PaymentRef), render.Decimal(m.Gross, m.Currency), fmt.Sprintf("%s %s, %s, operator's reference %s", m.Kind, state, render.Moment(m.ApprovedAt), render.OrDash(m.OperatorRef)), m.Evidence.String()})
		for _, i := range c.Items {
			said := "the ERP has not accepted it"
			switch {
			case i.ConfirmedAt != nil:
				said = "accepted by the ERP " + render.Moment(*i.ConfirmedAt)
			case i.Due == "":
				said = "none: the due is in no ERP"
			}
			rows = append(rows, []any{"confirmation", render.OrDash(i.Transaction), render.Decimal(i.Amount, m.Currency), said, render.OrDash(i.ConfirmedBy)})
		}
	}
	rows = append(rows, proofsOf("operator's line", c.Operator)...)
	if l := c.Line; l != nil {
		rows = append(rows, lineRow("line", *l, l.Amount))
		for _, of := range c.Settles {
			rows = append(rows, settledRow("  pays", of))
		}
		rows = append(rows, restRow("  pays", c.SettlesInAll-len(c.Settles))...)
	}
	rows = append(rows, proofsOf("bank's line", c.Bank)...)
	for _, b := range c.Breaks {
		rows = append(rows, []any{b.State + " " + b.Type, cmp.Or(b.CaseID, b.FindingID), render.Decimal(b.Amount, b.Currency), fmt.Sprintf("account %s: %s, %s", b.Account, render.OrDash(b.Kind), b.Reason), "-"})
		for _, m := range b.ExpectedMoney {
			rows = append(rows, []any{"  expected", m.Row, render.Decimal(m.Gross, m.Currency), fmt.Sprintf("payment %s, %s, operator's reference %s", render.OrDash(m.PaymentRef), render.Moment(m.ApprovedAt), render.OrDash(m.OperatorRef)), m.Evidence.String()})
		}
		for _, l := range b.ExpectedLines {
			rows = append(rows, settledRow("  expected", l))
		}
		if shown := len(b.ExpectedMoney) + len(b.ExpectedLines); shown > 0 {
			rows = append(rows, restRow("  expected", len(b.Sources)-shown)...)
		}
		for _, e := range b.ExplainedBy {
			rows = append(rows, []any{"  explained by", cmp.Or(e.CaseID, e.FindingID), render.Decimal(e.Amount, b.Currency), fmt.Sprintf("%s break of account %s: %s", e.State, e.Account, render.OrDash(e.Kind)), "-"})
		}
		for _, l := range b.Lines {
			if c.Line == nil || l.Row != c.Line.Row {
				rows = append(rows, lineRow("  found", l, l.Amount))
			}
		}
	}
	p.Table("", "STEP,NAME,AMOUNT,WHAT,EVIDENCE", rows)
	switch m := c.Money; {
	case m == nil:
	case m.Payout != "":
		line, attempt, err := journal.ParsePayoutName(m.Payout)
		if err != nil {
			p.Say("Payout %s, expected row %s, %s, %s", m.Payout, m.Row, m.ApprovedAt.UTC().Format(time.DateOnly), registry.Mode(m.Live))
			return
		}
		p.Say("Batch %s, position %d, attempt %d, expected row %s, %s, %s", line.Batch, line.Position, attempt, m.Row, m.ApprovedAt.UTC().Format(time.DateOnly), registry.Mode(m.Live))
	default:
		p.Say("Session %s, order %s, expected row %s, %s, %s", render.OrDash(m.SessionID), render.OrDash(m.OrderID), m.Row, m.ApprovedAt.UTC().Format(time.DateOnly), registry.Mode(m.Live))
	}
}

// proofsOf returns rows for lines with their matches.
func proofsOf(step string, lines []chain.Line) (rows [][]any) {
	for _, l := range lines {
		rows = append(rows, lineRow(step, l, l.Amount))
		if l.Match != "" {
			closed := "the period is open"
			if l.Closed != "" {
				closed = "closed with the period until " + l.Closed
			}
			rows = append(rows, []any{"  match", l.Match, "", fmt.Sprintf("by %s %s, %s", l.Stage, l.Key, closed), l.MatchEvidence.String()})
		}
	}
	return rows
}

// lineRow returns a row for a line that counts with an amount.
func lineRow(step string, l chain.Line, amount int64) []any {
	of := fmt.Sprintf("account %s, statement %s, line %d of its file", l.Account, l.StatementID, l.FileLine)
	if l.Withdrawn {
		of += "; its import was withdrawn"
	}
	return []any{step, l.Row, render.Decimal(amount, l.Currency), of, l.Evidence.String()}
}

// settledRow returns a row for a line that another account pays.
func settledRow(step string, l chain.Line) []any {
	row := lineRow(step, l, l.Net())
	switch {
	case l.Kind == statement.KindPayout:
		row[3] = fmt.Sprintf("the operator says that it paid %s; %s", render.Decimal(-l.Amount, l.Currency), row[3])
	case l.Fee != 0:
		row[3] = fmt.Sprintf("%s less the fee %s; %s", render.Decimal(l.Amount, l.Currency), render.Decimal(l.Fee, l.Currency), row[3])
	}
	return row
}

// restRow returns a row that says how many rows are not shown, if there are any.
func restRow(step string, n int) [][]any {
	if n <= 0 {
		return nil
	}
	return [][]any{{step, fmt.Sprintf("and %d more", n), "", "", ""}}
}
