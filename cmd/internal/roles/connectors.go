package roles

import (
	"context"
	"errors"
	"time"

	"quittance/checkout"
	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	readmodel "quittance/internal/sessions"
)

// connectors by offer id.
func (b *Base) connectors() (map[string]connector.Connector, error) {
	momo, err := mtn.New(mtn.Config{Now: b.Now})
	if err != nil {
		return nil, err
	}
	momoB, err := airtel.New(airtel.Config{Now: b.Now})
	if err != nil {
		return nil, err
	}
	// Signatures carry the machine's time, also where a developer's clock jumps.
	acquirer, err := card.New(card.Config{Now: func() time.Time { return time.Now().UTC() }})
	if err != nil {
		return nil, err
	}
	return map[string]connector.Connector{checkout.OfferMomo: momo, checkout.OfferMomoB: momoB, checkout.OfferCard: acquirer}, nil
}

// accountOfReport finds the merchant account that signs an operator's reports about
// a collection: the one that was asked for the money, as it is configured now. Of a
// collection that is not the session's it is the agency's own, whatever it was then:
// such a report changes no session, and an operator case must come of it.
func (b *Base) accountOfReport(sessions *readmodel.Reader, collectors map[string]connector.Collector) func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error) {
	return func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error) {
		s, err := sessions.ByID(ctx, sessionID)
		if err != nil {
			return connector.Account{}, err
		}
		var offer, fingerprint string
		if c := s.Collection; c != nil && c.ID == collectionID {
			offer, fingerprint = c.OfferID, c.Account
			if collects, ok := collectors[offer]; !ok || collects.Operator() != operator {
				return connector.Account{}, errors.New("the collection is another operator's")
			}
		} else {
			for id, c := range collectors {
				if c.Operator() == operator {
					offer = id
				}
			}
		}
		account, ok := b.configuration().Account(s.TenantID, s.Live, offer)
		switch {
		case !ok:
			return connector.Account{}, errors.New("the agency has no account for the offer")
		case fingerprint != "" && account.Fingerprint() != fingerprint:
			return connector.Account{}, errors.New("the collection was begun with another account")
		}
		return account, nil
	}
}

// asked are those connectors whose operators are asked for the money.
func asked(connectors map[string]connector.Connector) map[string]connector.Collector {
	out := map[string]connector.Collector{}
	for offer, c := range connectors {
		if collector, ok := c.(connector.Collector); ok {
			out[offer] = collector
		}
	}
	return out
}

// operators are the same by their operator's name.
func operators(collectors map[string]connector.Collector) map[string]connector.Collector {
	out := map[string]connector.Collector{}
	for _, c := range collectors {
		out[c.Operator()] = c
	}
	return out
}

// ussd has the code that shows pending payments at an operator, where it is known.
var ussd = map[string]string{checkout.OfferMomo: "*105#"}

// mobileMoney are the connectors that reach payers by their number.
func mobileMoney(connectors map[string]connector.Connector) map[string]pages.MobileMoney {
	out := map[string]pages.MobileMoney{}
	for offer, c := range connectors {
		if payers, ok := c.(connector.PayerReader); ok {
			out[offer] = pages.MobileMoney{Payer: payers, USSD: ussd[offer]}
		}
	}
	return out
}
