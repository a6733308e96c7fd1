package mapping

import (
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"mapping.code_malformed": cli.Filled("must be 1 to {most} printable characters: the revenue_line_code of the ERP's dues"),
	"mapping.unknown": func(a operation.Args) string {
		if codes, _ := a["codes"].([]string); len(codes) > 0 {
			return "the agency has no mapping of this code; it has those of: " + render.Some(codes)
		}
		return "the agency has no mappings"
	},
	"service.unknown": func(a operation.Args) string {
		if codes, _ := a["services"].([]string); len(codes) > 0 {
			return "the agency's catalogue has no service of this code; it has: " + render.Some(codes)
		}
		return "the agency's catalogue is empty: add services with `quittance seed FILE`"
	},
}
