package batch

import (
	"fmt"
	"strings"
	"time"

	"quittance/cmd/internal/cli/render"
	"quittance/disbursement"
	"quittance/disbursement/policy"
)

// policyJSON is a policy; null if there is none.
func policyJSON(p policy.Policy) any {
	if p.Version == 0 {
		return nil
	}
	return render.Object{
		"version", p.Version, "currency", p.Currency, "tiers", render.Mapped(p.Tiers, func(t policy.Tier) render.Object {
			return render.Object{"up_to", render.OrNull(int(t.UpTo)), "levels", render.Mapped(t.Rules, func(r policy.Rule) render.Object {
				return render.Object{"role", r.Role, "needed", r.Needed}
			})}
		}),
		"line_from", p.LineFrom, "day_limit", p.DayLimit, "approve_within_hours", int(p.ApproveWithin / time.Hour), "pay_within_days", p.PayWithinDays,
		"name_check", string(p.NameCheck), "release", string(p.Release), "watchers", append([]string{}, p.Watchers...),
	}
}

func peopleOf(roster disbursement.Roster) []render.Object {
	return render.Mapped(roster.People, func(p policy.Person) render.Object {
		return render.Object{
			"person", p.ID, "number", p.Number, "roles", append([]string{}, p.Roles...), "for", render.OrNone(p.For), "until", p.Until, "confirmed_at", p.At,
			"counts_from", p.At.Add(policy.Settling), "passkeys", keysInForce(p), "revoked_at", p.RevokedAt,
		}
	})
}

func keysInForce(p policy.Person) (n int) {
	for _, k := range p.Keys {
		if k.RemovedAt.IsZero() {
			n++
		}
	}
	return n
}

func sayPeople(p *render.Page, a disbursement.Agency, roster disbursement.Roster, now time.Time) {
	switch in := a.InForce(now); {
	case in.Version > 0:
		sayPolicy(p, "The policy in force", in)
	default:
		p.Say("No policy is in force: no batch can be opened.")
	}
	if a.Next.Version > 0 && now.Before(a.NextAt) {
		p.Say("")
		sayPolicy(p, "The policy from "+render.Moment(a.NextAt)+" on", a.Next)
	}
	p.Say("")
	p.Table("nobody is enrolled", "PERSON,NUMBER,ROLES,FOR,PASSKEYS,COUNTS FROM,REVOKED", render.Mapped(roster.People, func(x policy.Person) []any {
		return []any{
			x.ID, x.Number, render.OrDash(strings.Join(x.Roles, " ")), render.OrDash(x.For), keysInForce(x), render.Moment(x.At.Add(policy.Settling)), render.MomentOr(x.RevokedAt, "-"),
		}
	}))
}

func sayPolicy(p *render.Page, title string, x policy.Policy) {
	p.Say("%s (version %d):", title, x.Version)
	for _, t := range x.Tiers {
		upTo := "any sum"
		if t.UpTo > 0 {
			upTo = "up to " + render.Decimal(t.UpTo, x.Currency)
		}
		levels := make([]string, len(t.Rules))
		for i, r := range t.Rules {
			levels[i] = fmt.Sprintf("%d × %s", r.Needed, r.Role)
		}
		p.Say("  %s: %s", upTo, strings.Join(levels, ", then "))
	}
	if x.LineFrom > 0 {
		p.Say("  a line of %s or more takes the next tier", render.Decimal(x.LineFrom, x.Currency))
	}
	if x.DayLimit > 0 {
		p.Say("  at most %s are sealed a day", render.Decimal(x.DayLimit, x.Currency))
	}
	p.Say("  approved within %s, paid until %s after the date; release %s; names checked: %s", render.Counted(int(x.ApproveWithin/time.Hour), "hour"), render.Counted(x.PayWithinDays, "day"), x.Release, x.NameCheck)
}
