package erase

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"personal.phone_malformed":   cli.Filled("must be a phone number, such as \"+242 06 600 00 01\""),
	"personal.account_malformed": cli.Filled("must be an IBAN or an account number"),
}
