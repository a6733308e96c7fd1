package operatorcase

import (
	"quittance/checkout"
	"quittance/cmd/internal/cli"
	"quittance/internal/cases"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"case.close_waits":            cli.Filled("a close of the account until {to}, proposed by {proposer}, waits in case {case}; approve it with `quittance cases approve {case}`, or end it with `quittance cases reject {case} --reason TEXT`"),
	"case.not_yours":              cli.Filled("the key in QUITTANCE_STAFF_KEY is of another agency; the agency's own staff or operations close its accounts"),
	"case.closed":                 cli.Filled("the case was closed at {at}: {resolution}; a sum has one exit only"),
	"case.no_break_to_match":      cli.Filled("{case} is no open break of the same account that you may see; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.no_proposal":            cli.Filled("the case has no proposal that waits; `quittance cases propose` makes one"),
	"case.due_returned":           cli.Filled("the money of this due was given back already; `quittance sessions show SESSION` shows which dues are left"),
	"case.due_unknown":            cli.Filled("is no transaction id of the session's dues; they are {dues}"),
	"case.refund_requested":       cli.Filled("the open case {id} asks for a refund of one of these dues already; end it first, or name other dues"),
	"case.not_paid":               cli.Filled("the session is not completed, or its money was given back already; there is nothing to refund"),
	"case.nothing_to_match":       cli.Filled("the break has rows on one side only; name the cases of the other breaks, separated by commas: `quittance cases list --kind break --state open` shows them"),
	"case.own_cash":               cli.Filled("the key in QUITTANCE_STAFF_KEY is of a person who took or gave back this cash as a clerk, or, for an account of the counters, who is a clerk of the agency; two other people resolve the case"),
	"decision.no_signing_key":     cli.Filled("decisions are signed with the installation's master keys, which this command has not: {why}"),
	"case.proposal_not_believed":  cli.Filled("proposal {number} cannot be approved ({code}): it was not signed where its proposer's key was checked, or the case has changed since, or it is of an earlier release; end it with `quittance cases reject` and propose again"),
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
	"case.not_asked_for":          cli.Filled("this money belongs to no payment that the service asked for, so it cannot complete a session; `refund` or `write_off` the case"),
	"case.too_little":             cli.Filled("{amount} {currency} (minor units) was reported, and {owed} {owed_currency} was owed: money that does not pay the session cannot complete it; `refund` or `write_off` the case"),
	"case.unknown":                cli.Filled("no case that you may see has this id; `quittance cases list` shows them, a new one after about a second"),
	"case.which_proposal":         cli.Filled("the case has had {number} proposals: say which with its number; `quittance cases show` lists them"),
}

// refusals says why what people agreed on was refused after its approval, by the codes of the processor
// and of the matcher.
var refusals = map[string]string{
	string(checkout.CodeUnsigned):        "a step is not signed where a person's key was checked: the row was written or changed by hand, is of an earlier release, or the master keys were replaced meanwhile; propose it again, and tell whoever guards the database if nobody knows of it",
	string(checkout.CodeOtherContent):    "the case or the proposal is another one than people agreed on; look at it again and propose it again",
	string(checkout.CodeOtherGroup):      "a person who agreed does not act for the agency",
	string(checkout.CodeSamePerson):      "one person took both steps",
	string(checkout.CodeNotInForce):      "a person who agreed was not in force at that time",
	string(checkout.CodeApprovalLapsed):  "it was approved, or would be carried out, more than 7 days late, or it is dated in the future; propose it again",
	string(checkout.CodeNotProven):       "no passkey of whoever proposed or approved has signed a step that needs it; propose it again and approve it on the staff pages, and tell whoever guards the database and the staff pages if nobody knows of it",
	string(checkout.CodeSessionNotFound): "the processor does not know the session",
	string(checkout.CodeCaseNotFound):    "the processor does not know the case",
	string(checkout.CodeCaseClosed):      "the case was closed before; a sum has one exit only",
	string(checkout.CodeCaseNotAllowed):  "the case does not allow it any more; look at it again and propose something else",
	string(checkout.CodeInFlight):        "another payment of the order runs; propose it again when that has ended",
	string(checkout.CodeDueInPayment):    "another session holds a due of this one; propose it again when that has ended",
	string(checkout.CodeDueUnknown):      "the session has no due that the case is about",
	string(checkout.CodeDueReturned):     "the money of one of these dues was given back before",
	string(checkout.CodeOrderPaid):       "another session has paid the order; refund the money",
	cases.RefusalChanged:                 "the rows have changed since it was proposed; a new case asks again (`quittance cases list --state open`)",
	cases.RefusalEnded:                   "the matcher had settled the rows before",
	"period.changed":                     "what people had approved has changed; propose the close again with `quittance periods close`",
	"period.closed":                      "the account was closed until a later day before",
	"period.day_malformed":               "the last day of the period is no day",
	"period.not_over":                    "the period is not over",
	"period.not_matched":                 "the matcher had not run since the end of the period; propose the close again",
	"period.quarantined":                 "a statement of the period is in quarantine (`quittance statements list`)",
	"period.import_pending":              "an import of a statement is under way or was interrupted; import its file again, then propose the close again",
	"period.statement_missing":           "no statement shows a day of the period; import it, then propose the close again",
	"period.statement_unproved":          "the row of an import says what no record in Kafka says; see what `quittance periods close` says of it",
	"period.rebuild_needed":              "an earlier release wrote rows of the period without their dues; run `quittance rebuild journal`, then propose the close again",
}

// refusal returns a code of a refusal, and what it means. It is empty for no code.
func refusal(code string) string {
	if text, ok := refusals[code]; ok {
		return code + ": " + text
	}
	return code
}
