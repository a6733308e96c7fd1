package account

import (
	"fmt"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"account.unknown": func(a operation.Args) string {
		if codes, _ := a["accounts"].([]string); len(codes) > 0 {
			return fmt.Sprintf("%v has no account of this code in the mode %v; it has: %s", a["agency"], a["mode"], render.Some(codes))
		}
		return fmt.Sprintf("%v has no accounts in the mode %v: add them to `accounts` of its registry file, and apply it with `quittance seed FILE`", a["agency"], a["mode"])
	},
	"statement.continued":                cli.Filled("statement {statement} continues it: withdraw import {import} first"),
	"statement.days_closed":              cli.Filled("it has days of a closed period: account {account} is closed until {to}; correct them in the next period"),
	"statement.not_accepted":             cli.Filled("the import is {state}, not accepted"),
	"statement.not_dismissed":            cli.Filled("the import is {state}, not dismissed"),
	"statement.not_quarantined":          cli.Filled("the import is {state}, not in quarantine"),
	"statement.positional":               cli.Filled("it cannot be released: lines of statement {statement} have no ids of their own, so that they would count twice; withdraw the accepted import, or dismiss this one and ask the bank for a statement of the difference"),
	"statement.reason_malformed":         cli.Filled("must be 1 to {most} printable characters: why"),
	"statement.original_deleted":         cli.Filled("the file of this import was deleted: the account keeps files for `keep_years` only"),
	"statement.release_decided":          cli.Filled("the release is {state}, by {name}"),
	"statement.release_over":             cli.Filled("the request is over: it waits for a day; make a new one with `quittance statements release request`"),
	"statement.release_second_person":    cli.Filled("whoever requested the release cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"statement.release_unknown":          cli.Filled("no release of this id is yours to decide; `quittance statements release list` shows them"),
	"statement.request_approved":         cli.Filled("{name} has approved the request already"),
	"statement.request_over":             cli.Filled("the request is over: a request waits for a day, and the file can be read for a day after the approval; make a new one with `quittance statements original request`"),
	"statement.request_unknown":          cli.Filled("no request of this id is yours to decide or to read; `quittance statements original list` shows the requests"),
	"statement.request_waits":            cli.Filled("another person must approve it first: `quittance statements original approve {request}`"),
	"statement.second_person":            cli.Filled("whoever requested the file cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"statement.withdrawal_decided":       cli.Filled("the withdrawal is {state}, by {name}"),
	"statement.file_not_ready":           cli.Filled("the file is opened for the page within seconds of the approval; ask again"),
	"statement.not_believed":             cli.Filled("this {what} is not carried out ({why}): it was not signed where the people's keys were checked, or it is of an earlier release, or its row was changed; reject a withdrawal or a release, and request again"),
	"statement.withdrawal_over":          cli.Filled("the request is over: it waits for a day; make a new one with `quittance statements withdraw request`"),
	"statement.withdrawal_second_person": cli.Filled("whoever requested the withdrawal cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"statement.withdrawal_unknown":       cli.Filled("no withdrawal of this id is yours to decide; `quittance statements withdraw list` shows them"),
	"statement.unknown":                  cli.Filled("no import has this id; `quittance statements list` shows them"),
}
