package disburse

import (
	"errors"
	"sync"

	"quittance/disbursement"
	"quittance/internal/connector"
)

// gate keeps requests from an operator that refuses the settings of an account, such as a wrong PIN or revoked keys. The
// processor closes the account when it hears of it, but up to disbursement.MaxInFlight requests are under way then, and operators
// lock an account after a few wrong PINs. It is in memory only: a restart costs one more try. Safe for concurrent use.
type gate struct {
	mu       sync.Mutex
	accounts map[gateKey]*gated
}

type gateKey struct {
	tenantID string
	live     bool
	code     string
}

// gated is an account with its settings, as this process knows it.
type gated struct {
	settings connector.Account
	// closings is that of the newest request. A request with an older number is not carried out after a refusal.
	closings int
	// taken: the operator has taken a request with these settings. Before, one request at a time tries them.
	taken, trying bool
	refused       error // why the operator refused the settings; nil if it did not
}

var (
	// errTrying is the error of a request that waits until another one has tried the settings of its account.
	errTrying = &connector.Error{Doing: "waiting for the first request of the account", Fault: connector.FaultBusy, Err: errors.New("one request tries the account's settings")}
	// errClosed is wrapped by the error of a request that is not carried out because its account's settings were refused.
	errClosed = errors.New("the operator refuses the settings of the account")
)

// closedError says why an account is closed, by the operator's code or the class of its fault.
type closedError struct{ code string }

func (e *closedError) Error() string { return errClosed.Error() + ": " + e.code }

func (e *closedError) Unwrap() error { return errClosed }

func refusedBy(code string) error {
	return &connector.Error{Doing: "using the account", Fault: connector.FaultCredentials, Err: &closedError{code}}
}

func keyOf(q *disbursement.Request) gateKey { return gateKey{q.TenantID, q.Live, q.Account} }

// enter asks whether a request to pay may be carried out. Who may, calls leave after the call. New settings, and a request that was
// made after the processor has let people try the account again, begin anew.
func (g *gate) enter(q *disbursement.Request, settings connector.Account) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts == nil {
		g.accounts = map[gateKey]*gated{}
	}
	a := g.accounts[keyOf(q)]
	if a == nil || a.settings != settings || q.Closings > a.closings {
		a = &gated{settings: settings, closings: q.Closings}
		g.accounts[keyOf(q)] = a
	}
	switch {
	case a.refused != nil:
		return a.refused
	case a.taken:
		return nil
	case a.trying:
		return errTrying
	}
	a.trying = true
	return nil
}

// leave notes what the operator answered to a request that had entered. An error that may have come from the network says nothing
// of the settings.
func (g *gate) leave(q *disbursement.Request, settings connector.Account, o connector.PayoutOutcome, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.accounts[keyOf(q)]
	if a == nil || a.settings != settings || a.closings != q.Closings {
		return // another trial has begun
	}
	a.trying = false
	switch {
	case err == nil && o.Status == connector.PayoutRefused && o.Cause == connector.CauseAccount:
		a.refused, a.taken = refusedBy(o.Reason), false
	case refusesAccount(err):
		a.refused, a.taken = refusedBy(string(connector.FaultCredentials)), false
	case err == nil && a.refused == nil:
		a.taken = true
	}
}

// refusesAccount reports whether an error of a call says that the operator does not accept the account.
func refusesAccount(err error) bool {
	return err != nil && connector.FaultOf(err) == connector.FaultCredentials && !connector.Uncertain(err)
}
