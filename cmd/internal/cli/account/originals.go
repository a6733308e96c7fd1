package account

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/intake"
	"quittance/internal/registry"
)

func originals() cli.Command {
	return cli.Command{
		Use: "original", Short: "Read the file of an import as it came; two people agree to it, because it has names and numbers of payers",
		Commands: []cli.Command{requestOriginal(), approveOriginal(), saveOriginal(), listOriginals()},
	}
}

const whichRequest = "say which request: {usage}, its id; `quittance statements original list` shows them"

func requestJSON(r intake.OriginalRequest, agency string) render.Object {
	return render.Object{
		"request_id", r.ID, "import_id", r.ImportID, "agency", agency, "mode", registry.Mode(r.Live), "account", r.Code, "reason", r.Reason,
		"requested_by", r.RequestedBy, "requested_at", r.RequestedAt, "approved_by", render.OrNone(r.ApprovedBy), "until", r.Until(),
	}
}

// showRequest shows a request and what comes next.
func showRequest(ctx context.Context, m *cli.Meta, r intake.OriginalRequest, next string) error {
	s, err := registry.Read(ctx, m.Pool)
	if err != nil {
		return err
	}
	return m.Show(requestJSON(r, s.Agencies[r.AgencyID].Slug), func(p *render.Page) { p.Say("%s", next) })
}

func requestOriginal() cli.Command {
	var reason string
	return cli.Command{
		Use: "request IMPORT", Short: "Request to read the file of an import; another person approves it within a day", JSON: "the request",
		Missing:  "say which import: {usage}, its id; `quittance statements list` shows them",
		Examples: []string{`statements original request 019ab3c0-0000-7000-8000-000000000000 --reason "MTN disputes line 7"`},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			r, err := intake.RequestOriginal(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], reason, m.Now)
			if err != nil {
				return err
			}
			return showRequest(ctx, m, r, fmt.Sprintf("Request %s waits until %s. Another person approves it with `quittance statements original approve %[1]s`.", r.ID, render.Moment(r.Until())))
		},
	}
}

func approveOriginal() cli.Command {
	return cli.Command{
		Use: "approve REQUEST", Short: "Approve that another person reads the file of an import", JSON: "the request", Missing: whichRequest,
		Examples: []string{"statements original approve 019ab3c0-0000-7000-8000-000000000000"},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			r, err := intake.ApproveOriginal(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return showRequest(ctx, m, r, fmt.Sprintf("%s can read the file of import %s until %s, with `quittance statements original save %s --out FILE`.", r.RequestedBy, r.ImportID, render.Moment(r.Until()), r.ID))
		},
	}
}

func saveOriginal() cli.Command {
	var out string
	return cli.Command{
		Use: "save REQUEST", Short: "Save the file of an approved request; only who requested it can, for a day", JSON: "the file's name", Missing: whichRequest,
		Examples: []string{"statements original save 019ab3c0-0000-7000-8000-000000000000 --out mtn-2026-11-20.csv"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&out, "out", "", "the new file; only its owner can read it")
		},
		Check: func(*cli.Meta) error {
			if out == "" {
				return cli.Usage("say where to: --out FILE")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			err = newFile(out, func(w io.Writer) error {
				return intake.ReadOriginal(ctx, m.Pool, keys, whoever(by), m.Args[0], m.Now, w)
			})
			if err != nil {
				return err
			}
			return m.Show(render.Object{"file", out}, func(p *render.Page) {
				p.Say("Saved to %s. It has names and numbers of payers: delete it when you have read it.", out)
			})
		},
	}
}

// newFile makes a file that only its owner can read, with what write writes. It exists with its name
// only if all was written. It replaces no file.
func newFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".quittance-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err != nil { // fails if there is such a file
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// listOf is the command `list` below a command of statements. It lists what all agencies have, or the
// one that --agency names; tenant is its id, empty for all.
func listOf(short, parent string, show func(ctx context.Context, m *cli.Meta, tenant string, s *registry.Snapshot) error) cli.Command {
	var agency string
	return cli.Command{
		Use: "list", Short: short, JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{parent + " list", parent + " list --agency impots --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "of this agency, by slug or id")
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			tenant, err := access.AgencyID(ctx, m, agency)
			if err != nil {
				return err
			}
			s, err := registry.Read(ctx, m.Pool)
			if err != nil {
				return err
			}
			return show(ctx, m, tenant, s)
		},
	}
}

func listOriginals() cli.Command {
	const short = "List the requests that wait for approval, and those whose file can be read"
	return listOf(short, "statements original", func(ctx context.Context, m *cli.Meta, tenant string, s *registry.Snapshot) error {
		list, err := intake.OriginalRequests(ctx, m.Pool, tenant, m.Now)
		if err != nil {
			return err
		}
		return m.Show(render.Mapped(list, func(r intake.OriginalRequest) render.Object { return requestJSON(r, s.Agencies[r.AgencyID].Slug) }), func(p *render.Page) {
			p.Table("no request waits, and no file can be read", "REQUEST,AGENCY,MODE,ACCOUNT,IMPORT,REASON,REQUESTED BY,APPROVED BY,UNTIL", render.Mapped(list, func(r intake.OriginalRequest) []any {
				return []any{r.ID, s.Agencies[r.AgencyID].Slug, registry.Mode(r.Live), r.Code, r.ImportID, r.Reason, r.RequestedBy, render.OrDash(r.ApprovedBy), r.Until().Format(time.RFC3339)}
			}))
		})
	})
}
