package application

import (
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"application.name_malformed":    cli.Filled("must be 1 to {most} printable characters"),
	"application.name_taken":        cli.Filled("application {id} of the agency has this name; `quittance apps set` changes it"),
	"application.portal_has_none":   cli.Filled("the application of a citizen portal has no such limit: nobody has a key for it"),
	"application.second_integrator": cli.Filled("the agency has an integrator application already: {application}"),
	"origin.malformed":              cli.Filled("must be https origins in lower case without a path, such as https://guichet.example"),
	"origin.unknown": func(a operation.Args) string {
		if origins, _ := a["origins"].([]string); len(origins) > 0 {
			return "is not among the owner's origins, which are: " + render.Some(origins)
		}
		return "the owner has no origins"
	},
}
