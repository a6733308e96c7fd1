package disbursements

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/ingress/staff"
	"quittance/money"
)

// Fields of the form of a policy. Those of a tier have its number behind them.
const (
	fieldCurrency  = "currency"
	fieldUpTo      = "up_to"
	fieldLevels    = "levels"
	fieldLineFrom  = "line_from"
	fieldDayLimit  = "day_limit"
	fieldApprove   = "approve_within"
	fieldPay       = "pay_within_days"
	fieldNameCheck = "name_check"
	fieldRelease   = "release"
)

// spareTiers is how many empty tiers the form has.
const spareTiers = 2

// policyInputs returns the fields of the form of a policy, with the newest one in them.
func (v *visit) policyInputs(a disbursement.Agency) []staff.Input {
	w := v.w
	p := a.Policy
	if a.Next.Version > p.Version {
		p = a.Next
	}
	c, known := money.Lookup(p.Currency)
	amount := func(minor int64) string {
		if minor == 0 || !known {
			return ""
		}
		return c.Decimal(minor)
	}
	out := []staff.Input{{Name: fieldCurrency, Label: w.Currency, Hint: w.CurrencyHint, Max: 3, Required: true, Value: p.Currency}}
	for i := range min(len(p.Tiers)+spareTiers, policy.MaxTiers) {
		var t policy.Tier
		if i < len(p.Tiers) {
			t = p.Tiers[i]
		}
		n := strconv.Itoa(i + 1)
		out = append(
			out,
			staff.Input{Name: fieldUpTo + n, Label: fmt.Sprintf(w.TierUpTo, i+1), Hint: w.UpToHint, Mode: "decimal", Max: 20, Value: amount(t.UpTo)},
			staff.Input{Name: fieldLevels + n, Label: fmt.Sprintf(w.TierLevels, i+1), Hint: w.LevelsHint, Max: 250, Value: rulesText(t.Rules)},
		)
	}
	hours, days := "", ""
	if p.NameCheck == "" {
		p.NameCheck = policy.CheckNew // what is proposed to an agency without a policy
	}
	if p.Version > 0 {
		hours, days = strconv.Itoa(int(p.ApproveWithin.Hours())), strconv.Itoa(p.PayWithinDays)
	}
	return append(
		out,
		staff.Input{Name: fieldLineFrom, Label: w.LineFrom, Hint: w.LineFromHint, Mode: "decimal", Max: 20, Value: amount(p.LineFrom)},
		staff.Input{Name: fieldDayLimit, Label: w.DayLimit, Hint: w.DayLimitHint, Mode: "decimal", Max: 20, Value: amount(p.DayLimit)},
		staff.Input{Name: fieldApprove, Label: w.ApproveWithin, Hint: w.ApproveHint, Mode: "numeric", Max: 4, Required: true, Value: hours},
		staff.Input{Name: fieldPay, Label: w.PayWithin, Hint: w.PayHint, Mode: "numeric", Max: 3, Required: true, Value: days},
		staff.Input{Name: fieldNameCheck, Label: w.NameCheck, Hint: w.NameCheckHint, Value: string(p.NameCheck), Options: []staff.Option{
			{Value: string(policy.CheckOff), Label: w.NameChecks[string(policy.CheckOff)]},
			{Value: string(policy.CheckNew), Label: w.NameChecks[string(policy.CheckNew)]},
			{Value: string(policy.CheckAll), Label: w.NameChecks[string(policy.CheckAll)]},
		}},
		staff.Input{Name: fieldRelease, Label: w.Release, Hint: w.ReleaseHint, Value: string(p.Release), Options: []staff.Option{
			{Value: string(policy.ReleaseManual), Label: w.Releases[string(policy.ReleaseManual)]}, {Value: string(policy.ReleaseOnDate), Label: w.Releases[string(policy.ReleaseOnDate)]},
		}},
	)
}

// policyOf reads a policy from its form. said is what is wrong with it: the field and the mend. Watchers stay those of the
// newest policy.
func (v *visit) policyOf(form url.Values, a disbursement.Agency) (p policy.Policy, said string) {
	w := v.w
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	c, ok := money.Lookup(strings.ToUpper(text(fieldCurrency)))
	if !ok {
		return p, v.fault(fieldCurrency)
	}
	faulty := ""
	amount := func(name, field string) int64 {
		if text(name) == "" {
			return 0
		}
		minor, err := c.ParseDecimal(strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "").Replace(text(name)))
		if (err != nil || minor <= 0) && faulty == "" {
			faulty = v.fault(field)
		}
		return minor
	}
	number := func(name string) int {
		n, err := strconv.Atoi(text(name))
		if err != nil && faulty == "" {
			faulty = v.fault(name)
		}
		return n
	}
	p = policy.Policy{
		Currency: c.Code(), LineFrom: amount(fieldLineFrom, fieldLineFrom), DayLimit: amount(fieldDayLimit, fieldDayLimit),
		ApproveWithin: time.Duration(number(fieldApprove)) * time.Hour, PayWithinDays: number(fieldPay),
		NameCheck: policy.NameCheck(text(fieldNameCheck)), Release: policy.Release(text(fieldRelease)), Watchers: a.Policy.Watchers,
	}
	if a.Next.Version > a.Policy.Version {
		p.Watchers = a.Next.Watchers
	}
	for i := range policy.MaxTiers {
		n := strconv.Itoa(i + 1)
		if text(fieldUpTo+n) == "" && text(fieldLevels+n) == "" {
			continue
		}
		tier := policy.Tier{UpTo: amount(fieldUpTo+n, fmt.Sprintf("tiers[%d].up_to", i))}
		for _, level := range strings.FieldsFunc(text(fieldLevels+n), func(r rune) bool { return r == ',' || r == ';' }) {
			role, needed, _ := strings.Cut(strings.TrimSpace(level), " ")
			k, err := strconv.Atoi(strings.TrimSpace(needed))
			if (err != nil || !plainRole(role)) && faulty == "" {
				faulty = v.fault(fmt.Sprintf("tiers[%d].levels", i))
			}
			tier.Rules = append(tier.Rules, policy.Rule{Role: role, Needed: k})
		}
		p.Tiers = append(p.Tiers, tier)
	}
	if faulty != "" {
		return p, faulty
	}
	if field, _ := p.Fault(); field != "" {
		return p, w.Refusals[string(disbursement.CodePolicyFault)] + w.Colon + v.fault(field)
	}
	return p, ""
}

// fault returns the field of a refusal and its mend: "tiers[1].up_to" is named as tier 2.
func (v *visit) fault(field string) string {
	name, tier := field, ""
	if rest, ok := strings.CutPrefix(field, "tiers["); ok {
		number, part, _ := strings.Cut(rest, "].")
		if n, err := strconv.Atoi(number); err == nil {
			tier = fmt.Sprintf(v.w.Tier, n+1) + v.w.Colon
		}
		name, _, _ = strings.Cut(part, "[")
	} else if rest, ok := strings.CutPrefix(field, "people["); ok {
		_, name, _ = strings.Cut(rest, "].")
	}
	mend, ok := v.w.Mends[name]
	if !ok {
		return tier + field
	}
	return tier + mend
}
