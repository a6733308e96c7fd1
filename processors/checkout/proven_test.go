package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/decisions"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// signed returns the resolution of a late payment as the sink cases sends it, signed with keys.
func signed(t *testing.T, keys *secret.Keys, s checkout.Session, at time.Time, change func(do *checkout.Resolve, one, two *casework.Signed)) checkout.Resolve {
	t.Helper()
	c := s.Cases[len(s.Cases)-1]
	do := checkout.Resolve{CaseID: c.ID, Resolution: checkout.ResolutionHonour, Reason: "r", By: "One", ApprovedBy: "Two", Number: 1}
	one := casework.Signed{Person: "1", Name: "One", Group: s.TenantID, At: at}
	two := casework.Signed{Person: "2", Name: "Two", At: at}
	if change != nil {
		change(&do, &one, &two)
	}
	do.Digest = do.Terms(s, c, at).Digest
	var err error
	if do.Proposed, err = decisions.Sign(keys, do.Agreement(), casework.DecisionProposed, one); err != nil {
		t.Fatal(err)
	}
	if do.Approved, err = decisions.Sign(keys, do.Agreement(), casework.DecisionApproved, two); err != nil {
		t.Fatal(err)
	}
	return do
}

// Whoever may write the topic of commands sent a resolution of a late payment, and the processor completed the session.
// It decides now what two people have signed: this resolution of this case, in time, for this agency.
func TestResolutionsAreProven(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	defer i.process(func() time.Time { return now })()
	for _, id := range []string{"chs_a", "chs_b"} {
		i.send(create(id, "order "+id, now))
		paying := pay(id, now)
		i.send(paying[0], checkout.Command{At: now, SessionID: id, Do: checkout.Cancel{By: checkout.ByIntegrator}}, paying[1])
	}
	sessions := map[string]checkout.Session{}
	for _, e := range decode[record.Event](i, i.read(schemas.TopicEvents, 8)) {
		sessions[e.SessionID] = mapping.ToSession(e.Session)
	}
	a, b := sessions["chs_a"], sessions["chs_b"]
	if len(a.Cases) != 1 || len(b.Cases) != 1 {
		t.Fatalf("%+v, %+v", a.Cases, b.Cases)
	}
	honest := signed(t, i.keys, a, now, nil)
	changed := func(change func(*checkout.Resolve)) checkout.Resolve {
		do := honest
		change(&do)
		return do
	}
	attacks := []struct {
		name string
		do   checkout.Resolve
		want checkout.Code
	}{
		{"nobody has signed", changed(func(do *checkout.Resolve) { do.Proposed, do.Approved = nil, nil }), checkout.CodeUnsigned},
		{"only one has signed", changed(func(do *checkout.Resolve) { do.Approved = nil }), checkout.CodeUnsigned},
		{"the proposal stands for the approval", changed(func(do *checkout.Resolve) { do.Approved = do.Proposed }), checkout.CodeUnsigned},
		{"other keys", signed(t, secret.GenerateKeys(), a, now, nil), checkout.CodeUnsigned},
		{"another resolution", changed(func(do *checkout.Resolve) { do.Resolution, do.Reference = checkout.ResolutionRefund, "mine" }), checkout.CodeOtherContent},
		{"another reference", changed(func(do *checkout.Resolve) { do.Reference = "mine" }), checkout.CodeOtherContent},
		{"another proposal", changed(func(do *checkout.Resolve) { do.Number = 2 }), checkout.CodeOtherContent},
		{"one person", signed(t, i.keys, a, now, func(_ *checkout.Resolve, one, two *casework.Signed) { two.Person = one.Person }), checkout.CodeSamePerson},
		{"one name", signed(t, i.keys, a, now, func(_ *checkout.Resolve, _, two *casework.Signed) { two.Name = " oNe " }), checkout.CodeSamePerson},
		{"another agency's person", signed(t, i.keys, a, now, func(_ *checkout.Resolve, one, _ *casework.Signed) { one.Group = application }), checkout.CodeOtherGroup},
		{"approved before it was proposed", signed(t, i.keys, a, now, func(_ *checkout.Resolve, _, two *casework.Signed) { two.At = now.Add(-time.Hour) }), checkout.CodeApprovalLapsed},
		{"carried out long after", signed(t, i.keys, a, now, func(_ *checkout.Resolve, one, two *casework.Signed) {
			one.At, two.At = now.AddDate(0, 0, -8), now.AddDate(0, 0, -8)
		}), checkout.CodeApprovalLapsed},
	}
	for n, attack := range attacks {
		i.send(checkout.Command{At: now, SessionID: "chs_a", Do: attack.do, ReplyTo: &checkout.ReplyTo{CorrelationID: fmt.Sprint(n), Partition: 1}})
	}
	copied := honest
	copied.CaseID = b.Cases[0].ID
	i.send(checkout.Command{At: now, SessionID: "chs_b", Do: copied, ReplyTo: &checkout.ReplyTo{CorrelationID: "copied", Partition: 1}})
	i.send(checkout.Command{At: now, SessionID: "chs_a", Do: honest, ReplyTo: &checkout.ReplyTo{CorrelationID: "honest", Partition: 1}})

	codes := map[string]string{}
	for _, r := range decode[record.Reply](i, i.read(schemas.TopicReplies, 8+len(attacks)+2)) {
		codes[r.CorrelationID] = r.Code
	}
	for n, attack := range attacks {
		if got := codes[fmt.Sprint(n)]; got != string(attack.want) {
			t.Errorf("%s: %s, want %s", attack.name, got, attack.want)
		}
	}
	if codes["copied"] != string(checkout.CodeOtherContent) || codes["honest"] != string(checkout.CodeOK) {
		t.Errorf("copied: %s, honest: %s", codes["copied"], codes["honest"])
	}
	for _, e := range decode[record.Event](i, i.read(schemas.TopicEvents, 10)) {
		if e.SessionID == "chs_b" && e.Session.Status == string(checkout.StatusCompleted) {
			t.Error("the copied approval completed a session")
		}
	}
	families, err := i.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "quittance_processor_unproven_total" {
				counted += m.GetCounter().GetValue()
			}
		}
	}
	if counted != float64(len(attacks)+1) {
		t.Errorf("%v refusals are counted, want %d", counted, len(attacks)+1)
	}
}
