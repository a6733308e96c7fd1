package disbursement

import (
	"slices"
	"time"

	"quittance/disbursement/policy"
	"quittance/money/localtime"
)

// Agency is what is known of an agency in a mode.
type Agency struct {
	AgencyKey

	// Batches are the ids of the live ones.
	Batches []string
	// Policy is in force, from NextAt on Next is.
	Policy, Next policy.Policy
	NextAt       time.Time
	// Scope is that of the first batch: references of two scopes do not see each other.
	Scope Scope
	// Registry is the highest revision of the registry that a command carried.
	Registry int64
	// Day is the last local day on which a batch was sealed, Sealed the sum of its batches. A batch that is sealed when the
	// time went back over midnight counts on this day, too.
	Day    string
	Sealed int64
}

func (a Agency) copied() Agency {
	a.Batches = slices.Clone(a.Batches)
	return a
}

// InForce returns the policy at a time. Its Version is 0 if there is none.
func (a Agency) InForce(at time.Time) policy.Policy {
	if !a.NextAt.IsZero() && !at.Before(a.NextAt) {
		return a.Next
	}
	return a.Policy
}

// day returns what was sealed on the day on which a batch counts that is sealed at a time.
func (a Agency) day(at time.Time) int64 {
	if a.Day < localtime.Day(at) {
		return 0
	}
	return a.Sealed
}

// Roster is the people of an agency, in both modes.
type Roster struct {
	TenantID string
	policy.Roster
	// RPID and Origin are those of the passkeys.
	RPID, Origin string
	// Changes is the number of changes of roster and policy.
	Changes int64
}
