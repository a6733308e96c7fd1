package ministry

import (
	"context"
	"time"

	"quittance/checkout"
)

// command sends a command that no quota of the contract counts. It refuses only a
// flood: more than most commands in a minute with the same charge. An answer other than
// ok is an error, a *problem.Problem.
func (a *API) command(ctx context.Context, chargedTo string, most int, cmd checkout.Command) (checkout.Answer, error) {
	cmd.At = a.now()
	if after, ok := a.flood.admit(chargedTo, most, cmd.At); !ok {
		return checkout.Answer{}, rateLimited(nil, after)
	}
	answer, err := a.cfg.Commands.Ask(ctx, cmd)
	if err == nil && answer.Code != checkout.CodeOK {
		return answer, refusal(answer)
	}
	return answer, err
}

// applicationCommand sends a command of an application and charges it to the
// application.
func (a *API) applicationCommand(ctx context.Context, kind, applicationID string, cmd checkout.Command) (checkout.Answer, error) {
	app, _ := a.cfg.Registry.Application(applicationID)
	cmd.TenantID, cmd.ApplicationID = app.AgencyID, applicationID
	return a.command(ctx, kind+" "+applicationID, commandsOf(app.CreationsPerMinute), cmd)
}

// now is the time of a command: records hold milliseconds.
func (a *API) now() time.Time { return a.cfg.Now().UTC().Truncate(time.Millisecond) }
