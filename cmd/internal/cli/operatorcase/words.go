package operatorcase

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"case.close_waits":            cli.Filled("a close of the account until {to}, proposed by {proposer}, waits in case {case}; approve it with `quittance cases approve {case}`, or end it with `quittance cases reject {case} --reason TEXT`"),
	"case.not_yours":              cli.Filled("the key in QUITTANCE_STAFF_KEY is of another agency; the agency's own staff or operations close its accounts"),
	"case.closed":                 cli.Filled("the case was closed at {at}: {resolution}; a sum has one exit only"),
	"case.no_break_to_match":      cli.Filled("{case} is no open break of the same account that you may see; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.no_proposal":            cli.Filled("the case has no proposal that waits; `quittance cases propose` makes one"),
	"case.not_paid":               cli.Filled("the session is not completed, or its money was given back already; there is nothing to refund"),
	"case.nothing_to_match":       cli.Filled("the break has rows on one side only; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.own_cash":               cli.Filled("the key in QUITTANCE_STAFF_KEY is of a person who took or gave back this cash as a clerk, or, for an account of the counters, who is a clerk of the agency; two other people resolve the case"),
	"case.proposal_over":          cli.Filled("proposal {number} is {state} and cannot be approved; make a new one with `quittance cases propose`"),
	"case.proposal_unknown":       cli.Filled("the case has {most} proposals, numbered from 1; `quittance cases show` lists them"),
	"case.proposal_waits":         cli.Filled("proposal {number} ({resolution}, by {proposer}) is {state}; end an open one with `quittance cases reject` before you make another"),
	"case.reason_malformed":       cli.Filled("must be 1 to {most} printable characters: why"),
	"case.reference_malformed":    cli.Filled("must be at most {most} printable characters"),
	"case.reference_missing":      cli.Filled("{resolution} needs what proves it: reference and date of the refund, the operator's letter, or the ERP's reference"),
	"case.resolution_not_allowed": cli.Filled("a case of kind {kind} is resolved by one of: {allowed}"),
	"case.second_person":          cli.Filled("whoever proposed the resolution cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"case.sums_differ":            cli.Filled("the breaks differ by {difference} {currency} (minor units) together; what you match by hand must add up to zero: `explain` the rest in a case of its own"),
	"case.session_unknown":        cli.Filled("no session that you may see has this id; ids look like chs_… and are in webhooks and in the ministry API"),
	"case.unknown":                cli.Filled("no case that you may see has this id; `quittance cases list` shows them, a new one after about a second"),
	"case.which_proposal":         cli.Filled("the case has had {number} proposals: say which with its number; `quittance cases show` lists them"),
}
