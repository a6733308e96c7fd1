// Package all lists the operators of the service. Programs and tests import it; the
// other packages are handed the table.
package all

import (
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
)

// Operators is every operator, one a line.
func Operators() connector.Table {
	return connector.Table{
		mtn.Registration,
		airtel.Registration,
		card.Registration,
	}
}
