package batch

import "quittance/cmd/internal/cli"

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"batch.unknown":                 cli.Filled("no batch that you may see has this id; `quittance batches list` shows them, a new one after about a second"),
	"batch.lines_not_yours":         cli.Filled("the file names all payees: a person of the agency with the role preparer or approver writes it"),
	"batch.not_sealed":              cli.Filled("the batch is a draft, and nobody has approved anything of it"),
	"batch.not_approved":            cli.Filled("the batch is not approved by all who have to, or it ended without paying"),
	"batch.line_unknown":            cli.Filled("the batch has no line with this line_ref; `quittance batches lines BATCH` shows them"),
	"batch.line_not_paid":           cli.Filled("the line is {status}: only a line that is paid, or was and came back, has an advice"),
	"batch.line_erased":             cli.Filled("the content of the line was erased, or cannot be opened: an advice would have no payee"),
	"batch.nothing_paid":            cli.Filled("no line of the batch is paid yet"),
	"batch.agency_unknown":          cli.Filled("no agency that you may see has this id or slug"),
	"batch.lines_not_yours_to_pull": cli.Filled("the lines name all payees: a person of the agency with the role preparer pulls them"),
	"batch.no_erp":                  cli.Filled("--mode: the agency has no ERP in this mode; its registry file names it (agencies[].erp), or import a file"),
	"batch.erp_locked":              cli.Filled("the secret of the ERP does not open with the keys of QUITTANCE_MASTER_KEYS, or its row does not verify: run this where the master keys are, and look at `quittance doctor`"),
}
