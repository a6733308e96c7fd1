package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/internal/postgres"
)

// words are what the command line says for the codes of refused operations.
var words = map[string]func(operation.Args) string{
	deliveries.CodeUnknown: func(a operation.Args) string {
		return fmt.Sprintf("no delivery has this id: either it was not tried yet, or its event is more than %d days old; `quittance deliveries list` shows the others", a["days"])
	},
	deliveries.CodeAccepted: func(a operation.Args) string {
		return "was accepted at " + at(a) + "; `quittance replay` sends it again"
	},
	deliveries.CodeBodyGone: func(operation.Args) string {
		return "what was to be sent is no longer kept; `quittance replay` sends the event again"
	},
	deliveries.CodeStateUnknown: func(a operation.Args) string {
		return "no delivery has this state; the states are: " + listOf(a, "states")
	},
	deliveries.CodeNotRetryable: func(a operation.Args) string {
		return fmt.Sprintf("deliveries that are %s cannot be retried; those that can are: %s", a["state"], listOf(a, "states"))
	},
	deliveries.CodeSuspended: func(a operation.Args) string {
		return fmt.Sprintf("the endpoint is suspended since %s: nothing is sent to it; `quittance endpoints resume %s` sends all that waits", at(a), a["destination"])
	},
	deliveries.CodeNeverSuspended: func(operation.Args) string {
		return "an ERP is never suspended: every payment has to reach it; while it fails, its confirmations wait and are tried again by themselves"
	},
	deliveries.CodeNoRecovery: func(operation.Args) string { return "there is no such recovery" },
	deliveries.CodeBehind: func(operation.Args) string {
		return "the schedule has not applied all outcomes, so it is not known what is delivered; check that `quittance sink schedule` runs, then try again"
	},
}

func at(a operation.Args) string {
	t, _ := a["at"].(time.Time)
	return moment(t)
}

func listOf(a operation.Args, name string) string {
	list, _ := a[name].([]string)
	return strings.Join(list, ", ")
}

// inWords is the words for a refused operation, without what was being done: the
// operator knows. Other errors stay as they are.
func inWords(err error) error {
	var refused *operation.Error
	if !errors.As(err, &refused) || words[refused.Code] == nil {
		return err
	}
	return errors.New(words[refused.Code](refused.Args))
}

// isRefused says whether an error is a refused operation.
func isRefused(err error, code string) bool {
	var refused *operation.Error
	return errors.As(err, &refused) && (code == "" || refused.Code == code)
}

// operator is the user who gives a command on this machine.
func operator() operation.Actor {
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: cmp.Or(os.Getenv("USER"), "unknown")}
	if u, err := user.Current(); err == nil {
		a.Name = cmp.Or(u.Username, a.Name)
	}
	a.Origin, _ = os.Hostname()
	return a
}

// deliveriesOn is the deliveries in a database, for operations on rows.
func deliveriesOn(pool *postgres.Pool) *deliveries.Store {
	return deliveries.NewStore(pool, roles.DeliveryKinds(nil))
}
