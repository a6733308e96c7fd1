package program

import (
	"slices"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/account"
	"quittance/cmd/internal/cli/acl"
	"quittance/cmd/internal/cli/analyst"
	"quittance/cmd/internal/cli/application"
	"quittance/cmd/internal/cli/audit"
	"quittance/cmd/internal/cli/batch"
	"quittance/cmd/internal/cli/clerk"
	"quittance/cmd/internal/cli/config"
	"quittance/cmd/internal/cli/decision"
	"quittance/cmd/internal/cli/delivery"
	"quittance/cmd/internal/cli/doctor"
	"quittance/cmd/internal/cli/erase"
	"quittance/cmd/internal/cli/erpcheck"
	"quittance/cmd/internal/cli/grant"
	"quittance/cmd/internal/cli/job"
	"quittance/cmd/internal/cli/journaling"
	"quittance/cmd/internal/cli/key"
	"quittance/cmd/internal/cli/link"
	"quittance/cmd/internal/cli/listening"
	"quittance/cmd/internal/cli/mapping"
	"quittance/cmd/internal/cli/operatorcase"
	"quittance/cmd/internal/cli/partner"
	"quittance/cmd/internal/cli/period"
	"quittance/cmd/internal/cli/readmodel"
	"quittance/cmd/internal/cli/receipt"
	"quittance/cmd/internal/cli/replay"
	"quittance/cmd/internal/cli/reporting"
	"quittance/cmd/internal/cli/row"
	"quittance/cmd/internal/cli/secrets"
	"quittance/cmd/internal/cli/session"
	"quittance/cmd/internal/cli/setup"
	"quittance/cmd/internal/cli/staff"
)

// New completes a program with the commands of the service, before those that it has. more are
// further roles for `doctor`; the first is its default.
func New(p cli.Program, more ...doctor.Role) cli.Program {
	p.Words = words
	p.Groups = slices.Concat([]cli.Group{
		{Title: "Roles of the service:", Commands: roleCommands()},
		{Title: "To set up and operate it:", Commands: []cli.Command{
			setup.MigrateCommand(), setup.SeedCommand(), config.Command(), doctor.Command(more), session.Command(), key.Command(), partner.Command(), clerk.Command(), staff.Command(), operatorcase.Command(), batch.Command(), decision.Command(), audit.Command(), application.Apps(), application.Origins(), mapping.Command(),
			account.Accounts(), account.Statements(), period.Periods(), period.Chain(), link.Command(), delivery.Endpoints(), erpcheck.Command(), receipt.Command(), delivery.Deliveries(), job.Command(),
			replay.Replay(), replay.Rebuild(), journaling.Command(), readmodel.Command(), reporting.Command(), analyst.Command(), erase.Command(), secrets.Command(), row.Command(), acl.Command(), grant.Command(),
		}},
	}, p.Groups)
	if !p.Options.Developer() { // a developer's program has its own `listen`
		p.Groups = append(p.Groups, cli.Group{Title: "To develop against it:", Commands: []cli.Command{listening.Command()}})
	}
	return p
}
