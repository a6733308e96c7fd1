package casework_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
)

// A decision is approved by another person than its proposer, while both may act, within its
// life, and once. Nothing changes a decision that was taken.
func TestDecisionTakesTwoPeople(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		people := map[string]casework.Person{}
		for _, id := range []string{"a", "b", "c"} {
			people[id] = casework.Person{ID: id, InForce: true}
		}
		who := rapid.SampledFrom([]string{"a", "b", "c"})
		now := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
		d := casework.Decision{
			State: casework.DecisionProposed, ProposedBy: who.Draw(t, "proposer"), ProposedAt: now,
			Life: rapid.SampledFrom([]time.Duration{0, 3 * time.Hour}).Draw(t, "life"), Alone: rapid.Bool().Draw(t, "alone"),
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "hours")) * time.Hour)
			by, proposer, before := people[who.Draw(t, "who")], people[d.ProposedBy], d.State
			switch rapid.SampledFrom([]string{"approve", "reject", "revoke"}).Draw(t, "what") {
			case "approve":
				if d.MayApprove(now, by, proposer) == nil {
					if !d.Alone && by.ID == d.ProposedBy {
						t.Fatal("approved by its proposer")
					}
					if !by.InForce || !proposer.InForce {
						t.Fatal("approved by or for somebody who was revoked")
					}
					if d.Life > 0 && now.Sub(d.ProposedAt) >= d.Life {
						t.Fatal("approved after its life")
					}
					d.State = casework.DecisionApproved
				}
			case "reject":
				if d.MayReject(by) == nil {
					if !by.InForce {
						t.Fatal("rejected by somebody who was revoked")
					}
					d.State = casework.DecisionRejected
				}
			case "revoke":
				by.InForce = false
				people[by.ID] = by
			}
			if before != casework.DecisionProposed && d.State != before {
				t.Fatalf("a decision that was %s is %s", before, d.State)
			}
		}
	})
}

// The reason says which rule a person meets.
func TestDecisionReasons(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	proposer, second := casework.Person{ID: "a", InForce: true}, casework.Person{ID: "b", InForce: true}
	revoked := func(p casework.Person) casework.Person { return casework.Person{ID: p.ID} }
	d := casework.Decision{State: casework.DecisionProposed, ProposedBy: "a", ProposedAt: at, Life: time.Hour}
	in := func(s casework.DecisionState) casework.Decision {
		d := d
		d.State = s
		return d
	}
	alone, forever := d, d
	alone.Alone, forever.Life = true, 0
	for name, c := range map[string]struct {
		d            casework.Decision
		after        time.Duration
		by, proposer casework.Person
		want         error
	}{
		"another person":            {d, time.Minute, second, proposer, nil},
		"at the last moment":        {d, time.Hour - 1, second, proposer, nil},
		"at its end":                {d, time.Hour, second, proposer, casework.ErrLapsed},
		"without an end":            {forever, 1000 * time.Hour, second, proposer, nil},
		"the proposer":              {d, time.Minute, proposer, proposer, casework.ErrSamePerson},
		"the proposer alone":        {alone, time.Minute, proposer, proposer, nil},
		"a revoked person":          {d, time.Minute, revoked(second), proposer, casework.ErrRevoked},
		"of a revoked proposer":     {d, time.Minute, second, revoked(proposer), casework.ErrLapsed},
		"again":                     {in(casework.DecisionApproved), time.Minute, second, proposer, casework.ErrDecided},
		"after a rejection":         {in(casework.DecisionRejected), time.Minute, second, proposer, casework.ErrDecided},
		"after it was marked":       {in(casework.DecisionLapsed), time.Minute, second, proposer, casework.ErrLapsed},
		"approved, and now too old": {in(casework.DecisionApproved), 2 * time.Hour, second, revoked(proposer), casework.ErrDecided},
	} {
		if err := c.d.MayApprove(at.Add(c.after), c.by, c.proposer); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := d.MayReject(proposer); err != nil {
		t.Errorf("a withdrawal: %v", err)
	}
	if err := d.MayReject(revoked(proposer)); !errors.Is(err, casework.ErrRevoked) {
		t.Errorf("a withdrawal by a revoked person: %v", err)
	}
	if err := in(casework.DecisionApproved).MayReject(second); !errors.Is(err, casework.ErrDecided) {
		t.Errorf("a rejection after the approval: %v", err)
	}
}
