package job

import (
	"quittance/cmd/internal/cli"
	"quittance/internal/deliveries"
	"quittance/internal/jobs"
	"quittance/internal/signed"
)

// words has the texts for the codes of refused operations on jobs.
var words = cli.Words{
	jobs.CodeUnknown:       cli.Filled("no job has this id; `quittance jobs list` shows them"),
	jobs.CodeEmpty:         cli.Filled("no delivery is like that and can be sent again; `quittance deliveries list` shows what there is"),
	jobs.CodeTooMany:       cli.Filled("more than {most} deliveries are like that: choose fewer, by --endpoint, --agency or --since with --until"),
	jobs.CodeSame:          cli.Filled("job {id} of the same conditions is running or waits: `quittance jobs show {id}`; wait for its end, or end it with `quittance jobs stop {id}`"),
	jobs.CodeCountMissing:  cli.Filled("say how many deliveries you expect: --count {n}"),
	jobs.CodeCountOther:    cli.Filled("the job has {n} deliveries, which is another number"),
	jobs.CodeEnded:         cli.Filled("the job is {state}"),
	jobs.CodeLate:          cli.Filled("nobody has started or approved the job in time; start another one"),
	jobs.CodeNothingAgain:  cli.Filled("the job runs still, or has left no delivery to send again"),
	jobs.CodeAgencyMissing: cli.Filled("you act for one agency: name it with --agency"),
	jobs.CodeOther:         cli.Filled("another person has prepared this job"),
	jobs.CodeNotBelieved:   cli.Filled("no signature that holds says who has asked for it ({why}): find out who changed the database"),
}

// reasons has the texts for why a row was refused, or the service has stopped a job. They are not among the words of the
// command: each of these codes has another text where a person asks for one delivery, or acts with a key.
var reasons = cli.Words{
	deliveries.CodeUnknown:    cli.Filled("it is kept no more"),
	deliveries.CodeAccepted:   cli.Filled("it was accepted at {at}"),
	deliveries.CodeSuperseded: cli.Filled("the partner has accepted a later webhook of the same payment"),
	deliveries.CodeBodyGone:   cli.Filled("its body is no longer kept"),
	deliveries.CodeSuspended:  cli.Filled("its endpoint is suspended since {at}; `quittance endpoints resume {destination}` sends what waits"),
	deliveries.CodeRemoved:    cli.Filled("its endpoint was removed"),
	"staff.not_permitted":     cli.Filled("the roles of the person who has asked for it, or approved it, do not allow it any more ({permission})"),
	"staff.suspended":         cli.Filled("{name}, who has asked for it, is suspended"),
	"staff.revoked":           cli.Filled("{name}, who has asked for it, is revoked"),
	"staff.waits":             cli.Filled("{name}, who has asked for it, may not act before {until}"),
	signed.CodeForged:         cli.Filled("the row of the person who has asked for it, or approved it, is not as it was signed: find out who changed the database"),
}

// because returns why a row was refused, or a job has ended.
func because(m *cli.Meta, refusal error) string {
	return m.InWords(reasons.InWords(refusal)).Error()
}
