package policy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/disbursement/policy"
)

func plain() policy.Policy {
	rules := func(role string) []policy.Rule { return []policy.Rule{{Role: role, Needed: 1}} }
	return policy.Policy{
		Currency: "XAF", Tiers: []policy.Tier{{UpTo: 100, Rules: rules("low")}, {UpTo: 1000, Rules: rules("high")}}, ApproveWithin: 72 * time.Hour,
		PayWithinDays: 5, NameCheck: policy.CheckNew, Release: policy.ReleaseManual,
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	if field, mend := plain().Fault(); field != "" || mend != "" {
		t.Errorf("%s: %s", field, mend)
	}
	for want, change := range map[string]func(*policy.Policy){
		"currency": func(p *policy.Policy) { p.Currency = "" }, "tiers": func(p *policy.Policy) { p.Tiers = nil },
		"line_from": func(p *policy.Policy) { p.LineFrom = -1 }, "day_limit": func(p *policy.Policy) { p.DayLimit = -1 },
		"approve_within": func(p *policy.Policy) { p.ApproveWithin = 0 }, "pay_within_days": func(p *policy.Policy) { p.PayWithinDays = 61 },
		"name_check": func(p *policy.Policy) { p.NameCheck = "some" }, "release": func(p *policy.Policy) { p.Release = "" },
		"watchers":           func(p *policy.Policy) { p.Watchers = make([]string, policy.MaxWatchers+1) },
		"tiers[0].up_to":     func(p *policy.Policy) { p.Tiers[0].UpTo = 0 },
		"tiers[1].up_to":     func(p *policy.Policy) { p.Tiers[1].UpTo = 100 },
		"tiers[0].levels":    func(p *policy.Policy) { p.Tiers[0].Rules = nil },
		"tiers[1].levels[0]": func(p *policy.Policy) { p.Tiers[1].Rules[0].Needed = 0 },
	} {
		p := plain()
		change(&p)
		if field, mend := p.Fault(); field != want || mend == "" {
			t.Errorf("%s: %s, %s", want, field, mend)
		}
	}
}

// The sum of the day chooses the tier; a large line raises it.
func TestRules(t *testing.T) {
	t.Parallel()
	p := plain()
	p.LineFrom, p.DayLimit = 80, 900
	for _, x := range []struct {
		sum, day, largest int64
		want              string
	}{
		{100, 0, 10, "low"},
		{60, 40, 10, "low"},
		{60, 41, 10, "high"},
		{101, 0, 10, "high"},
		{80, 0, 80, "high"},
		{500, 400, 500, "high"},
		{500, 401, 500, policy.ErrDayLimit.Error()},
	} {
		rules, err := p.Rules(x.sum, x.day, x.largest)
		got := fmt.Sprint(err)
		if err == nil {
			got = rules[0].Role
		}
		if got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	p.DayLimit = 0
	if _, err := p.Rules(1001, 0, 10); !errors.Is(err, policy.ErrAboveTiers) {
		t.Errorf("%v", err)
	}
}

// Of whatever levels and people, an approval counts once, and never the maker's, also through a delegate.
func TestCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := []string{"a", "b", "c", "d"}
		id := rapid.SampledFrom(ids)
		var levels []policy.Level
		for range rapid.IntRange(1, 3).Draw(t, "levels") {
			l := policy.Level{Needed: rapid.IntRange(1, 2).Draw(t, "needed")}
			for range rapid.IntRange(1, 4).Draw(t, "persons") {
				l.Persons = append(l.Persons, policy.Approver{ID: id.Draw(t, "id"), For: rapid.SampledFrom(append(ids, "", "", "")).Draw(t, "for")})
			}
			levels = append(levels, l)
		}
		maker := id.Draw(t, "maker")
		var given []policy.Approval
		used := map[string]bool{maker: true}
		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			level, person := rapid.IntRange(0, 4).Draw(t, "level"), id.Draw(t, "person")
			a, err := policy.Counts(levels, given, maker, level, person)
			if err != nil {
				continue
			}
			if a.Level != policy.Current(levels, given) || used[a.Person] || a.For != "" && a.For != a.Person && used[a.For] {
				t.Fatalf("%+v counts after %+v, made by %s", a, given, maker)
			}
			used[a.Person] = true
			if a.For != "" {
				used[a.For] = true
			}
			given = append(given, a)
		}
	})
}

// Who has too few people for a level, or for all levels together, seals nothing that nobody could approve.
func TestLevels(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	long := at.Add(-48 * time.Hour)
	person := func(id string, roles ...string) policy.Person {
		return policy.Person{ID: id, Number: id, Roles: roles, At: long, Keys: []policy.Key{{Hash: [32]byte{id[0]}, At: long}}}
	}
	var r policy.Roster
	delegate := person("d")
	delegate.For, delegate.Until = "b", at.Add(time.Hour)
	fresh := person("f", "chief")
	fresh.Keys[0].At = at.Add(-23 * time.Hour)
	gone := person("g", "chief")
	gone.RevokedAt = at.Add(-time.Minute)
	lost := person("l", "chief")
	lost.Keys[0].RemovedAt = at.Add(-time.Minute)
	for _, p := range []policy.Person{person("a", "chief"), person("b", "chief"), delegate, fresh, gone, lost} {
		r = r.With(p)
	}
	two := []policy.Rule{{Role: "chief", Needed: 2}}
	levels, ok := r.Levels(two, "x", at)
	if !ok || len(levels[0].Persons) != 3 || levels[0].Persons[2].For != "b" {
		t.Errorf("%+v", levels)
	}
	if _, ok := r.Levels(two, "a", at); ok {
		t.Error("a person and a delegate of the same person are two people")
	}
	if levels, ok := r.Levels([]policy.Rule{{Role: "chief", Needed: 1}}, "b", at); !ok || len(levels[0].Persons) != 1 {
		t.Errorf("a delegate of the maker may approve: %+v", levels)
	}
	if _, ok := r.Levels([]policy.Rule{{Role: "chief", Needed: 2}, {Role: "chief", Needed: 1}}, "x", at); ok {
		t.Error("three approvals of two people")
	}
	if levels, _ := r.Levels(two, "x", at.Add(2*time.Hour)); len(levels[0].Persons) != 3 || levels[0].Persons[2].ID != "f" {
		t.Errorf("after the delegation's end: %+v", levels)
	}
}
