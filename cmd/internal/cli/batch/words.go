package batch

import "quittance/cmd/internal/cli"

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"batch.unknown":        cli.Filled("no batch that you may see has this id; `quittance batches list` shows them, a new one after about a second"),
	"batch.agency_unknown": cli.Filled("no agency that you may see has this id or slug"),
}
