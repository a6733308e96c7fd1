// Package batches converts between the domain of disbursement batches (package disbursement) and the records of its topics
// (package schemas/record). It decides nothing. Program schemas/mapping/gen generates the conversions that copy field for
// field.
package batches

import (
	"fmt"

	"quittance/disbursement"
	"quittance/schemas/record"
)

// Types of commands on disbursement.commands.
const (
	CommandOpen        = "batch.open"
	CommandAddLines    = "batch.add_lines"
	CommandSeal        = "batch.seal"
	CommandDiscard     = "batch.discard"
	CommandApprove     = "batch.approve"
	CommandReject      = "batch.reject"
	CommandRecall      = "batch.recall"
	CommandRelease     = "batch.release"
	CommandERPSame     = "batch.erp_same"
	CommandHold        = "batch.hold"
	CommandLift        = "batch.lift"
	CommandStop        = "batch.stop"
	CommandRetry       = "line.retry"
	CommandCancel      = "line.cancel"
	CommandSettle      = "line.settle"
	CommandAcknowledge = "line.acknowledge"
	CommandTryAccount  = "account.try"
	CommandWord        = "line.word"
	CommandPolicy      = "agency.set_policy"
	CommandEnrol       = "agency.enrol"
	CommandRevoke      = "agency.revoke"
)

// FromCommand converts a command. A Tick has no record: its error wraps disbursement.ErrUnknownCommand.
func FromCommand(c disbursement.Command) (*record.DisbursementCommand, error) {
	r := &record.DisbursementCommand{TenantID: c.TenantID, Livemode: c.Live, Batch: c.Batch, Registry: c.Registry, IssuedAt: c.At}
	if c.ReplyTo != nil {
		r.CorrelationID, r.ReplyPartition = c.ReplyTo.CorrelationID, c.ReplyTo.Partition
	}
	switch do := c.Do.(type) {
	case disbursement.Open:
		r.Type, r.Open = CommandOpen, new(fromOpen(do))
	case disbursement.AddLines:
		r.Type, r.Lines = CommandAddLines, new(fromAddLines(do))
	case disbursement.Seal:
		r.Type, r.Seal = CommandSeal, new(fromSeal(do))
	case disbursement.Settle:
		r.Type, r.Settle = CommandSettle, &record.SettleLine{
			Position: int32(do.Position), Paid: do.Paid, Reference: do.Reference, Signed: signatures(do.Signed[:]...), //nolint:gosec // a position of a line
		}
	case disbursement.Word:
		r.Type, r.Word = CommandWord, new(fromWord(do))
	case disbursement.SetPolicy:
		r.Type, r.Policy = CommandPolicy, new(fromSetPolicy(do))
	case disbursement.Enrol:
		r.Type, r.Enrol = CommandEnrol, new(fromEnrol(do))
	case disbursement.Revoke:
		r.Type, r.Revoke = CommandRevoke, new(fromRevoke(do))
	default:
		if r.Type, r.Step = fromStep(c.Do); r.Step == nil {
			return nil, fmt.Errorf("encoding command %T: %w", c.Do, disbursement.ErrUnknownCommand)
		}
	}
	return r, nil
}

// fromStep converts the short commands, whose details share a record.
func fromStep(do disbursement.Action) (kind string, r *record.BatchStep) {
	switch do := do.(type) {
	case disbursement.Discard:
		return CommandDiscard, &record.BatchStep{By: do.By}
	case disbursement.Approve:
		return CommandApprove, &record.BatchStep{Level: int32(do.Level), Signed: signatures(do.Signed)} //nolint:gosec // a small number
	case disbursement.Reject:
		return CommandReject, &record.BatchStep{Reason: do.Reason, Signed: signatures(do.Signed)}
	case disbursement.Recall:
		return CommandRecall, &record.BatchStep{By: do.By}
	case disbursement.Release:
		return CommandRelease, &record.BatchStep{Signed: signatures(do.Signed)}
	case disbursement.ERPSame:
		return CommandERPSame, &record.BatchStep{AskedAt: do.AskedAt, Same: do.Same}
	case disbursement.SetHold:
		return CommandHold, &record.BatchStep{By: do.By, Reason: do.Reason}
	case disbursement.Lift:
		return CommandLift, &record.BatchStep{Signed: signatures(do.Signed[:]...)}
	case disbursement.Stop:
		return CommandStop, &record.BatchStep{By: do.By}
	case disbursement.Retry:
		return CommandRetry, &record.BatchStep{By: do.By, Position: int32(do.Position)} //nolint:gosec // a position of a line
	case disbursement.Cancel:
		return CommandCancel, &record.BatchStep{By: do.By, Position: int32(do.Position)} //nolint:gosec // a position of a line
	case disbursement.TryAccount:
		return CommandTryAccount, &record.BatchStep{By: do.By, Account: do.Account}
	case disbursement.Acknowledge:
		return CommandAcknowledge, &record.BatchStep{By: do.By, Position: int32(do.Position)} //nolint:gosec // a position of a line
	}
	return "", nil
}

// ToCommand converts a command. If its type is unknown, or its details are missing, the error wraps
// disbursement.ErrUnknownCommand.
func ToCommand(r *record.DisbursementCommand) (disbursement.Command, error) {
	c := disbursement.Command{At: r.IssuedAt, TenantID: r.TenantID, Live: r.Livemode, Batch: r.Batch, Registry: r.Registry}
	if r.CorrelationID != "" {
		c.ReplyTo = &disbursement.ReplyTo{CorrelationID: r.CorrelationID, Partition: r.ReplyPartition}
	}
	switch {
	case r.Type == CommandOpen && r.Open != nil:
		c.Do = toOpen(r.Open)
	case r.Type == CommandAddLines && r.Lines != nil:
		c.Do = toAddLines(r.Lines)
	case r.Type == CommandSeal && r.Seal != nil:
		c.Do = toSeal(r.Seal)
	case r.Type == CommandSettle && r.Settle != nil:
		c.Do = disbursement.Settle{
			Position: int(r.Settle.Position), Paid: r.Settle.Paid, Reference: r.Settle.Reference,
			Signed: [2]disbursement.Signed{signature(r.Settle.Signed, 0), signature(r.Settle.Signed, 1)},
		}
	case r.Type == CommandWord && r.Word != nil:
		c.Do = toWord(r.Word)
	case r.Type == CommandPolicy && r.Policy != nil:
		c.Do = toSetPolicy(r.Policy)
	case r.Type == CommandEnrol && r.Enrol != nil:
		c.Do = toEnrol(r.Enrol)
	case r.Type == CommandRevoke && r.Revoke != nil:
		c.Do = toRevoke(r.Revoke)
	case r.Step != nil:
		c.Do = toStep(r.Type, r.Step)
	}
	if c.Do == nil {
		return disbursement.Command{}, fmt.Errorf("decoding command %q: %w", r.Type, disbursement.ErrUnknownCommand)
	}
	return c, nil
}

func toStep(kind string, r *record.BatchStep) disbursement.Action {
	switch kind {
	case CommandDiscard:
		return disbursement.Discard{By: r.By}
	case CommandApprove:
		return disbursement.Approve{Level: int(r.Level), Signed: signature(r.Signed, 0)}
	case CommandReject:
		return disbursement.Reject{Reason: r.Reason, Signed: signature(r.Signed, 0)}
	case CommandRecall:
		return disbursement.Recall{By: r.By}
	case CommandRelease:
		return disbursement.Release{Signed: signature(r.Signed, 0)}
	case CommandERPSame:
		return disbursement.ERPSame{AskedAt: r.AskedAt, Same: r.Same}
	case CommandHold:
		return disbursement.SetHold{By: r.By, Reason: r.Reason}
	case CommandLift:
		return disbursement.Lift{Signed: [2]disbursement.Signed{signature(r.Signed, 0), signature(r.Signed, 1)}}
	case CommandStop:
		return disbursement.Stop{By: r.By}
	case CommandRetry:
		return disbursement.Retry{By: r.By, Position: int(r.Position)}
	case CommandCancel:
		return disbursement.Cancel{By: r.By, Position: int(r.Position)}
	case CommandTryAccount:
		return disbursement.TryAccount{By: r.By, Account: r.Account}
	case CommandAcknowledge:
		return disbursement.Acknowledge{By: r.By, Position: int(r.Position)}
	}
	return nil
}

func signatures(signed ...disbursement.Signed) (out []record.PasskeySignature) {
	for _, s := range signed {
		out = append(out, fromSigned(s))
	}
	return out
}

// signature returns a signature of a command; an empty one, which proves nothing, if the command has none.
func signature(signed []record.PasskeySignature, i int) disbursement.Signed {
	if i >= len(signed) {
		return disbursement.Signed{}
	}
	return toSigned(&signed[i])
}

// Reply returns the answer to the request that waits at to.
func Reply(to disbursement.ReplyTo, a disbursement.Answer) *record.DisbursementReply {
	r := FromAnswer(a)
	r.CorrelationID = to.CorrelationID
	return &r
}

// hashBytes returns the bytes of a hash; nil for the zero hash.
func hashBytes[H ~[32]byte](h H) []byte {
	if h == (H{}) {
		return nil
	}
	return h[:]
}

// hashOf returns the hash with these bytes.
func hashOf[H ~[32]byte](b []byte) (h H) {
	copy(h[:], b)
	return h
}
