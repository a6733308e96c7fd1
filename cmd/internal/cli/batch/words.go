package batch

import "quittance/cmd/internal/cli"

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"batch.unknown":                 cli.Filled("no batch that you may see has this id; `quittance batches list` shows them, a new one after about a second"),
	"batch.lines_not_yours":         cli.Filled("the file names all payees: a person of the agency with the role preparer or approver writes it"),
	"batch.lines_not_yours_to_pull": cli.Filled("the lines name all payees: a person of the agency with the role preparer pulls them"),
	"batch.no_erp":                  cli.Filled("--mode: the agency has no ERP in this mode; its registry file names it (agencies[].erp), or import a file"),
	"batch.erp_locked":              cli.Filled("the secret of the ERP does not open with the keys of QUITTANCE_MASTER_KEYS, or its row does not verify: run this where the master keys are, and look at `quittance doctor`"),
	"batch.not_sealed":              cli.Filled("the batch is a draft, and nobody has approved anything of it"),
	"batch.agency_unknown":          cli.Filled("no agency that you may see has this id or slug"),
}
