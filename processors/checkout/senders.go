package checkout

import "quittance/checkout"

// The senders of commands. Each is a client of Kafka that may write checkout.commands and has a key of its
// own (docs/design/rights.md, "Commands and bodies").
const (
	SenderIngress  = "ingress"
	SenderCollect  = "collect"
	SenderERP      = "erp"
	SenderCases    = "cases"
	SenderOperator = "operator"
	SenderMatch    = "match"
)

// Senders returns all senders.
func Senders() []string {
	return []string{SenderIngress, SenderCollect, SenderERP, SenderCases, SenderOperator, SenderMatch}
}

// sendersOf is the one table of who may send which command. A command that is not in it may be sent by
// nobody. A row is as narrow as the parts that send: whoever takes one sender can do what this table says,
// and no more.
func sendersOf(do checkout.Action) []string {
	switch do := do.(type) {
	case checkout.Create, checkout.Cancel, checkout.Collect, checkout.Enquire,
		checkout.Reserve, checkout.Take, checkout.Release, checkout.Reverse,
		checkout.IssueToken, checkout.ConsumeToken,
		checkout.InitCheckout, checkout.PartnerPay, checkout.LookUp:
		return []string{SenderIngress}
	case checkout.Redirected:
		return []string{SenderCollect}
	case checkout.Outcome:
		switch do.Source {
		case checkout.SourceCallback:
			return []string{SenderIngress}
		case checkout.SourceRequest, checkout.SourceEnquiry:
			return []string{SenderCollect}
		case checkout.SourceCounter, checkout.SourceStaff, checkout.SourceStatement: // parts of a Take, a Resolve and a Credit, never commands
		}
	case checkout.Confirmed:
		return []string{SenderERP}
	case checkout.Credit, checkout.CreditWithdrawn:
		return []string{SenderMatch}
	case checkout.Resolve, checkout.NoteProposal:
		return []string{SenderCases}
	case checkout.OpenRefundRequest, checkout.Erase:
		return []string{SenderOperator}
	case checkout.Tick: // the processor's own
	}
	return nil
}
