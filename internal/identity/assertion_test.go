package identity_test

import (
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/internal/identity"
	"quittance/test/office"
	"quittance/test/registries"
)

// What a passkey signs about a batch verifies with the standard library alone, and only as what it is: another person, batch,
// level or verdict does not. The challenge serves once, in its session, for its statement.
func TestSignedAboutABatch(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "impots", []identity.Role{identity.RoleApprover}, "Awa", "Ben")
	awa, ben := o.Acting(t, "Awa"), o.Acting(t, "Ben")
	step := digest.Step{Digest: digest.Hash{7}, Level: 1, Person: awa.Person.ID, Verdict: digest.Approve}
	statement := func(change func(*digest.Step)) digest.Hash {
		s := step
		if change != nil {
			change(&s)
		}
		h, err := s.Statement()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	own := statement(nil)
	answer := func(a identity.Acting, name string, over digest.Hash) []byte {
		t.Helper()
		options, err := o.ChallengeOver(t.Context(), a, over, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := o.Devices[name][0].Answer(options)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	response := answer(awa, "Awa", own)
	_, err := o.Sign(t.Context(), awa, response, statement(func(s *digest.Step) { s.Verdict = digest.Release }))
	refusedBy(t, err, "record.changed", "")
	_, err = o.Sign(t.Context(), ben, response, own)
	refusedBy(t, err, "decision.challenge_over", "") // another session
	signed, err := o.Sign(t.Context(), awa, response, own)
	if err != nil {
		t.Fatal(err)
	}
	if signed.Person != awa.Person.ID {
		t.Errorf("signed by %s", signed.Person)
	}
	_, err = o.Sign(t.Context(), awa, response, own)
	refusedBy(t, err, "decision.challenge_over", "") // it serves once

	party := assertion.Party{RPID: office.Host, Origin: office.URL}
	if err := signed.Assertion.Verify(party, own); err != nil {
		t.Errorf("the signature does not verify: %v", err)
	}
	for what, other := range map[string]digest.Hash{
		"another batch":   statement(func(s *digest.Step) { s.Digest = digest.Hash{8} }),
		"another person":  statement(func(s *digest.Step) { s.Person = ben.Person.ID }),
		"another level":   statement(func(s *digest.Step) { s.Level = 2 }),
		"another verdict": statement(func(s *digest.Step) { s.Verdict = digest.Reject }),
	} {
		if signed.Assertion.Verify(party, other) == nil {
			t.Errorf("the signature verifies for %s", what)
		}
	}
	if signed.Assertion.Verify(assertion.Party{RPID: "other.example", Origin: office.URL}, own) == nil {
		t.Error("the signature verifies for another host")
	}

	// The key is the one by which a roster names the passkey, and only those of the roster are asked.
	keys := awa.Person.InForcePasskeys()
	first := [32]byte(keys[0].SPKIHash)
	if h := signed.Assertion.KeyHash(); h != first && h != [32]byte(keys[1].SPKIHash) {
		t.Error("the public key is none of the person's passkeys")
	}
	_, err = o.ChallengeOver(t.Context(), awa, own, [][32]byte{{1}})
	refusedBy(t, err, "decision.other_passkeys", "")
	if _, err := o.ChallengeOver(t.Context(), awa, own, [][32]byte{first}); err != nil {
		t.Error(err)
	}

	// A signature about a batch is none of a decision, and the reverse.
	decision := office.Statement("case_1")
	a, err := o.Answered(t.Context(), awa, answer(awa, "Awa", own))
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Prove(t, a, decision)
	refusedBy(t, err, "record.changed", "")

	late := answer(awa, "Awa", own)
	o.MoveTo(registries.Epoch.Add(6 * time.Minute))
	_, err = o.Sign(t.Context(), awa, late, own)
	refusedBy(t, err, "decision.challenge_over", "")
	var none disbursement.Signed
	if s, _ := o.Sign(t.Context(), awa, late, own); s.Person != none.Person {
		t.Error("a refusal returns a signature")
	}
}
