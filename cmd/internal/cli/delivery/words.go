package delivery

import (
	"quittance/cmd/internal/cli"
	"quittance/internal/deliveries"
	"quittance/internal/sessions"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	// Of --order and --payment-ref, also those of replays.
	sessions.CodeOrderUnknown: cli.Filled("no session has this order; orders are compared exactly, with capital and small letters"),
	sessions.CodeRefUnknown:   cli.Filled("no session has this payment reference"),

	deliveries.CodeUnknown:        cli.Filled("no delivery has this id: either it was not attempted yet, or its event is more than {days} days old; `quittance deliveries list` shows the others"),
	deliveries.CodeAccepted:       cli.Filled("was accepted at {at}; `quittance replay TOPIC --to SINK --endpoint ENDPOINT --redelivery NAME --since TIME` sends it again, unless it is a confirmation to an ERP"),
	deliveries.CodeSuperseded:     cli.Filled("the partner has accepted a later webhook of the same payment, so this older one is never sent again"),
	deliveries.CodeBodyGone:       cli.Filled("the body of the delivery is no longer kept; `quittance replay TOPIC --to SINK --since TIME` makes it again"),
	deliveries.CodeStateUnknown:   cli.Filled("no delivery has this state; the states are: {states}"),
	deliveries.CodeNotRetryable:   cli.Filled("deliveries that are {state} cannot be retried; those that can are: {states}"),
	deliveries.CodeSuspended:      cli.Filled("the endpoint is suspended since {at}: nothing is sent to it; `quittance endpoints resume {destination}` sends all that waits"),
	deliveries.CodeRemoved:        cli.Filled("the endpoint was removed: nothing is sent to it; add it again, then `quittance endpoints resume {destination}`"),
	deliveries.CodeNeverSuspended: cli.Filled("an ERP is never suspended: every payment must reach it; while it fails, its confirmations wait and are sent again automatically"),
	deliveries.CodeNoRecovery:     cli.Filled("there is no such recovery"),
	deliveries.CodeBehind:         cli.Filled("the schedule has not applied all outcomes, so the state of deliveries is not known; check that `quittance sink schedule` runs, then try again"),
	"endpoint.overlap_negative":   cli.Filled("must not be negative: 0 ends the old secret at once"),
	"endpoint.too_many_secrets":   cli.Filled("{signing} secrets sign already, and {most} is the most: the older one ends at {ends_at}; rotate again after that, or end both at once with --overlap 0"),
	"endpoint.exists":             cli.Filled("endpoint {id} of this owner has this address; `quittance endpoints set {id}` changes it"),
	"endpoint.removed":            cli.Filled("this endpoint was removed at {at}; `quittance endpoints add` with its owner and address restores it"),
	"endpoint.url_refused":        cli.Filled("{why}"),
	"endpoint.unknown":            cli.Filled("no webhook endpoint has this id; `quittance endpoints list` shows them"),
}
