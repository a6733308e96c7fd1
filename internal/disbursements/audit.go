package disbursements

import (
	"errors"

	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/operation"
)

// OutcomeUnknown is the outcome in the detail of the row of a command that had no answer in time.
const OutcomeUnknown = "unknown"

// Audited returns the row of the audit table about a command of a person, from what the processor has answered; ok is false
// for a command that has changed nothing. Pages and commands write the same rows. A command without an answer may have been
// carried out: its row says so.
func Audited(cmd disbursement.Command, a disbursement.Answer, err error) (e operation.Entry, ok bool) {
	unknown := errors.Is(err, commands.ErrUnavailable)
	if err != nil && !unknown || a.Refusal != nil || a.Replayed {
		return operation.Entry{}, false
	}
	e = operation.Entry{Subject: cmd.Batch, AgencyID: cmd.TenantID, Detail: map[string]any{"mode": disbursement.Mode(cmd.Live)}}
	if e.Subject == "" {
		e.Subject = cmd.TenantID
	}
	if unknown {
		e.Detail["outcome"] = OutcomeUnknown
	}
	switch do := cmd.Do.(type) {
	case disbursement.Approve:
		e.Action, e.Detail["level"] = "batch.approve", do.Level
	case disbursement.Reject:
		e.Action, e.Detail["reason"] = "batch.reject", do.Reason
	case disbursement.Release:
		e.Action = "batch.release"
	case disbursement.Recall:
		e.Action = "batch.recall"
	case disbursement.Seal:
		e.Action, e.Detail["count"], e.Detail["sum"] = "batch.seal", do.Count, do.Sum
	case disbursement.Discard:
		e.Action = "batch.discard"
	case disbursement.SetHold:
		e.Action, e.Detail["reason"] = "batch.hold", do.Reason
	case disbursement.Lift:
		e.Action, e.Detail["first"] = "batch.resume", do.Signed[0].Person
	case disbursement.Stop:
		e.Action = "batch.stop"
	case disbursement.Retry:
		e.Action, e.Detail["position"] = "batch.retry_line", do.Position
	case disbursement.Cancel:
		e.Action, e.Detail["position"] = "batch.cancel_line", do.Position
	case disbursement.Settle:
		e.Action, e.Detail["position"], e.Detail["paid"], e.Detail["reference"] = "batch.settle_line", do.Position, do.Paid, do.Reference
		e.Detail["first"] = do.Signed[0].Person
	case disbursement.Acknowledge:
		e.Action, e.Detail["position"] = "batch.acknowledge_line", do.Position
	case disbursement.TryAccount:
		e.Action, e.Detail["account"] = "batch.try_account", do.Account
	case disbursement.SetPolicy:
		e.Action = "batch.set_policy"
	case disbursement.Enrol:
		people := make([]string, len(do.People))
		for i, p := range do.People {
			people[i] = p.ID
		}
		e.Action, e.Detail["people"] = "batch.enrol", people
	case disbursement.Revoke:
		e.Action, e.Detail["person"] = "batch.revoke", do.Person
	default: // other steps of an import, which has one row, and words of operators
		return operation.Entry{}, false
	}
	return e, true
}
