package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/reconciliation/audit"
)

// errUnproved is the error of a verification that did not succeed. What is wrong was shown.
var errUnproved = errors.New("not proved: see above")

// withBook reads what Kafka has of an agency and calls do.
func (m *Meta) withBook(ctx context.Context, tenant string, live bool, do func(*audit.Book) error) error {
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	topology, codec, err := m.openTopics(ctx)
	if err != nil {
		return err
	}
	book, err := audit.Read(ctx, audit.Source{Kafka: m.KafkaConfig(), Topology: topology, Codec: codec}, tenant, live)
	if err != nil {
		return err
	}
	return do(book)
}

// verifiedClose is a close that was computed again, as --json prints it.
func verifiedClose(c audit.Close) object {
	return object{
		"account", c.Account, "from", c.FromDay.Format(time.DateOnly), "to", c.ToDay.Format(time.DateOnly), "close_id", c.ID, "root", orNone(c.ChainRoot), "rows", c.ChainRows,
		"hash", c.Hash(), "previous", orNone(c.Previous), "holds", c.Holds(), "faults", append([]string{}, c.Faults...),
		"evidence", c.Evidence().String(),
	}
}

// holds says what became of a close that was computed again.
func holds(c audit.Close) string {
	switch {
	case c.Unproved && len(c.Faults) == 0:
		return "has no root: an earlier release wrote it"
	case c.Holds():
		return "holds"
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
	closes, err := book.All()
	if err != nil {
		return nil, false, err
	}
	for _, c := range closes {
		of := proved{Close: c}
		for _, entry := range entries {
			some, err := c.Proofs(entry)
			if err != nil {
				return nil, false, err
			}
			of.proofs = append(of.proofs, some...)
			in[entry] = in[entry] || len(some) > 0 && c.Holds()
		}
		if len(of.proofs) > 0 {
			list = append(list, of)
			all = all && len(c.Faults) == 0
		}
	}
	for _, entry := range entries {
		all = all && in[entry]
	}
	return list, all, nil
}

// verify proves that closes have the money of a term.
func (m *Meta) verify(ctx context.Context, tenant string, live bool, term string) error {
	return m.withBook(ctx, tenant, live, func(book *audit.Book) error {
		entries := book.Entries(term)
		if len(entries) == 0 {
			return m.asArgument(operation.Refuse("chain.nothing", "term", nil), "term", "TERM")
		}
		list, proved, err := proofs(book, entries)
		if err != nil {
			return err
		}
		j := make([]object, len(list))
		for i, c := range list {
			j[i] = append(verifiedClose(c.Close), "proofs", c.proofs)
		}
		err = m.show(object{"proved", proved, "unreadable", book.Unreadable, "closes", j}, func(p *page) {
			for i, c := range list {
				if i > 0 {
					p.say("")
				}
				p.say("Account %s, %s to %s: the close %s. Root %s over %d rows, %s", c.Account, c.FromDay.Format(time.DateOnly), c.ToDay.Format(time.DateOnly), holds(c.Close), orDash(c.ChainRoot), c.ChainRows, c.Evidence())
				var rows [][]any
				for _, f := range c.proofs {
					r := f.Row
					rows = append(rows, []any{orDash(r.Due), decimal(r.Amount, r.Currency), orDash(r.Transaction), orDash(r.Confirmation), orDash(r.OperatorLine), orDash(r.BankLine), fmt.Sprintf("%d of %d", f.Proof.Index+1, f.Proof.Size)})
				}
				p.table("", "DUE,AMOUNT,TRANSACTION,CONFIRMED BY,OPERATOR'S LINE,BANK'S LINE,ROW", rows)
			}
			if !proved {
				p.say("The money is not proved: its period is open, or a close does not hold.")
			}
			if book.Unreadable > 0 {
				p.say("%d records in Kafka cannot be read. Look into the poison topic of the journal.", book.Unreadable)
			}
		})
		if err == nil && !proved {
			err = errUnproved
		}
		return err
	})
}

func verifyPeriods() Command {
	var agency, mode string
	return Command{
		Use: "verify", Short: "Compute all closes of an agency again from Kafka alone, and compare their roots", JSON: "the closes", Args: cobra.NoArgs,
		Long:     `Compute all closes of an agency again from Kafka alone, and compare their roots with their records. Each close also keeps the hash of the one before, so a close that was changed or removed shows. The command ends with code 1 if a close does not hold.`,
		Examples: []string{"periods verify --agency impots --mode live", "periods verify --agency impots --mode live --json"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&agency, "agency", "", "closes of this agency, by slug or id")
			takesMode(f, &mode)
		},
		Check: func(m *Meta) error {
			if agency == "" {
				return usage("say whose closes: --agency SLUG_OR_ID")
			}
			return errors.Join(needsMode(mode), quiet(m))
		},
		Operate: func(ctx context.Context, m *Meta) error {
			tenant, err := m.agencyID(ctx, agency)
			if err != nil {
				return err
			}
			return m.withBook(ctx, tenant, mode == registry.Mode(true), func(book *audit.Book) error {
				closes, err := book.All()
				if err != nil {
					return err
				}
				var rows [][]any
				list, all := []object{}, true
				for _, c := range closes {
					all = all && len(c.Faults) == 0
					list = append(list, verifiedClose(c))
					rows = append(rows, []any{c.Account, c.FromDay.Format(time.DateOnly), c.ToDay.Format(time.DateOnly), c.ChainRows, orDash(c.ChainRoot), holds(c)})
				}
				err = m.show(list, func(p *page) { p.table("No period is closed.", "ACCOUNT,FROM,TO,ROWS,ROOT,RESULT", rows) })
				if err == nil && !all {
					err = errUnproved
				}
				return err
			})
		},
	}
}
