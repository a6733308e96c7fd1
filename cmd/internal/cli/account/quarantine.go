package account

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cases"
	"quittance/internal/intake"
	"quittance/internal/registry"
	"quittance/internal/statements"
)

// whoever is the person of a command, for the noun of statements.
func whoever(by cases.By) intake.By { return intake.By{Staff: by.Staff, Origin: by.Origin} }

func dismissStatement() cli.Command {
	return ofOne(cli.Command{
		Use: "dismiss IMPORT", Short: "End the quarantine of a file: the accepted statement was right, and nothing of the file counts",
		Missing:  "say which import: {usage}, the id of a file in quarantine; `quittance statements list` shows them",
		Examples: []string{`statements dismiss 019ab3c0-0000-7000-8000-000000000000 --reason "MTN confirmed the first file on 2026-11-23"`},
	}, func(ctx context.Context, m *cli.Meta, by cases.By, reason string) error {
		return intake.Dismiss(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], reason, m.Now)
	}, string(intake.Dismissed), "Import %s is dismissed. The file is kept; the accepted statement stands. Take it back with `quittance statements reopen`.")
}

func reopenStatement() cli.Command {
	return ofOne(cli.Command{
		Use: "reopen IMPORT", Short: "Take back the dismissal of a file, while the file is kept: it is in quarantine again",
		Missing:  "say which import: {usage}, the id of a dismissed file; `quittance statements list` shows them",
		Examples: []string{`statements reopen 019ab3c0-0000-7000-8000-000000000000 --reason "MTN withdrew the first file on 2026-11-25"`},
	}, func(ctx context.Context, m *cli.Meta, by cases.By, reason string) error {
		return intake.Reopen(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], reason, m.Now)
	}, string(statements.VerdictQuarantined), "Import %s is in quarantine again: dismiss it, or have it released by two people.")
}

// ofOne completes a command by which one person decides about a file.
func ofOne(c cli.Command, decide func(ctx context.Context, m *cli.Meta, by cases.By, reason string) error, state, said string) cli.Command {
	var reason string
	c.JSON, c.Keyed = "the import's id and state", true
	c.Flags = func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") }
	c.Operate = func(ctx context.Context, m *cli.Meta) error {
		by, err := access.Person(ctx, m)
		if err != nil {
			return err
		}
		if err := decide(ctx, m, by, reason); err != nil {
			return err
		}
		return m.Show(render.Object{"import_id", m.Args[0], "state", state}, func(p *render.Page) { p.Say(said, m.Args[0]) })
	}
	return c
}

func releases() cli.Command {
	return cli.Command{
		Use: "release", Short: "Release a file from quarantine; two people agree to it, because it takes in money",
		Commands: []cli.Command{requestRelease(), approveRelease(), rejectRelease(), listReleases()},
	}
}

const whichRelease = "say which release: {usage}, its id; `quittance statements release list` shows them"

func releaseJSON(r intake.Release, agency string) render.Object {
	var decided any
	if !r.DecidedAt.IsZero() {
		decided = r.DecidedAt
	}
	return render.Object{
		"release_id", r.ID, "import_id", r.ImportID, "agency", agency, "mode", registry.Mode(r.Live), "account", r.Code, "state", string(r.State), "reason", r.Reason,
		"requested_by", r.RequestedBy, "requested_at", r.RequestedAt, "decided_by", render.OrNone(r.DecidedBy), "decided_at", decided, "until", r.Until(),
		"statements", render.Mapped(r.Statements, factsJSON),
	}
}

// ofRelease completes a command by which a person takes a step of a release. next says what comes next.
func ofRelease(c cli.Command, take func(ctx context.Context, m *cli.Meta, by cases.By) (intake.Release, error), next func(r intake.Release) string) cli.Command {
	c.JSON, c.Keyed = "the release", true
	c.Operate = func(ctx context.Context, m *cli.Meta) error {
		by, err := access.Person(ctx, m)
		if err != nil {
			return err
		}
		r, err := take(ctx, m, by)
		if err != nil {
			return err
		}
		s, err := registry.Read(ctx, m.Pool)
		if err != nil {
			return err
		}
		return m.Show(releaseJSON(r, s.Agencies[r.AgencyID].Slug), func(p *render.Page) {
			p.Table("", "STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING", render.Mapped(r.Statements, factsRow))
			p.Say("%s", next(r))
		})
	}
	return c
}

func requestRelease() cli.Command {
	var reason string
	return ofRelease(cli.Command{
		Use: "request IMPORT", Short: "Request to release a file from quarantine; another person approves it within a day",
		Long: `Request to release a file from quarantine: it is right. When another person approves it, it is accepted if it is imported again within a day, and lines
that differ from the accepted statement become breaks. Of an accepted import it means that an earlier version of the account's last statement is the last one
again; nothing is imported then.`,
		Missing:  "say which import: {usage}, the id of a file in quarantine; `quittance statements list` shows them",
		Examples: []string{`statements release request 019ab3c0-0000-7000-8000-000000000000 --reason "MTN corrected line 7 on 2026-11-23"`},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
	}, func(ctx context.Context, m *cli.Meta, by cases.By) (intake.Release, error) {
		return intake.RequestRelease(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], reason, m.Now)
	}, func(r intake.Release) string {
		return fmt.Sprintf("Release %s waits until %s. Another person approves it with `quittance statements release approve %[1]s`.", r.ID, render.Moment(r.Until()))
	})
}

func approveRelease() cli.Command {
	return ofRelease(cli.Command{
		Use: "approve RELEASE", Short: "Approve the release of a file from quarantine", Missing: whichRelease,
		Examples: []string{"statements release approve 019ab3c0-0000-7000-8000-000000000000"},
	}, func(ctx context.Context, m *cli.Meta, by cases.By) (intake.Release, error) {
		return intake.ApproveRelease(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], m.Now)
	}, func(r intake.Release) string {
		return fmt.Sprintf("Import %s is released. If its file was in quarantine, import it again until %s: it is accepted, and lines that differ from the accepted statement become breaks.", r.ImportID, render.Moment(r.Until()))
	})
}

func rejectRelease() cli.Command {
	return ofRelease(cli.Command{
		Use: "reject RELEASE", Short: "Reject the release of a file; whoever requested it takes it back so", Missing: whichRelease,
		Examples: []string{"statements release reject 019ab3c0-0000-7000-8000-000000000000"},
	}, func(ctx context.Context, m *cli.Meta, by cases.By) (intake.Release, error) {
		return intake.RejectRelease(ctx, m.Pool, m.Keys, whoever(by), m.Args[0], m.Now)
	}, func(r intake.Release) string {
		return fmt.Sprintf("The release of import %s is rejected.", r.ImportID)
	})
}

func listReleases() cli.Command {
	const short = "List the releases of files, but for those that were accepted afterwards"
	return listOf(short, "statements release", func(ctx context.Context, m *cli.Meta, tenant string, s *registry.Snapshot) error {
		list, err := intake.Releases(ctx, m.Pool, tenant)
		if err != nil {
			return err
		}
		return m.Show(render.Mapped(list, func(r intake.Release) render.Object { return releaseJSON(r, s.Agencies[r.AgencyID].Slug) }), func(p *render.Page) {
			p.Table("no release of a file waits, or was decided", "RELEASE,AGENCY,MODE,ACCOUNT,IMPORT,REASON,REQUESTED BY,STATE,BY", render.Mapped(list, func(r intake.Release) []any {
				return []any{r.ID, s.Agencies[r.AgencyID].Slug, registry.Mode(r.Live), r.Code, r.ImportID, r.Reason, r.RequestedBy, string(r.State), render.OrDash(r.DecidedBy)}
			}))
		})
	})
}
