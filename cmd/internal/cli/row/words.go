package row

import (
	"quittance/cmd/internal/cli"
	"quittance/internal/signed"
)

// Words has the texts for refusals of every command that changes rows that are signed.
var Words = cli.Words{
	"rows.made_anew":        cli.Filled("rows of {table} are not signed by hand, which would put a passkey or a role in force at once; delete the row with SQL, accept that with `quittance rows accept`, and invite the person again with `quittance staff invite STAFF --lost`"),
	signed.CodeNoKey:        cli.Filled("this changes rows that are signed, and these keys do not sign: run it with the master keys in QUITTANCE_MASTER_KEYS"),
	signed.CodeUnsigned:     cli.Filled("no row is signed yet: run `quittance migrate` with QUITTANCE_MASTER_KEYS first"),
	signed.CodeForged:       cli.Filled("the row {table} {key} is not as it was signed: somebody has changed it beside the service, and nothing was done. `quittance rows list` shows it; put it right, then `quittance rows sign {table} {key}`"),
	signed.CodeUnknown:      cli.Filled("{table} has no such row; `quittance rows list` shows the keys of those that do not verify"),
	signed.CodeUnknownTable: cli.Filled("the rows of no such table are signed; those of these are: {tables}"),
	signed.CodeChanged:      cli.Filled("the row {table} {key} has changed since it was shown, and nothing was done: give the command again and look at it"),
}
