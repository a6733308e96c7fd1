package cli

import "quittance/internal/operation"

// applicationWords has the texts for the codes of refused operations.
var applicationWords = Words{
	"application.name_malformed":    filled("must be 1 to {most} printable characters"),
	"application.name_taken":        filled("application {id} of the agency has this name; `quittance apps set` changes it"),
	"application.portal_has_none":   filled("the application of a citizen portal has no such limit: nobody has a key for it"),
	"application.second_integrator": filled("the agency has an integrator application already: {application}"),
	"origin.malformed":              filled("must be https origins in lower case without a path, such as https://guichet.example"),
	"origin.unknown": func(a operation.Args) string {
		if origins, _ := a["origins"].([]string); len(origins) > 0 {
			return "is not among the owner's origins, which are: " + some(origins)
		}
		return "the owner has no origins"
	},
}
