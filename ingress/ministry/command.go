package ministry

import (
	"context"
	"time"

	"quittance/checkout"
)

// command asks for something that no quota of the contract counts: only a flood
// is shed, beyond most in a minute of what it is charged to.
func (a *API) command(ctx context.Context, chargedTo string, most int, cmd checkout.Command) (checkout.Answer, error) {
	cmd.At = a.now()
	if after, ok := a.flood.admit(chargedTo, most, cmd.At); !ok {
		return checkout.Answer{}, rateLimited(nil, after)
	}
	return a.cfg.Commands.Ask(ctx, cmd)
}

// applicationCommand is a command of an application, charged to it.
func (a *API) applicationCommand(ctx context.Context, kind, applicationID string, cmd checkout.Command) (checkout.Answer, error) {
	app, _ := a.cfg.Registry.Application(applicationID)
	cmd.TenantID, cmd.ApplicationID = app.AgencyID, applicationID
	return a.command(ctx, kind+" "+applicationID, commandsOf(app.CreationsPerMinute), cmd)
}

// now is the stamp of a command: milliseconds, as records have it.
func (a *API) now() time.Time { return a.cfg.Now().UTC().Truncate(time.Millisecond) }
