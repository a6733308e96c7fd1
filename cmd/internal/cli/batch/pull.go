package batch

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/disbursements"
	"quittance/internal/erp"
	"quittance/internal/erp/conformance"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

func pullBatch() cli.Command {
	var with making
	return cli.Command{
		Use: "pull", Short: "Make a batch of the lines that the agency's ERP has, whole or not at all, and seal it for approval", JSON: "the batch, or the faults", Keyed: true,
		Long: `Make a batch of the lines that the agency's ERP has under a batch_ref (GET /disbursements), whole or not at all, and seal it for approval.

One faulty line refuses the whole batch; all faults are shown at once, with the item and the field. An answer that is cut off, of more than 100,000 lines or of another currency makes nothing. Texts are written in the letters that operators take; --try shows what changes.

Before the batch is paid the service asks the ERP again: a batch of which the ERP has other lines then is held. The order of the lines may be another.

The person of QUITTANCE_STAFF_KEY is the maker, a preparer of the agency, who never approves the batch. This machine must reach the ERP, and needs the keys that open its secret.`,
		Examples: []string{"batches pull --agency impots --mode test --batch-ref BOURSES-2026-11 --date 2026-12-20 --try", "batches pull --agency impots --mode live --batch-ref BOURSES-2026-11 --date 2026-12-20"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			with.declare(f)
			f.StringVar(&with.ref, "batch-ref", "", "the reference of the batch in the ERP; a new pull of it is the next revision")
		},
		Check: func(*cli.Meta) error {
			if !erp.IsReference(with.ref) {
				return cli.Usage("--batch-ref: give the reference of the batch in the ERP, at most %d characters without control characters", erp.MaxReference)
			}
			return with.check()
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			boundMemory()
			p, err := with.payer(ctx, m)
			if err != nil {
				return err
			}
			// Nobody gives a file here: faults and changes quote names and numbers that the person has not seen.
			if by.Staff.AgencyID != p.tenantID || !by.Staff.May(identity.MayPrepareBatches) {
				return operation.Refuse("batch.lines_not_yours_to_pull", "", nil)
			}
			return with.pull(ctx, m, p, with.of(p, by))
		},
	}
}

// pull makes the batch of what the ERP has.
func (x *making) pull(ctx context.Context, m *cli.Meta, p payer, q disbursements.Import) error {
	switch {
	case p.erp == nil:
		return operation.Refuse("batch.no_erp", "mode", nil)
	case p.erp.Settings.Locked:
		return operation.Refuse("batch.erp_locked", "", nil)
	}
	var err error
	if p.erp.MACs, err = m.Keys.MACs(disbursements.LabelERPLines); err != nil {
		return err
	}
	q.ERP = p.erp
	// Faults and changes show what the ERP has of payees, also when nothing is made.
	err = operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: "batch.pull", Subject: p.tenantID, AgencyID: p.tenantID, Detail: map[string]any{"batch_ref": q.BatchRef, "mode": x.mode, "try": x.try}})
	if err != nil {
		return err
	}
	err = x.make(ctx, m, p, q, q.BatchRef)
	var none *disbursements.ERPError
	if errors.As(err, &none) {
		said, mend := conformance.ExplainLines(none.Result)
		if none.Items > 0 {
			said = fmt.Sprintf("After %s: %s", render.Counted(none.Items, "line"), said)
		}
		return fmt.Errorf("the ERP of %s gave no lines of %s, and nothing was made. %s %s", x.agency, q.BatchRef, said, mend)
	}
	return err
}
