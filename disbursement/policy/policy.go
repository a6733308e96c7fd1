// Package policy says what it takes to approve a batch of disbursements: which levels of people an amount needs, who
// they are at the moment of sealing, and whose approval counts.
//
// Everything is pure. Times are UTC, amounts are minor units of the policy's currency.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// NameCheck says for which payees the operator is asked for the name before a batch is sealed.
type NameCheck string

// The name checks.
const (
	CheckOff NameCheck = "off"
	CheckNew NameCheck = "new" // payees that the agency has not paid before
	CheckAll NameCheck = "all"
)

// Release says what begins the payment of an approved batch.
type Release string

// The releases.
const (
	ReleaseManual Release = "manual"  // a person with a passkey
	ReleaseOnDate Release = "on_date" // the batch's date
)

// Bounds of a policy. They keep its entry, and what a sealed batch copies of it, small.
const (
	MaxTiers    = 10
	MaxLevels   = 5
	MaxNeeded   = 5
	MaxWatchers = 20
)

// Policy is what an agency demands in one mode.
type Policy struct {
	// Version is raised by each change.
	Version int64
	// Currency of all amounts, and of all batches of the mode.
	Currency string
	// Tiers by growing amount. Only the last may be without a bound.
	Tiers []Tier
	// LineFrom is the amount of a line from which on the batch needs the next tier; 0 for none.
	LineFrom int64
	// DayLimit is the most that the agency may seal in a local day; 0 for no limit.
	DayLimit int64
	// ApproveWithin is how long a sealed batch waits for its approvals.
	ApproveWithin time.Duration
	// PayWithinDays is how many days after its date a batch may still pay.
	PayWithinDays int
	NameCheck     NameCheck
	Release       Release
	// Watchers are ids of people who are told of every change of roster and policy.
	Watchers []string
}

// Tier has the levels, in sequence, of batches up to an amount.
type Tier struct {
	// UpTo is the highest amount; 0 for no bound.
	UpTo  int64
	Rules []Rule
}

// Rule asks for a number of people with a role.
type Rule struct {
	Role   string
	Needed int
}

// Fault names the first faulty field and its mend; both are empty if the policy can be used.
func (p Policy) Fault() (field, mend string) {
	switch {
	case p.Currency == "":
		return "currency", "name the currency of the amounts"
	case len(p.Tiers) == 0 || len(p.Tiers) > MaxTiers:
		return "tiers", fmt.Sprintf("give 1 to %d tiers", MaxTiers)
	case p.LineFrom < 0:
		return "line_from", "give an amount, or leave it out"
	case p.DayLimit < 0:
		return "day_limit", "give an amount, or leave it out"
	case p.ApproveWithin < time.Hour || p.ApproveWithin > 30*24*time.Hour:
		return "approve_within", "give 1 to 720 hours"
	case p.PayWithinDays < 0 || p.PayWithinDays > 60:
		return "pay_within_days", "give 0 to 60 days"
	case p.NameCheck != CheckOff && p.NameCheck != CheckNew && p.NameCheck != CheckAll:
		return "name_check", "say off, new or all"
	case p.Release != ReleaseManual && p.Release != ReleaseOnDate:
		return "release", "say manual or on_date"
	case len(p.Watchers) > MaxWatchers:
		return "watchers", fmt.Sprintf("name at most %d people", MaxWatchers)
	}
	for i, t := range p.Tiers {
		last := i == len(p.Tiers)-1
		switch {
		case t.UpTo == 0 && !last, t.UpTo < 0, i > 0 && t.UpTo != 0 && t.UpTo <= p.Tiers[i-1].UpTo:
			return fmt.Sprintf("tiers[%d].up_to", i), "let the amounts grow from tier to tier"
		case len(t.Rules) == 0 || len(t.Rules) > MaxLevels:
			return fmt.Sprintf("tiers[%d].levels", i), fmt.Sprintf("give 1 to %d levels", MaxLevels)
		}
		for j, r := range t.Rules {
			if r.Role == "" || r.Needed < 1 || r.Needed > MaxNeeded {
				return fmt.Sprintf("tiers[%d].levels[%d]", i, j), fmt.Sprintf("name a role and 1 to %d people", MaxNeeded)
			}
		}
	}
	return "", ""
}

// Reasons why a policy lets no batch of an amount be sealed.
var (
	// ErrDayLimit says that the day's sum would be above the agency's limit.
	ErrDayLimit = errors.New("the day's limit is exceeded")
	// ErrAboveTiers says that no tier reaches the day's sum.
	ErrAboveTiers = errors.New("no tier reaches the amount")
)

// Rules returns the levels that a batch needs. day is what the agency sealed before on that local day: it counts with
// the batch, so that splitting one gains nothing. largest is the amount of the batch's largest line. The error is
// ErrDayLimit or ErrAboveTiers.
func (p Policy) Rules(sum, day, largest int64) ([]Rule, error) {
	total := sum + day
	if p.DayLimit > 0 && total > p.DayLimit {
		return nil, ErrDayLimit
	}
	i := slices.IndexFunc(p.Tiers, func(t Tier) bool { return t.UpTo == 0 || total <= t.UpTo })
	if i < 0 {
		return nil, ErrAboveTiers
	}
	if p.LineFrom > 0 && largest >= p.LineFrom && i < len(p.Tiers)-1 {
		i++
	}
	return p.Tiers[i].Rules, nil
}
