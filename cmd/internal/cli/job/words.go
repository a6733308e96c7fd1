package job

import (
	"quittance/cmd/internal/cli"
	"quittance/internal/deliveries"
	"quittance/internal/jobs"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	jobs.CodeUnknown:            cli.Filled("no job has this id; `quittance jobs list` shows them"),
	jobs.CodeEmpty:              cli.Filled("no delivery is like that and can be sent again; `quittance deliveries list` shows what there is"),
	jobs.CodeTooMany:            cli.Filled("more than {most} deliveries are like that: choose fewer, by --endpoint, --agency or --since with --until"),
	jobs.CodeSame:               cli.Filled("job {id} of the same conditions is running or waits: `quittance jobs show {id}`; wait for its end, or end it with `quittance jobs stop {id}`"),
	jobs.CodeCountMissing:       cli.Filled("say how many deliveries you expect: --count {n}"),
	jobs.CodeCountOther:         cli.Filled("the job has {n} deliveries, which is another number"),
	jobs.CodeEnded:              cli.Filled("the job is {state}"),
	jobs.CodeLate:               cli.Filled("nobody has started or approved the job in time; start another one"),
	jobs.CodeNothingAgain:       cli.Filled("the job runs still, or has left no delivery to send again"),
	jobs.CodeAgencyMissing:      cli.Filled("you act for one agency: name it with --agency"),
	jobs.CodeOther:              cli.Filled("another person has prepared this job"),
	jobs.CodeNotBelieved:        cli.Filled("no signature that holds says who has asked for it ({why}): find out who changed the database"),
	deliveries.CodeNotRetryable: cli.Filled("deliveries that are {state} cannot be sent again; those that can are: {states}"),
	deliveries.CodeUnknown:      cli.Filled("it is kept no more"),
	deliveries.CodeAccepted:     cli.Filled("it was accepted at {at}"),
	deliveries.CodeSuperseded:   cli.Filled("the partner has accepted a later webhook of the same payment"),
	deliveries.CodeBodyGone:     cli.Filled("its body is no longer kept"),
	deliveries.CodeSuspended:    cli.Filled("its endpoint is suspended since {at}; `quittance endpoints resume {destination}` sends what waits"),
	deliveries.CodeRemoved:      cli.Filled("its endpoint was removed"),
	"staff.not_permitted":       cli.Filled("the person's roles do not allow it ({permission})"),
	"decision.no_signing_key":   cli.Filled("a job is signed with the master keys, which are not here: {why}"),
}
