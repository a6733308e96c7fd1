package cli

import "slices"

// New completes a program with the commands of the service, before those that it has. more are
// further roles for `doctor`; the first is its default.
func New(p Program, more ...DoctorRole) Program {
	p.Words = commonWords
	p.Groups = slices.Concat([]Group{
		{Title: "Roles of the service:", Commands: roleCommands()},
		{Title: "To set up and operate it:", Commands: []Command{
			migrate(), seed(), doctor(more), sessionsCommand(), keys(), cashinCommand(), clerks(), staff(), casesCommand(), apps(), origins(), mappings(),
			accounts(), statementsCommand(), periodsCommand(), chainCommand(), links(), endpoints(), erpCommand(), receiptsCommand(), deliveriesCommand(),
			replay(), rebuild(), reportCommand(), analystsCommand(), erase(), secrets(), acls(),
		}},
	}, p.Groups)
	return p
}
