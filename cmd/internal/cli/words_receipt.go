package cli

import "quittance/internal/receipts"

// receiptWords has the texts for the codes of refused operations.
var receiptWords = Words{
	receipts.CodeAnnounced:  filled("the key {kid} is public already and signs {mode} receipts from {from} on; rotate again after that, or revoke it first if it was stolen"),
	receipts.CodeUnknownKey: filled("no key of receipts has this kid; `quittance receipts keys list` shows them"),
}
