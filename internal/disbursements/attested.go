package disbursements

import (
	"fmt"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

// attested checks an approval of a batch after those that were checked: that its signature is over this batch, that it counts,
// and that the passkey was listed at the sealing. It returns what does not hold.
func attested(c digest.Batch, of digest.Hash, before []ProvenApproval, a disbursement.Approved) (out ProvenApproval, faults []string) {
	out = ProvenApproval{Level: a.Level, Person: a.Person, For: a.For, At: a.At, Key: a.Signed.Assertion.KeyHash()}
	statement, err := digest.Step{Digest: of, Level: a.Level, Person: a.Person, Verdict: digest.Approve}.Statement()
	if err != nil || a.Signed.Assertion.Verify(assertion.Party{RPID: c.RPID, Origin: c.Origin}, statement) != nil {
		faults = append(faults, fmt.Sprintf("the approval of %s at level %d is not signed over this batch", a.Person, a.Level))
	}
	// After those that were verified, not those that an event calls given before.
	var given []policy.Approval
	for _, x := range before {
		given = append(given, policy.Approval{Level: x.Level, Person: x.Person, For: x.For})
	}
	if counted, err := policy.Counts(c.Levels, given, c.Maker, a.Level, a.Person); err != nil || counted != a.Approval {
		faults = append(faults, fmt.Sprintf("%s does not count at level %d (%v)", a.Person, a.Level, err))
	}
	if !disbursement.SealedKey(c.Levels, a.Level, a.Signed) {
		faults = append(faults, fmt.Sprintf("%s is not listed at level %d with this passkey", a.Person, a.Level))
	}
	return out, faults
}

// lacking returns the levels that lack people, in words.
func lacking(c digest.Batch, given []ProvenApproval) (faults []string) {
	for i, l := range c.Levels {
		n := 0
		for _, a := range given {
			if a.Level == i+1 {
				n++
			}
		}
		if n < l.Needed {
			faults = append(faults, fmt.Sprintf("level %d has %d of %d approvals", i+1, n, l.Needed))
		}
	}
	return faults
}
