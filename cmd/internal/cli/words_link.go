package cli

// linkWords has the texts for the codes of refused operations.
var linkWords = Words{
	"citizen.subject_malformed": filled("must be 1 to {most} bytes of UTF-8, without control characters, and without spaces at its ends"),
	"citizen.phone_invalid":     filled("must be a mobile number of Congo, such as +242 06 600 00 01"),
	"citizen.email_invalid":     filled("must be an e-mail address, such as name@example.org"),
}
