// Package all lists the operators of the service. Only programs and tests import it; they
// pass the table to the other packages.
package all

import (
	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/connector/pi"
)

// Operators lists every operator, and names the one of each offer.
func Operators() connector.Table {
	return connector.Table{
		Operators: []connector.Registration{mtn.Registration, airtel.Registration, card.Registration, pi.Registration},
		Offers: map[string]string{
			checkout.OfferMomo:  mtn.Operator,
			checkout.OfferMomoB: airtel.Operator,
			checkout.OfferCard:  card.Operator,

			checkout.OfferSwitch: pi.Operator,
		},
	}
}
