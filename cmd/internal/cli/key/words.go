package key

import (
	"quittance/cmd/internal/cli"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"key.grants_over":        cli.Filled("key {id} is {state}: it acts for nobody"),
	"key.last_agency":        cli.Filled("key {id} would have no agency left; end it with `quittance keys revoke {id}`"),
	"key.not_platform":       cli.Filled("key {id} belongs to {owner}, and acts for its agency only; agencies are granted to platform keys"),
	"key.no_room_to_overlap": cli.Filled("key {id} cannot overlap with a new one: {owner} has another of its mode in force, {other}, and {most} is the most; end that one with `quittance keys revoke {other_id}`, or replace this one at once with --overlap 0"),
	"key.not_an_id":          cli.Filled("that is no id of a key, which looks like 018f0000-0000-7000-8000-0000000000aa; `quittance keys list` shows them"),
	"key.over":               cli.Filled("key {id} is {state}; make a new one with `quittance keys create`"),
	"key.overlap_negative":   cli.Filled("must not be negative: 0 ends the old key at once"),
	"key.reads_out_of_range": cli.Filled("must be from 1 to {most}"),
	"key.rotated":            cli.Filled("key {id} was rotated already and ends at {ends_at}; rotate the key that replaced it, or end this one with `quittance keys revoke {id}`"),
	"key.too_many":           cli.Filled("{owner} has {keys} in force already, and {most} is the most; replace one with `quittance keys rotate KEY_ID --overlap 0`, or end one with `quittance keys revoke KEY_ID`"),
	"key.unknown":            cli.Filled("no key has the id {id}; `quittance keys list` shows them"),
	"key.without_agencies":   cli.Filled("a platform key needs the agencies that it may act for"),
}
