package cli

// caseWords has the texts for the codes of refused operations.
var caseWords = Words{
	"case.close_waits":            filled("a close of the account until {to}, proposed by {proposer}, waits in case {case}; approve it with `quittance cases approve {case}`, or end it with `quittance cases reject {case} --reason TEXT`"),
	"case.not_yours":              filled("the key in QUITTANCE_STAFF_KEY is of another agency; the agency's own staff or operations close its accounts"),
	"case.closed":                 filled("the case was closed at {at}: {resolution}; a sum has one exit only"),
	"case.no_break_to_match":      filled("{case} is no open break of the same account that you may see; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.no_proposal":            filled("the case has no proposal that waits; `quittance cases propose` makes one"),
	"case.not_paid":               filled("the session is not completed, or its money was given back already; there is nothing to refund"),
	"case.nothing_to_match":       filled("the break has rows on one side only; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.own_cash":               filled("the key in QUITTANCE_STAFF_KEY is of a person who took or gave back this cash as a clerk, or, for an account of the counters, who is a clerk of the agency; two other people resolve the case"),
	"case.proposal_over":          filled("proposal {number} is {state} and cannot be approved; make a new one with `quittance cases propose`"),
	"case.proposal_unknown":       filled("the case has {most} proposals, numbered from 1; `quittance cases show` lists them"),
	"case.proposal_waits":         filled("proposal {number} ({resolution}, by {proposer}) is {state}; end an open one with `quittance cases reject` before you make another"),
	"case.reason_malformed":       filled("must be 1 to {most} printable characters: why"),
	"case.reference_malformed":    filled("must be at most {most} printable characters"),
	"case.reference_missing":      filled("{resolution} needs what proves it: reference and date of the refund, the operator's letter, or the ERP's reference"),
	"case.resolution_not_allowed": filled("a case of kind {kind} is resolved by one of: {allowed}"),
	"case.second_person":          filled("whoever proposed the resolution cannot approve it: another person does, with another QUITTANCE_STAFF_KEY"),
	"case.sums_differ":            filled("the breaks differ by {difference} {currency} (minor units) together; what you match by hand must add up to zero: `explain` the rest in a case of its own"),
	"case.session_unknown":        filled("no session that you may see has this id; ids look like chs_… and are in webhooks and in the ministry API"),
	"case.unknown":                filled("no case that you may see has this id; `quittance cases list` shows them, a new one after about a second"),
	"case.which_proposal":         filled("the case has had {number} proposals: say which with its number; `quittance cases show` lists them"),
}
