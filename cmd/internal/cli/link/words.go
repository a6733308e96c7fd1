package link

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"citizen.subject_malformed": cli.Filled("must be 1 to {most} bytes of UTF-8, without control characters, and without spaces at its ends"),
	"citizen.phone_invalid":     cli.Filled("must be a mobile number of Congo, such as +242 06 600 00 01"),
	"citizen.email_invalid":     cli.Filled("must be an e-mail address, such as name@example.org"),
}
