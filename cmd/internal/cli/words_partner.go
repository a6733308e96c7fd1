package cli

// partnerWords has the texts for the codes of refused operations.
var partnerWords = Words{
	"cashin.in_force": filled("the application has credentials in force already, {id}; replace them with `quittance cashin rotate`, or end them with `quittance cashin revoke`"),
	"cashin.none":     filled("the application has no credentials in force; make some with `quittance cashin create`"),
}
