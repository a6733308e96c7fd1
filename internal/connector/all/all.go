// Package all lists the operators of the service. Only programs and tests import it; they
// pass the table to the other packages.
package all

import (
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
)

// Operators lists every operator.
func Operators() connector.Table {
	return connector.Table{
		mtn.Registration,
		airtel.Registration,
		card.Registration,
	}
}
