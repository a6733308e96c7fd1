package batch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/disbursement"
	"quittance/disbursement/export"
	"quittance/internal/batchseal"
	"quittance/internal/disbursements"
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
	page.Say("%s: %s, revision %d, is %s. %s, %s; digest %s", b.ID, b.BatchRef, b.Revision, b.Status, render.Counted(p.Lines, "line"), render.Decimal(p.Sum, b.Currency), p.Digest)
	page.Say("disbursement.events, partition %d, offsets %d to %d", p.Partition, p.Offsets[0], p.Offsets[1])
	page.Table("nobody has approved it", "LEVEL,PERSON,FOR,AT,PASSKEY,OFFSET", render.Mapped(p.Approvals, func(a disbursements.ProvenApproval) []any {
		return []any{a.Level, a.Person, render.OrDash(a.For), render.Moment(a.At), hex.EncodeToString(a.Key[:]), a.Offset}
	}))
	switch {
	case p.ReleasedAt.IsZero():
		page.Say("It was not released, and nothing was sent.")
	case p.ReleasedBy == "":
		page.Say("It was released on its date, %s. Made: %s to pay.", render.Moment(p.ReleasedAt), render.Counted(p.Sent, "request"))
	default:
		page.Say("%s released it at %s. Made: %s to pay.", p.ReleasedBy, render.Moment(p.ReleasedAt), render.Counted(p.Sent, "request"))
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
	var out, format string
	return cli.Command{
		Use: "export BATCH", Short: "Write a batch for other programs: all lines with salts and signatures (JSON, with names and accounts), or what became of them (CSV, XLSX)", JSON: "what was written", Keyed: true,
		Long: `Write a sealed batch to a file, with its signature in FILE.jws (a detached JWS, RFC 7515; the public keys are at /.well-known/batches-jwks.json). docs/operating/disbursements/verify-signature.mjs verifies it.

--format json has what approvers signed, each line with its salt, and each approval with its signature, for programs of others such as docs/operating/disbursements/verify.mjs and verify.py. It has the names and accounts of all payees. A batch with an erased line cannot be exported so: ` + "`quittance batches verify`" + ` proves it without contents.

--format csv and xlsx have what became of each line: references, status, code, amount, account, attempts and times, without names and accounts of payees. They say what Kafka proves, also of erased lines.

Only a person of the agency who prepares or approves batches may write it, and the audit table says who did.`,
		Missing: whichBatch, Examples: []string{"batches export BATCH --out salaries.json", "batches export BATCH --format xlsx --out results.xlsx"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			format = formatJSON
			f.StringVar(&out, "out", "", "file to write; it must not exist")
			cli.TakesChoice(f, &format, "format", []string{formatJSON, formatCSV, formatXLSX}, "")
		},
		Check: func(*cli.Meta) error {
			if out == "" {
				return cli.Usage("--out: say which file to write")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, b, err := linesOf(ctx, m)
			if err != nil {
				return err
			}
			// Rows of Postgres do not say whose batch it is: another agency's would be written for whoever changes them.
			proof, err := proofOf(ctx, m, b)
			if err != nil {
				return err
			}
			if len(proof.Faults) > 0 || proof.Digest != b.Digest {
				return errDoesNotHold
			}
			content, err := exported(ctx, m, store, b, proof, format)
			if err != nil {
				return err
			}
			signer, err := batchseal.NewSigner(m.Keys)
			if err != nil {
				return err
			}
			if err := operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: "batch.export", Subject: b.ID, AgencyID: b.TenantID, Detail: map[string]any{"lines": proof.Lines, "format": format}}); err != nil {
				return err
			}
			if err := signedFile(out, b.Live, content, signer); err != nil {
				return err
			}
			return m.Show(render.Object{"file", out, "signature", out + signatureEnding, "format", format, "id", b.ID, "lines", proof.Lines, "approvals", len(proof.Approvals), "digest", b.Digest.String()}, func(p *render.Page) {
				p.Say("%s has %s and %s of %s. %s", out, render.Counted(proof.Lines, "line"), render.Counted(len(proof.Approvals), "approval"), b.ID, namesIn(format))
				p.Say("Its signature is %s.", out+signatureEnding)
			})
		},
	}
}

// namesIn says whom an export of a format names.
func namesIn(format string) string {
	if format == formatJSON {
		return "It names all payees: keep it as you keep the payroll."
	}
	return "It names no payee."
}

// exported returns the bytes of an export.
func exported(ctx context.Context, m *cli.Meta, store *disbursements.Store, b disbursements.Batch, proof disbursements.Proof, format string) ([]byte, error) {
	if format != formatJSON {
		slugs, _, err := access.Slugs(ctx, m)
		if err != nil {
			return nil, err
		}
		return encoded(resultsOf(m, proof, slugs[b.TenantID]), format)
	}
	lines, err := personal.New(personal.Config{Pool: m.Pool, Keys: m.Keys, Now: func() time.Time { return m.Now }})
	if err != nil {
		return nil, err
	}
	var opened []export.Opened
	found, err := store.Compare(ctx, lines, b, func(l disbursements.OpenLine) {
		opened = append(opened, export.Opened{Salt: l.Salt, Line: l.Content})
	})
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%w, or its rows are not as they were sealed (%v)", errErased, found)
	}
	content, err := export.New(b.Sealing, opened)
	if err != nil {
		return nil, err
	}
	return encodedJSON(content)
}
