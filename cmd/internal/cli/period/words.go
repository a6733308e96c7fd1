package period

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"period.changed":            cli.Filled("what people had approved has changed; propose the close again"),
	"period.closed":             cli.Filled("the account is closed until {to} already; choose a later day"),
	"period.day_malformed":      cli.Filled("must be a day, such as 2026-11-22"),
	"period.import_pending":     cli.Filled("an import of a statement is under way or was interrupted; run `quittance statements import` with its file again"),
	"period.not_matched":        cli.Filled("the matcher has not run since the end of the period: check that `quittance sink match` and `quittance sink journal` run, and try again after a minute"),
	"period.not_over":           cli.Filled("the period must end before today, which is {today} on the account"),
	"period.quarantined":        cli.Filled("the statement of import {import} is in quarantine; compare it with the accepted one (`quittance statements show {import}`); if that one is right, `quittance statements dismiss {import} --reason TEXT`; if this file is, `quittance statements release request {import} --reason TEXT`, have it approved, and import it again"),
	"period.rebuild_needed":     cli.Filled("an earlier release wrote rows of the period without their dues; run `quittance rebuild journal`, then propose the close again"),
	"period.statement_unproved": cli.Filled("import {import} is accepted in Postgres, and no record in Kafka says so: somebody has inserted or changed its row of statement_imports. Find out who, delete the row, and import its file again with `quittance statements import`"),
	"period.statement_missing":  cli.Filled("no statement shows {day}; import it with `quittance statements import`. If the operator had none that day, a later statement must be imported and what is expected of that day be explained"),
	"chain.nothing":             cli.Filled("nothing is known by this name; give a payment reference, an operator's reference, an order, a due, or a line as `quittance cases show` names it"),
}
