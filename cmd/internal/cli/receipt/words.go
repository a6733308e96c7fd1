package receipt

import (
	"quittance/cmd/internal/cli"
	"quittance/internal/receipts"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	receipts.CodeAnnounced:  cli.Filled("the key {kid} is public already and signs {mode} receipts from {from} on; rotate again after that, or revoke it first if it was stolen"),
	receipts.CodeUnknownKey: cli.Filled("no key of receipts has this kid; `quittance receipts keys list` shows them"),
}
