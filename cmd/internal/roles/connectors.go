package roles

import (
	"context"
	"errors"

	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/connector/all"
	readmodel "quittance/internal/sessions"
)

// connectors returns the connectors by offer id.
func (b *Base) connectors() (map[string]connector.Connector, error) {
	return all.Operators().Connect(connector.Config{Now: b.Now})
}

// byOperator returns the connectors by the names of their operators.
func byOperator(connectors map[string]connector.Connector) map[string]connector.Connector {
	out := map[string]connector.Connector{}
	for _, c := range connectors {
		out[c.Operator()] = c
	}
	return out
}

// mobileMoney returns the offers of operators that reach payers by phone number.
func mobileMoney(connectors map[string]connector.Connector) map[string]pages.MobileMoney {
	out := map[string]pages.MobileMoney{}
	for _, operator := range all.Operators() {
		if payers, ok := connectors[operator.Offer].(connector.PayerReader); ok {
			out[operator.Offer] = pages.MobileMoney{Payer: payers, USSD: operator.USSD}
		}
	}
	return out
}

// accountOfReport returns a function that finds the merchant account whose secret signs
// an operator's report about a collection. It is the account that made the collection,
// as it is configured now. For a collection that is not the session's it is the agency's
// present account; such a report changes no session and becomes an operator case.
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

// honoursLate returns a function that reports whether the policy of a session's agency
// honours late payments. It is false while the session cannot be read: staff decide then.
func (b *Base) honoursLate(sessions *readmodel.Reader) func(ctx context.Context, sessionID string) bool {
	return func(ctx context.Context, sessionID string) bool {
		s, err := sessions.ByID(ctx, sessionID)
		return err == nil && b.configuration().HonoursLate(s.TenantID)
	}
}
