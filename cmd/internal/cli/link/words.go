package link

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"citizen.subject_malformed": cli.Filled("must be 1 to {most} bytes of UTF-8, without control characters, and without spaces at its ends"),
	"links.overlap_range":       cli.Filled("must be between 0s and {most} hours"),
	"links.first_epoch":         cli.Filled("link codes were never renewed all at once, so that there are no former ones; `quittance links renew-all` renews them"),
	"citizen.phone_invalid":     cli.Filled("must be a mobile number of Congo, such as +242 06 600 00 01"),
	"citizen.email_invalid":     cli.Filled("must be an e-mail address, such as name@example.org"),
}
