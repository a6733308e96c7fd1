package mapping

import (
	"time"

	"quittance/checkout"
	"quittance/schemas/record"
)

// fromCashinCommand converts the type and the details of a command of the deprecated
// cash-in surface.
func fromCashinCommand(r *record.Command, do checkout.Action) {
	r.Cashin = &record.CashinEntry{}
	switch do := do.(type) {
	case checkout.InitCheckout:
		s := FromSession(do.Session)
		r.Type, r.Cashin.Session = CommandInitCheckout, &s
	case checkout.PartnerPay:
		s := FromSession(do.Session)
		r.Type, r.Cashin.Session, r.Collect = CommandPartnerPay, &s, fromCollect(do.Collect)
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

func fromCollect(do checkout.Collect) *record.StartCollection {
	return &record.StartCollection{
		CollectionID: do.CollectionID, OfferID: do.OfferID, Account: do.Account, PayerSealed: do.PayerSealed, Payer: do.Payer, PayerMasked: do.PayerMasked, Total: do.Total,
		ApprovalWindowMs: do.ApprovalWindow.Milliseconds(), SendWithinMs: do.SendWithin.Milliseconds(), Language: do.Language, ByReference: do.ByReference,
	}
}

func toCollect(r *record.StartCollection) checkout.Collect {
	return checkout.Collect{
		CollectionID: r.CollectionID, OfferID: r.OfferID, Account: r.Account, PayerSealed: r.PayerSealed, Payer: r.Payer, PayerMasked: r.PayerMasked, Total: r.Total,
		ApprovalWindow: time.Duration(r.ApprovalWindowMs) * time.Millisecond, SendWithin: time.Duration(r.SendWithinMs) * time.Millisecond, Language: r.Language, ByReference: r.ByReference,
	}
}

func fromCashin(c *checkout.Cashin) *record.Cashin {
	if c == nil {
		return nil
	}
	return &record.Cashin{
		Kind: string(c.Kind), PaymentID: c.PaymentID, Number: c.Number, Type: c.Type, Provider: c.Provider, Items: c.Items,
		WebhookURL: c.WebhookURL, ContactOf: c.ContactOf,
	}
}

func toCashin(r *record.Cashin) *checkout.Cashin {
	if r == nil {
		return nil
	}
	return &checkout.Cashin{
		Kind: checkout.CashinKind(r.Kind), PaymentID: r.PaymentID, Number: r.Number, Type: r.Type, Provider: r.Provider, Items: r.Items,
		WebhookURL: r.WebhookURL, ContactOf: r.ContactOf,
	}
}
