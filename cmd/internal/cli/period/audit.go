package period

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/reconciliation/audit"
)

// errUnproved is the error of a verification that did not succeed. What is wrong was shown.
var errUnproved = errors.New("not proved: see above")

// withBook reads what Kafka has of an agency and calls do.
func withBook(ctx context.Context, m *cli.Meta, tenant string, live bool, keyFiles []string, do func(*audit.Book) error) error {
	keys, err := closeKeys(m, keyFiles)
	if err != nil {
		return err
	}
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	topology, codec, err := access.OpenTopics(ctx, m)
	if err != nil {
		return err
	}
	source := audit.Source{Kafka: m.KafkaConfig(), Topology: topology, Codec: codec}
	if m.MasterKeys != "" || m.PlainSecrets {
		master, err := m.OpenKeys()
		if err != nil {
			return err
		}
		if source.Cases, err = roles.CaseEvents(source.Kafka, master); err != nil {
			return err
		}
	}
	book, err := audit.Read(ctx, source, tenant, live)
	if err != nil {
		return err
	}
	book.Keys = keys
	return errors.Join(do(book), book.Close())
}

// verifiedClose is a close that was computed again, as --json prints it.
func verifiedClose(c audit.Close) render.Object {
	return render.Object{
		"account", c.Account, "from", c.FromDay.Format(time.DateOnly), "to", c.ToDay.Format(time.DateOnly), "close_id", c.ID, "root", render.OrNone(c.ChainRoot), "rows", c.ChainRows,
		"hash", c.Hash(), "previous", render.OrNone(c.Previous), "holds", c.Holds(), "faults", append([]string{}, c.Faults...), "reports", append([]string{}, c.Close.Reports...),
		"evidence", c.Evidence().String(), "signature", c.Signature, "signed_with", render.OrNone(c.SignedWith),
	}
}

// holds says what became of a close that was computed again.
func holds(c audit.Close) string {
	switch {
	case c.Unproved && len(c.Faults) == 0:
		return "has no root: an earlier release wrote it"
	case c.Holds():
		return "holds; signature: " + string(c.Signature)
	}
	return "DOES NOT HOLD: " + strings.Join(c.Faults, "; ")
}

// proved is a close with the proofs of a sum of money.
type proved struct {
	audit.Close
	proofs []audit.Proof
}

// proofs returns the closes that have one of the entries, and whether they prove all of them.
func proofs(book *audit.Book, entries []string) (list []proved, all bool, err error) {
	in := map[string]bool{}
	all = true
	err = book.Each(func(c *audit.Close) error {
		of := proved{Close: c.WithoutRows()}
		for _, entry := range entries {
			some, err := c.Proofs(entry)
			if err != nil {
				return err
			}
			of.proofs = append(of.proofs, some...)
			in[entry] = in[entry] || len(some) > 0 && c.Holds()
		}
		if len(of.proofs) > 0 {
			list = append(list, of)
			all = all && len(c.Faults) == 0
		}
		return nil
	})
	for _, entry := range entries {
		all = all && in[entry]
	}
	return list, all, err
}

// verifyTerm proves that closes have the money of a term.
func verifyTerm(ctx context.Context, m *cli.Meta, tenant string, live bool, term string) error {
	return withBook(ctx, m, tenant, live, nil, func(book *audit.Book) error {
		entries := book.Entries(term)
		if len(entries) == 0 {
			return m.AsArgument(operation.Refuse("chain.nothing", "term", nil), "term", "TERM")
		}
		list, proved, err := proofs(book, entries)
		if err != nil {
			return err
		}
		j := make([]render.Object, len(list))
		for i, c := range list {
			j[i] = append(verifiedClose(c.Close), "proofs", c.proofs)
		}
		err = m.Show(render.Object{"proved", proved, "unreadable", book.Unreadable, "closes", j}, func(p *render.Page) {
			for i, c := range list {
				if i > 0 {
					p.Say("")
				}
				p.Say("Account %s, %s to %s: the close %s. Root %s over %s, %s", c.Account, c.FromDay.Format(time.DateOnly), c.ToDay.Format(time.DateOnly), holds(c.Close), render.OrDash(c.ChainRoot), render.Counted(c.ChainRows, "row"), c.Evidence())
				var rows [][]any
				for _, f := range c.proofs {
					r := f.Row
					rows = append(rows, []any{render.OrDash(r.Due), render.Decimal(r.Amount, r.Currency), render.OrDash(r.Transaction), render.OrDash(r.Confirmation), render.OrDash(r.OperatorLine), render.OrDash(r.BankLine), fmt.Sprintf("%d of %d", f.Proof.Index+1, f.Proof.Size)})
				}
				p.Table("", "DUE,AMOUNT,TRANSACTION,CONFIRMED BY,OPERATOR'S LINE,BANK'S LINE,ROW", rows)
			}
			if !proved {
				p.Say("The money is not proved: its period is open, or a close does not hold.")
			}
			if book.Unreadable > 0 {
				p.Say("Not read: %s in Kafka. Look into the poison topic of the journal.", render.Counted(book.Unreadable, "record"))
			}
		})
		if err == nil && !proved {
			err = errUnproved
		}
		return err
	})
}

// compareReports has the book compare what closes state of reports with ClickHouse, if the command has its address.
// What a ClickHouse says that lacks rows is no difference: the closes are then verified from Kafka alone, and that is said.
func compareReports(ctx context.Context, m *cli.Meta, book *audit.Book) (end func(), err error) {
	if m.ClickHouse == "" {
		return func() {}, nil
	}
	conn, err := access.OpenJournal(ctx, m)
	if err != nil {
		return nil, err
	}
	_, _, lacks := access.Whole(ctx, m, conn)
	book.Reports = func(c *journal.Close) ([]string, error) {
		if lacks != nil {
			return nil, lacks
		}
		return report.OfClose(c).Totals(ctx, conn)
	}
	return func() { _ = conn.Close() }, nil
}

func verifyPeriods() cli.Command {
	var agency, mode string
	var keyFiles []string
	return cli.Command{
		Use: "verify", Short: "Compute all closes of an agency again from Kafka alone, compare their roots and verify their signatures", JSON: "the closes", Args: cobra.NoArgs,
		Long:     `Compute all closes of an agency again from Kafka alone, and compare their roots with their records. Each close also keeps the hash of the one before, so a close that was changed or removed shows. The signatures are verified with the keys of --key, as ` + "`periods keys`" + ` prints them, and with those that derive from QUITTANCE_MASTER_KEYS; without either they are not checked. With the address of ClickHouse, what the reports say of the days is compared with what they said when each was closed; closes of earlier releases state nothing. The command ends with code 1 if a close does not hold.`,
		Examples: []string{"periods verify --agency impots --mode live", "periods verify --agency impots --mode live --key closes.pem --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "closes of this agency, by slug or id")
			cli.TakesMode(f, &mode)
			f.StringSliceVar(&keyFiles, "key", nil, "file with public keys of closes (PEM), for instance of master keys that are gone; repeatable")
		},
		Check: func(m *cli.Meta) error {
			if agency == "" {
				return cli.Usage("say whose closes: --agency SLUG_OR_ID")
			}
			return errors.Join(cli.NeedsMode(mode), cli.Quiet(m))
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			tenant, err := access.AgencyID(ctx, m, agency)
			if err != nil {
				return err
			}
			return withBook(ctx, m, tenant, mode == registry.Mode(true), keyFiles, func(book *audit.Book) error {
				end, err := compareReports(ctx, m, book)
				if err != nil {
					return err
				}
				defer end()
				var rows [][]any
				list, all := []render.Object{}, true
				err = book.Each(func(each *audit.Close) error {
					c := each.WithoutRows()
					all = all && len(c.Faults) == 0
					list = append(list, verifiedClose(c))
					rows = append(rows, []any{c.Account, c.FromDay.Format(time.DateOnly), c.ToDay.Format(time.DateOnly), c.ChainRows, render.OrDash(c.ChainRoot), holds(c)})
					return nil
				})
				if err != nil {
					return err
				}
				err = m.Show(list, func(p *render.Page) {
					p.Table("No period is closed.", "ACCOUNT,FROM,TO,ROWS,ROOT,RESULT", rows)
					if book.Reports == nil {
						p.Say("Reports are not compared: give the address of ClickHouse.")
					}
					if book.Unread != nil {
						p.Say("Reports are not compared: %v.", book.Unread)
					}
				})
				if err == nil && !all {
					err = errUnproved
				}
				return err
			})
		},
	}
}
