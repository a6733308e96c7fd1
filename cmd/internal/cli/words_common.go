package cli

import (
	"fmt"

	"quittance/internal/operation"
)

// commonWords has the texts for codes of several nouns: agencies, applications and values of a registry.
var commonWords = Words{
	"agency.unknown": func(a operation.Args) string {
		agencies, _ := a["agencies"].([]string)
		named, ok := a["agency"]
		switch {
		case len(agencies) == 0:
			return "there are no agencies yet: add one with `quittance seed FILE`"
		case ok:
			return fmt.Sprintf("no agency has the id or slug %q; there are: %s", named, some(agencies))
		}
		return "no agency has this id or slug; there are: " + some(agencies)
	},
	"registry.not_among":        filled("must be some of: {known}; each once"),
	"registry.out_of_range":     filled("must be from {least} to {most}"),
	"agency.without_integrator": filled("{agency} has no integrator application, so that platform keys cannot target it; mark one of its applications with integrator: true and apply the file with `quittance seed FILE`"),
	"application.ambiguous":     filled("several applications have this name, give the id: {applications}"),
	"application.unknown": func(a operation.Args) string {
		if applications, _ := a["applications"].([]string); len(applications) > 0 {
			return "no application has this id or name; there are: " + some(applications)
		}
		return "there are no applications yet: add one with `quittance seed FILE`"
	},
	"application.portal": filled("this is the application of the citizen portal of {agency}: it has no keys, no credentials and no embed origins; name an integrator's application, `quittance apps list` shows them"),
}
