package program

import (
	"fmt"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
)

// words has the texts for codes of several nouns: agencies, applications and values of a registry.
var words = cli.Words{
	"agency.unknown": func(a operation.Args) string {
		agencies, _ := a["agencies"].([]string)
		named, ok := a["agency"]
		switch {
		case len(agencies) == 0:
			return "there are no agencies yet: add one with `quittance seed FILE`"
		case ok:
			return fmt.Sprintf("no agency has the id or slug %q; there are: %s", named, render.Some(agencies))
		}
		return "no agency has this id or slug; there are: " + render.Some(agencies)
	},
	"registry.not_among":        cli.Filled("must be some of: {known}; each once"),
	"registry.out_of_range":     cli.Filled("must be from {least} to {most}"),
	"agency.without_integrator": cli.Filled("{agency} has no integrator application, so that platform keys cannot target it; mark one of its applications with integrator: true and apply the file with `quittance seed FILE`"),
	"application.ambiguous":     cli.Filled("several applications have this name, give the id: {applications}"),
	"application.unknown": func(a operation.Args) string {
		if applications, _ := a["applications"].([]string); len(applications) > 0 {
			return "no application has this id or name; there are: " + render.Some(applications)
		}
		return "there are no applications yet: add one with `quittance seed FILE`"
	},
	"application.portal": cli.Filled("this is the application of the citizen portal of {agency}: it has no keys, no credentials and no embed origins; name an integrator's application, `quittance apps list` shows them"),
}
