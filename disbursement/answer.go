package disbursement

import "fmt"

// Code says how a command ended.
type Code string

// The codes. All but CodeOK are refusals: nothing has changed, except where a command says otherwise.
const (
	CodeOK           Code = "ok"
	CodeMalformed    Code = "disbursement.malformed"
	CodeBatchUnknown Code = "batch.not_found"
	CodeLineUnknown  Code = "line.not_found"
	CodeStatus       Code = "batch.status"
	CodeLineStatus   Code = "line.status"
	CodeHeld         Code = "batch.held"
	CodeNotHeld      Code = "batch.not_held"
	CodeRegistryOld  Code = "registry.stale"
	CodeRefLive      Code = "batch.ref_live"
	CodeTooManyLive  Code = "batch.too_many_live"
	CodeNoPolicy     Code = "policy.missing"
	CodeScope        Code = "batch.line_ref_scope"
	CodeCurrency     Code = "batch.currency"
	CodeImport       Code = "lines.import"
	CodePosition     Code = "lines.position"
	CodeTooManyLines Code = "lines.too_many"
	CodeTooLarge     Code = "lines.too_large"
	CodeOrder        Code = "line.order"
	CodeText         Code = "line.text"
	CodeAmount       Code = "line.amount"
	CodeSum          Code = "batch.sum"
	CodeAccount      Code = "line.account"
	CodeRefTaken     Code = "line.ref_taken"
	CodeMustCorrect  Code = "line.must_correct"
	CodeNotCorrected Code = "line.not_correctable"
	CodeOtherContent Code = "batch.other_content"
	CodeEmpty        Code = "batch.empty"
	CodeNames        Code = "batch.names"
	CodeDate         Code = "batch.date"
	CodeDayLimit     Code = "policy.day_limit"
	CodeAboveTiers   Code = "policy.above_tiers"
	CodeTooFew       Code = "policy.too_few"
	CodePolicyFault  Code = "policy.fault"
	CodeLevel        Code = "approval.level"
	CodeNotListed    Code = "approval.not_listed"
	CodeMaker        Code = "approval.maker"
	CodeTwice        Code = "approval.twice"
	CodeNotInForce   Code = "approval.not_in_force"
	CodeNotSigned    Code = "approval.not_signed"
	CodeNeedsTwo     Code = "approval.needs_two"
	CodeNotMaker     Code = "batch.not_maker"
	CodeUnproven     Code = "line.unproven"
	CodeContested    Code = "line.contested"
	CodeAttempts     Code = "line.attempts"
	CodeCorrected    Code = "line.corrected"
	CodeOver         Code = "batch.over"
	CodeAttempt      Code = "word.attempt"
	CodeNoCase       Code = "line.no_case"
	CodeEvidence     Code = "case.reference"
	CodeUnderway     Code = "line.underway"
	// CodeAccountUnknown and CodeNotClosed refuse to try an account again.
	CodeAccountUnknown Code = "account.not_found"
	CodeNotClosed      Code = "account.not_closed"
	CodeRosterFault    Code = "roster.fault"
	CodePersonUnknown  Code = "roster.not_found"
	CodeKeyTaken       Code = "roster.key_taken"
	CodeNumberTaken    Code = "roster.number_taken"
)

// Refusal is why a command changes nothing: a code, the field that it is about and the mend.
type Refusal struct {
	Code        Code
	Field, Mend string
}

// RetryRefusals lists the codes with which a Retry of a line is refused, of a batch that is known.
func RetryRefusals() []Code {
	return []Code{CodeBatchUnknown, CodeLineUnknown, CodeOver, CodeLineStatus, CodeContested, CodeUnproven, CodeCorrected, CodeAttempts, CodeNotInForce, CodeRefLive, CodeTooManyLive}
}

// Answer is the answer to a command.
type Answer struct {
	// Refusal is nil if the command was carried out.
	Refusal *Refusal
	// Batch is the batch afterwards; nil where none is known.
	Batch *Batch
	// Replayed says that the command was carried out before.
	Replayed bool
}

// Code returns the code of the answer.
func (a Answer) Code() Code {
	if a.Refusal == nil {
		return CodeOK
	}
	return a.Refusal.Code
}

// refusals are the fields and the mends of refusals that have always the same.
var refusals = map[Code][2]string{
	CodeAccountUnknown: {"account", "name a payout account of the batch"},
	CodeNotClosed:      {"account", "the account is not closed: it tries its lines by itself"},
	CodeBatchUnknown:   {"batch", "name a batch of this agency and mode"},
	CodeLineUnknown:    {"position", "name a line of the batch"},
	CodeHeld:           {"batch", "lift the hold first, with two people"},
	CodeNotHeld:        {"batch", "the batch is not held: nothing is to be lifted"},
	CodeRegistryOld:    {"registry", "send the command again when this instance has the present registry"},
	CodeRefLive:        {"batch_ref", "recall or finish the live batch of this batch_ref, or use another one"},
	CodeTooManyLive:    {"batch_ref", fmt.Sprintf("finish or discard one of the agency's %d live batches", MaxLive)},
	CodeNoPolicy:       {"agency", "set the agency's policy of this mode, and wait until it is in force"},
	CodeCurrency:       {"currency", "use the currency of the agency's policy"},
	CodeImport:         {"import_id", "add the lines of the import that opened the batch"},
	CodePosition:       {"position", "add the lines that follow those of the batch"},
	CodeTooManyLines:   {"lines", fmt.Sprintf("give 1 to %d lines at once, and %d in all", MaxLinesAdded, MaxLines)},
	CodeTooLarge:       {"lines", fmt.Sprintf("give at most %d KiB at once, and %d KiB of a line", MaxBytesAdded>>10, MaxBytesSealed>>10)},
	CodeSum:            {"sum", "split the batch: its sum is above 2^53-1"},
	CodeOtherContent:   {"root", "the lines are not those that the sender counted: discard the batch and import it again"},
	CodeEmpty:          {"lines", "add lines before the batch is sealed"},
	CodeNames:          {"waiver", "check the payees' names as the policy demands, or say why they are not checked"},
	CodeDate:           {"date", "choose a date whose last day of payment is not over"},
	CodeDayLimit:       {"sum", "seal the batch on another day, or have the policy's day_limit raised"},
	CodeAboveTiers:     {"sum", "add a tier to the policy that reaches what the agency seals in this day"},
	CodeTooFew:         {"policy", "enrol more people with the roles of the policy; their passkeys count after 24 hours"},
	CodeLevel:          {"level", "approve at the level that lacks a person"},
	CodeNotListed:      {"person", "one of the people who were listed when the batch was sealed must sign"},
	CodeMaker:          {"person", "another person than the one who made the batch must sign, also through a delegate"},
	CodeTwice:          {"person", "another person must approve: this one has, or another one has in this one's place"},
	CodeNotInForce:     {"person", "a person in force must sign with a passkey that was enrolled at least 24 hours ago"},
	CodeNotSigned:      {"assertion", "sign this batch again on its page"},
	CodeNeedsTwo:       {"person", "two different people must sign"},
	CodeNotMaker:       {"person", "only the person who made the batch recalls it; others reject it"},
	CodeUnproven:       {"position", "wait for a statement that covers the day, or let two people decide"},
	CodeContested:      {"position", "let two people decide the line's case first"},
	CodeAttempts:       {"position", fmt.Sprintf("a line has at most %d attempts: pay it by a line that corrects it", MaxAttempts)},
	CodeCorrected:      {"position", "the line is paid again by another one, which corrects it"},
	CodeOver:           {"batch", "the batch is stopped or past its last day of payment: pay the line by one that corrects it"},
	CodeAttempt:        {"attempt", "name an attempt that was made"},
	CodeNoCase:         {"position", "the line has no case to decide"},
	CodeEvidence:       {"reference", "name the evidence"},
	CodeUnderway:       {"position", "a request to pay is under way: decide when it is answered, or ten minutes after it was made"},
	CodePersonUnknown:  {"person", "name a person of the agency"},
	CodeKeyTaken:       {"keys", "a passkey has one owner: enrol another one"},
	CodeNumberTaken:    {"number", "a staff number names one person: use the person's own"},
}

// refuse returns a refusal whose field and mend are always the same.
func refuse(c Code) Answer {
	text := refusals[c]
	return Answer{Refusal: &Refusal{c, text[0], text[1]}}
}

// refuseField returns a refusal about a field.
func refuseField(c Code, field, mend string) Answer { return Answer{Refusal: &Refusal{c, field, mend}} }

// refuseStatus says what a batch's status does not allow.
func refuseStatus(b *Batch, mend string) Answer {
	return refuseField(CodeStatus, "batch", fmt.Sprintf("the batch is %s: %s", b.Status, mend))
}
