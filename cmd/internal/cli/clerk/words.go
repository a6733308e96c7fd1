package clerk

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"clerk.code_malformed":     cli.Filled("must be at most 63 lower-case letters, digits and hyphens, beginning with a letter"),
	"clerk.counter_malformed":  cli.Filled("must be 1 to {most} printable characters: the desk or place; a new clerk needs one"),
	"clerk.key_unknown":        cli.Filled("no clerk's key has the id {id}; `quittance clerks list` shows them"),
	"clerk.limit_out_of_range": cli.Filled("must be an amount in XAF from 0 to {most}; 0 is no limit"),
	"clerk.name_malformed":     cli.Filled("must be 1 to {most} printable characters; a new clerk needs one"),
	"clerk.not_a_name":         cli.Filled("that is neither AGENCY/CODE, such as impots/c01, nor the id of a key; `quittance clerks list` shows them"),
	"clerk.device_unknown":     cli.Filled("no device has the id {id}, or it has forgotten its clerk already; `quittance clerks devices` lists them"),
	"clerk.not_a_device":       cli.Filled("that is neither AGENCY/CODE, such as impots/c01, nor the id of a device; `quittance clerks devices` lists them"),
	"clerk.pin_guessable":      cli.Filled("anybody would try this PIN first; avoid sequences and repeated digits"),
	"clerk.pin_malformed":      cli.Filled("must have {least} to {most} digits"),
	"clerk.too_many_keys":      cli.Filled("{clerk} has {keys} in force already, the maximum; end one with `quittance clerks revoke KEY_ID`"),
	"clerk.unknown":            cli.Filled("no agency has such a clerk; `quittance clerks list` shows them as AGENCY/CODE"),
}
