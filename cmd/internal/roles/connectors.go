package roles

import (
	"context"
	"errors"

	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/connector/all"
	readmodel "quittance/internal/sessions"
)

// connectors by offer id.
func (b *Base) connectors() (map[string]connector.Connector, error) {
	return all.Operators().Connect(connector.Config{Now: b.Now})
}

// byOperator is the same by the operators' names.
func byOperator(connectors map[string]connector.Connector) map[string]connector.Connector {
	out := map[string]connector.Connector{}
	for _, c := range connectors {
		out[c.Operator()] = c
	}
	return out
}

// mobileMoney are the offers whose operators reach payers by their number.
func mobileMoney(connectors map[string]connector.Connector) map[string]pages.MobileMoney {
	out := map[string]pages.MobileMoney{}
	for _, operator := range all.Operators() {
		if payers, ok := connectors[operator.Offer].(connector.PayerReader); ok {
			out[operator.Offer] = pages.MobileMoney{Payer: payers, USSD: operator.USSD}
		}
	}
	return out
}

// accountOfReport finds the merchant account that an operator signs its reports about
// a collection with: the one that asked for the money, as it is configured now. If
// the collection is not the session's, it is the account that the agency has now:
// such a report changes no session, but becomes an operator case.
func (b *Base) accountOfReport(sessions *readmodel.Reader) func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error) {
	operators := all.Operators()
	return func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error) {
		s, err := sessions.ByID(ctx, sessionID)
		if err != nil {
			return nil, err
		}
		registered, ok := operators.Operator(operator)
		asked := s.Collection
		if asked != nil && asked.ID != collectionID {
			asked = nil
		}
		if !ok || asked != nil && asked.OfferID != registered.Offer {
			return nil, errors.New("the collection is another operator's")
		}
		account, ok := b.configuration().Account(s.TenantID, s.Live, registered.Offer)
		switch {
		case !ok:
			return nil, errors.New("the agency has no account for the offer")
		case asked != nil && asked.Account != "" && account.Fingerprint() != asked.Account:
			return nil, errors.New("the collection was begun with another account")
		}
		return account, nil
	}
}
