package mapping

import (
	"quittance/checkout"
	"quittance/schemas/record"
)

// fromCashinCommand converts the type and the details of a command of the deprecated
// cash-in surface.
func fromCashinCommand(r *record.Command, do checkout.Action) {
	r.Cashin = &record.CashinEntry{}
	switch do := do.(type) {
	case checkout.InitCheckout:
		r.Type, r.Cashin.Session = CommandInitCheckout, new(FromSession(do.Session))
	case checkout.PartnerPay:
		r.Type, r.Cashin.Session, r.Collect = CommandPartnerPay, new(FromSession(do.Session)), new(fromCollect(do.Collect))
		if do.Word != nil {
			r.Cashin.WordCorrelationID, r.Cashin.WordPartition = do.Word.CorrelationID, do.Word.Partition
		}
	case checkout.LookUp:
		r.Type, r.Cashin.Number = CommandLookUp, do.Number
	}
}

// toCashinCommand converts a command of the deprecated cash-in surface. It returns nil if
// the type is unknown or details are missing.
func toCashinCommand(r *record.Command) checkout.Action {
	payment := r.Cashin.Session != nil && r.Cashin.Session.Cashin != nil
	switch {
	case r.Type == CommandInitCheckout && payment:
		return checkout.InitCheckout{Session: ToSession(r.Cashin.Session)}
	case r.Type == CommandPartnerPay && payment && r.Collect != nil:
		do := checkout.PartnerPay{Session: ToSession(r.Cashin.Session), Collect: toCollect(r.Collect)}
		if r.Cashin.WordCorrelationID != "" {
			do.Word = &checkout.ReplyTo{CorrelationID: r.Cashin.WordCorrelationID, Partition: r.Cashin.WordPartition}
		}
		return do
	case r.Type == CommandLookUp:
		return checkout.LookUp{Number: r.Cashin.Number}
	}
	return nil
}
