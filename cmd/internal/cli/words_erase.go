package cli

// erasureWords has the texts for the codes of refused operations.
var erasureWords = Words{
	"personal.phone_malformed": filled("must be a phone number, such as \"+242 06 600 00 01\""),
}
