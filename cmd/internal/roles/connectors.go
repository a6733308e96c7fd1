package roles

import (
	"context"
	"errors"

	"quittance/ingress/callbacks"
	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/connector/all"
	readmodel "quittance/internal/sessions"
)

// connectors returns the connectors by the names of their operators and by the ids of the
// offers that these serve.
func (b *Base) connectors() (byOperator, byOffer map[string]connector.Connector, err error) {
	operators := all.Operators()
	byOperator, err = operators.Connect(connector.Config{Now: b.Now})
	return byOperator, operators.ByOffer(byOperator), err
}

// payoutConnectors returns the connectors of the operators that pay people, by the operators' names.
func (b *Base) payoutConnectors() (map[string]connector.PayoutConnector, error) {
	return all.Operators().ConnectPayouts(connector.Config{Now: b.Now})
}

// mobileMoney returns the offers of operators that reach payers by phone number.
func mobileMoney(byOffer map[string]connector.Connector) map[string]pages.MobileMoney {
	out := map[string]pages.MobileMoney{}
	for offer, c := range byOffer {
		if payers, ok := c.(connector.PayerReader); ok {
			operator, _ := all.Operators().Collecting(offer)
			out[offer] = pages.MobileMoney{Payer: payers, USSD: operator.Collector.USSD}
		}
	}
	return out
}

// merchantOfReport returns a function that finds what proves an operator's report about a
// collection: the account that made the collection, as it is configured now or as it was
// when it was replaced. For a collection that is not the session's it is the agency's
// present account; such a report changes no session and becomes an operator case.
func (b *Base) merchantOfReport(sessions *readmodel.Reader) func(ctx context.Context, operator, sessionID, collectionID string) (callbacks.Merchant, error) {
	operators := all.Operators()
	return func(ctx context.Context, operator, sessionID, collectionID string) (callbacks.Merchant, error) {
		s, err := sessions.ByID(ctx, sessionID)
		if err != nil {
			return callbacks.Merchant{}, err
		}
		var fingerprint string
		if asked := s.Collection; asked != nil && asked.ID == collectionID {
			if operators.Offers[asked.OfferID] != operator {
				return callbacks.Merchant{}, errors.New("the collection is another operator's")
			}
			fingerprint = asked.Account
		}
		account, ok := b.Registry.CollectingAccount(s.TenantID, s.Live, operator, fingerprint)
		if !ok {
			return callbacks.Merchant{}, errors.New("the agency does not have the account that the collection began with")
		}
		return callbacks.Merchant{Account: account.Account, Networks: account.CallbackNetworks, Live: s.Live}, nil
	}
}

// honoursLate returns a function that reports whether the policy of a session's agency
// honours late payments. It is false while the session cannot be read: staff decide then.
func (b *Base) honoursLate(sessions *readmodel.Reader) func(ctx context.Context, sessionID string) bool {
	return func(ctx context.Context, sessionID string) bool {
		s, err := sessions.ByID(ctx, sessionID)
		return err == nil && b.configuration().HonoursLate(s.TenantID)
	}
}
