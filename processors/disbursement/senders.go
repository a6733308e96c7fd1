package disbursement

import "quittance/disbursement"

// The senders of commands. Each is a client of Kafka that may write disbursement.commands and has a key of its own
// (docs/design/rights.md, "Commands and bodies").
const (
	SenderOperator = "operator"
	SenderOffice   = "office"
	SenderDisburse = "disburse"
	SenderMatch    = "match"
	SenderERP      = "erp"
)

// Senders returns all senders.
func Senders() []string {
	return []string{SenderOperator, SenderOffice, SenderDisburse, SenderMatch, SenderERP}
}

// sendersOf is the one table of who may send which command. A command that is not in it may be sent by nobody. What
// releases money is signed by people besides, over the batch as it is: no sender alone can have a batch paid.
func sendersOf(do disbursement.Action) []string {
	switch do := do.(type) {
	case disbursement.Open, disbursement.AddLines, disbursement.Seal, disbursement.Discard:
		return []string{SenderOperator, SenderOffice}
	case disbursement.Approve, disbursement.Reject, disbursement.Release, disbursement.Lift, disbursement.Settle:
		return []string{SenderOffice}
	case disbursement.Recall, disbursement.SetHold, disbursement.Stop, disbursement.Retry, disbursement.Cancel,
		disbursement.Acknowledge, disbursement.TryAccount, disbursement.SetPolicy, disbursement.Enrol, disbursement.Revoke:
		return []string{SenderOperator, SenderOffice}
	case disbursement.Word:
		switch do.Source {
		case disbursement.FromRequest, disbursement.FromEnquiry:
			return []string{SenderDisburse}
		case disbursement.FromStatement:
			switch do.Kind { //nolint:exhaustive // what a statement can say
			case disbursement.WordPaid, disbursement.WordReturned, disbursement.WordNoDebit, disbursement.WordNoProof, disbursement.WordNoReturn:
				return []string{SenderMatch}
			}
		case disbursement.FromCallback: // nobody hears these words yet
		}
	case disbursement.ERPSame:
		return []string{SenderERP}
	case disbursement.Tick: // the processor's own
	}
	return nil
}
