package partner

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"cashin.in_force": cli.Filled("the application has credentials in force already, {id}; replace them with `quittance cashin rotate`, or end them with `quittance cashin revoke`"),
	"cashin.none":     cli.Filled("the application has no credentials in force; make some with `quittance cashin create`"),
}
