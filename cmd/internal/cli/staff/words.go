package staff

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"staff.contact_revoked":  cli.Filled("{name} is revoked and gets no digests"),
	"staff.email_malformed":  cli.Filled("must be an e-mail address, such as name@example.org"),
	"staff.language_unknown": cli.Filled("must be one of: {languages}"),
	"staff.no_contact":       cli.Filled("{name} has no address yet, so that there is nothing to change; give one"),
	"staff.key_missing":      cli.Filled("set QUITTANCE_STAFF_KEY to the st_ key of the person who acts; `quittance staff add` makes one"),
	"staff.key_unknown":      cli.Filled("QUITTANCE_STAFF_KEY holds no key of staff; set it to the whole st_ key as `quittance staff add` showed it"),
	"staff.name_malformed":   cli.Filled("must be 1 to {most} printable characters: the person's name"),
	"staff.name_taken":       cli.Filled("{name} exists already and is {state}; names of staff are never used twice, so give a name that tells the two apart"),
	"staff.needs_proposer":   cli.Filled("{group} has two members or more, so that one of them proposes a new one: set QUITTANCE_STAFF_KEY to the key of a member; another one then runs `quittance staff approve`"),
	"staff.not_approved":     cli.Filled("the key in QUITTANCE_STAFF_KEY, of {name}, is not approved yet; another member runs `quittance staff approve {id}`"),
	"staff.not_proposed":     cli.Filled("{name} waits for no approval: the state is {state}; `quittance staff list` shows all"),
	"staff.other_group":      cli.Filled("members of {group} decide about this, and the key in QUITTANCE_STAFF_KEY is of {own}; ask a member of {group}"),
	"staff.proposer_revoked": cli.Filled("whoever proposed {name} is revoked; end the proposal with `quittance staff revoke` and propose another name with `quittance staff add`"),
	"staff.revoked":          cli.Filled("the key in QUITTANCE_STAFF_KEY, of {name}, is revoked; use another person's key"),
	"staff.second_person":    cli.Filled("whoever proposes a member cannot approve it: another member of {group} runs `quittance staff approve`"),
	"staff.waits":            cli.Filled("{name} was added on the command line for a group that has had people before, and can be approved there from {until}; `quittance staff revoke` ends it"),
	"staff.wait_ended":       cli.Filled("{name} was not approved in the week after being added on the command line; revoke this person with `quittance staff revoke` and add another name with `quittance staff add`"),
	"staff.group_decides":    cli.Filled("{group} has two members or more by now, who decide about {name}: revoke this person with `quittance staff revoke`, and let a member propose another name with `quittance staff add`"),
	"staff.unknown":          cli.Filled("no member of staff has this id or name; `quittance staff list` shows them"),
}
