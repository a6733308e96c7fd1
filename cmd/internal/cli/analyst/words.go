package analyst

import (
	"quittance/cmd/internal/cli"
	"quittance/internal/analysts"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	analysts.CodeName:             cli.Filled("must be at most 63 lower-case letters, digits and hyphens, beginning with a letter"),
	analysts.CodeNameTaken:        cli.Filled("ClickHouse has a user {name} that is no analyst of ours; choose another name"),
	analysts.CodeOtherAgency:      cli.Filled("the analyst {name} reads the rows of {agency}; choose another name, or end that one with `quittance analysts revoke {name}`"),
	analysts.CodeUnknown:          cli.Filled("there is no analyst {name}; `quittance analysts list` shows them"),
	analysts.CodeNotAdministrator: cli.Filled("ClickHouse's user {user} may not make users, row policies, databases and views; name an administrator in the address of --clickhouse (docs/analysts.md, \"Connecting\")"),
	analysts.CodeSchema:           cli.Filled("ClickHouse's tables or views are not those of this build: {objects}; run `quittance migrate`"),
	analysts.CodeUnprotected:      cli.Filled("ClickHouse does not apply the row policies as they were made, on {tables}; the analyst can read nothing. Check whether somebody changes policies at the same time, or whether several servers share no users, and try again"),
}
