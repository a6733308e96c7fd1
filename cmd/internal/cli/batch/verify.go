package batch

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/disbursement"
	"quittance/disbursement/export"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/personal"
)

// errDoesNotHold ends a command that has found something.
var errDoesNotHold = errors.New("the batch does not hold; `quittance batches verify` says in what")

// errErased says that a batch cannot be exported for verification.
var errErased = errors.New("a line of the batch was erased, or cannot be opened")

func verifyBatch() cli.Command {
	return cli.Command{
		Use: "verify BATCH", Short: "Prove a batch from Kafka alone: its lines, who approved it with which passkey, and that the processor records no other request", JSON: "what the records prove",
		Long: `Prove a batch from the records of disbursement.events alone. Postgres says only which agency it is of.

Checked are: root, count and sums of the lines that were added; the digest; each approval's signature, by a passkey that the agency's roster had for a day; enough people, none of them the maker, none twice; nothing sent before the release or with another leaf. The command ends with code 1 if something does not hold.

It reads all events of the agency's partition. Names and accounts of payees are not in it: ` + "`quittance batches export`" + ` has them, for programs of others.`,
		Missing: whichBatch, Examples: []string{"batches verify BATCH", "batches verify BATCH --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			_, b, err := named(ctx, m)
			if err != nil {
				return err
			}
			p, err := proofOf(ctx, m, b)
			if err != nil {
				return err
			}
			err = m.Show(proofJSON(p), func(page *render.Page) { showProof(page, p) })
			if err == nil && len(p.Faults) > 0 {
				err = errDoesNotHold
			}
			return err
		},
	}
}

// proofOf proves a batch from Kafka.
func proofOf(ctx context.Context, m *cli.Meta, b disbursements.Batch) (p disbursements.Proof, err error) {
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return p, err
	}
	codec, err := m.OpenSchemas(ctx, false)
	if err != nil {
		return p, err
	}
	client, err := m.KafkaConfig().Client()
	if err != nil {
		return p, err
	}
	defer client.Close()
	topology, err := kafka.Load(ctx, m.KafkaConfig(), client)
	if err != nil {
		return p, err
	}
	return disbursements.Prove(ctx, m.KafkaConfig(), topology, codec, b.TenantID, b.ID)
}

func showProof(page *render.Page, p disbursements.Proof) {
	b := p.Batch
	page.Say("%s: %s, revision %d, is %s. %d lines, %s; digest %s", b.ID, b.BatchRef, b.Revision, b.Status, p.Lines, render.Decimal(p.Sum, b.Currency), p.Digest)
	page.Say("disbursement.events, partition %d, offsets %d to %d", p.Partition, p.Offsets[0], p.Offsets[1])
	page.Table("nobody has approved it", "LEVEL,PERSON,FOR,AT,PASSKEY,OFFSET", render.Mapped(p.Approvals, func(a disbursements.ProvenApproval) []any {
		return []any{a.Level, a.Person, render.OrDash(a.For), render.Moment(a.At), hex.EncodeToString(a.Key[:]), a.Offset}
	}))
	switch {
	case p.ReleasedAt.IsZero():
		page.Say("It was not released, and nothing was sent.")
	case p.ReleasedBy == "":
		page.Say("It was released on its date, %s; %d requests to pay were made.", render.Moment(p.ReleasedAt), p.Sent)
	default:
		page.Say("%s released it at %s; %d requests to pay were made.", p.ReleasedBy, render.Moment(p.ReleasedAt), p.Sent)
	}
	for _, f := range p.Faults {
		page.Say("DOES NOT HOLD: %s", f)
	}
	if len(p.Faults) == 0 {
		page.Say("Everything holds.")
	}
}

func proofJSON(p disbursements.Proof) render.Object {
	b := p.Batch
	faults := p.Faults
	if faults == nil {
		faults = []string{}
	}
	return render.Object{
		"id", b.ID, "tenant_id", b.TenantID, "mode", disbursement.Mode(b.Live), "batch_ref", b.BatchRef, "revision", b.Revision, "status", string(b.Status), "lines", p.Lines, "sum", p.Sum,
		"currency", b.Currency, "digest", p.Digest.String(), "partition", p.Partition, "first_offset", p.Offsets[0], "last_offset", p.Offsets[1],
		"approvals", render.Mapped(p.Approvals, func(a disbursements.ProvenApproval) render.Object {
			return render.Object{"level", a.Level, "person", a.Person, "for", render.OrNone(a.For), "at", a.At, "passkey", hex.EncodeToString(a.Key[:]), "offset", a.Offset}
		}),
		"released_by", render.OrNone(p.ReleasedBy), "released_at", p.ReleasedAt, "sent", p.Sent, "holds", len(p.Faults) == 0, "faults", faults,
	}
}

func exportBatch() cli.Command {
	var out string
	return cli.Command{
		Use: "export BATCH", Short: "Write a batch with all lines, salts and signatures to a file that other programs verify; it has names and accounts of payees", JSON: "what was written", Keyed: true,
		Long: `Write a sealed batch to a file that programs of others verify, such as docs/operating/disbursements/verify.mjs and verify.py: what approvers signed, each line with its salt, each approval with its signature.

The file has the names and accounts of all payees. Only a person of the agency who prepares or approves batches may write it, and the audit table says who did. A batch with an erased line cannot be exported: ` + "`quittance batches verify`" + ` proves it without contents.`,
		Missing: whichBatch, Examples: []string{"batches export BATCH --out salaries.json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&out, "out", "", "file to write; it must not exist") },
		Check: func(*cli.Meta) error {
			if out == "" {
				return cli.Usage("--out: say which file to write")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			store, b, err := named(ctx, m)
			switch {
			case err != nil:
				return err
			case b.TenantID != by.Staff.AgencyID || !by.Staff.May(identity.MaySeeLines):
				return operation.Refuse("batch.lines_not_yours", "", nil)
			case b.SealedAt.IsZero():
				return operation.Refuse("batch.not_sealed", "batch", nil)
			}
			// Rows of Postgres do not say whose batch it is: another agency's would be written for whoever changes them.
			proof, err := proofOf(ctx, m, b)
			if err != nil {
				return err
			}
			if len(proof.Faults) > 0 || proof.Digest != b.Digest {
				return errDoesNotHold
			}
			lines, err := personal.New(personal.Config{Pool: m.Pool, Keys: m.Keys, Now: func() time.Time { return m.Now }})
			if err != nil {
				return err
			}
			var opened []export.Opened
			found, err := store.Compare(ctx, lines, b, func(l disbursements.OpenLine) {
				opened = append(opened, export.Opened{Salt: l.Salt, Line: l.Content})
			})
			if err != nil {
				return err
			}
			if len(found) > 0 {
				return fmt.Errorf("%w, or its rows are not as they were sealed (%v)", errErased, found)
			}
			content, err := export.New(b.Sealing, opened)
			if err != nil {
				return err
			}
			if err := operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: "batch.export", Subject: b.ID, AgencyID: b.TenantID, Detail: map[string]any{"lines": len(opened)}}); err != nil {
				return err
			}
			if err := writeNew(out, content); err != nil {
				return err
			}
			return m.Show(render.Object{"file", out, "id", b.ID, "lines", len(opened), "approvals", len(content.Approvals), "digest", b.Digest.String()}, func(p *render.Page) {
				p.Say("%s has %d lines and %d approvals of %s. It names all payees: keep it as you keep the payroll.", out, len(opened), len(content.Approvals), b.ID)
			})
		},
	}
}

// writeNew writes JSON to a new file that its owner alone reads. A file that was not written whole is removed.
func writeNew(path string, content any) (err error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	err = errors.Join(json.NewEncoder(file).Encode(content), file.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}
