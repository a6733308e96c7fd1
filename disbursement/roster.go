package disbursement

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

// maxEnrolled is how many people one command enrols.
const maxEnrolled = 20

// agreed refuses a change of roster or policy that two people in force have not signed.
func (d *decider) agreed(r *Roster, content map[string]string, confirmed []Signed) (Answer, bool) {
	if len(confirmed) != 2 || confirmed[0].Person == confirmed[1].Person || confirmed[0].Assertion.KeyHash() == confirmed[1].Assertion.KeyHash() {
		return refuse(CodeNeedsTwo), false
	}
	for _, s := range confirmed {
		if !r.InForce(s.Person, s.Assertion.KeyHash(), d.cmd.At) {
			return refuse(CodeNotInForce), false
		}
		statement, err := digest.Change{Agency: r.TenantID, Number: r.Changes + 1, Content: content, Person: s.Person}.Statement()
		if err != nil || s.Assertion.Verify(assertion.Party{RPID: r.RPID, Origin: r.Origin}, statement) != nil {
			return refuse(CodeNotSigned), false
		}
	}
	return Answer{}, true
}

// Content returns what is signed of the change, for a mode.
func (do SetPolicy) Content(live bool) map[string]string {
	p := do.Policy
	p.Version = 0
	return map[string]string{"kind": "policy", "mode": Mode(live), "policy": hashOf(p)}
}

// Content returns what is signed of the change.
func (do Enrol) Content() map[string]string {
	return map[string]string{"kind": "roster", "people": hashOf(do.People)}
}

// hashOf returns the SHA-256 of the JSON of a value without maps, so that it is always the same.
func hashOf(v any) string {
	b, _ := json.Marshal(v) // these types always encode
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// setPolicy changes the policy of an agency and mode. It is in force a day later.
func (d *decider) setPolicy(do SetPolicy) Answer {
	if field, mend := do.Policy.Fault(); field != "" {
		return refuseField(CodePolicyFault, field, mend)
	}
	r := d.rosters.see(d.cmd.TenantID)
	if refusal, ok := d.agreed(r, do.Content(d.cmd.Live), do.Confirmed); !ok {
		return refusal
	}
	r = d.rosters.edit(d.cmd.TenantID)
	r.Changes++
	a := d.agencies.edit(d.cmd.agency())
	a.AgencyKey = d.cmd.agency()
	version := max(a.Policy.Version, a.Next.Version) + 1
	a.Policy = a.InForce(d.cmd.At)
	a.Next, a.NextAt = do.Policy, d.cmd.At.Add(policy.Settling)
	a.Next.Version = version
	d.emitAgency(EventPolicy, r, a, do.Confirmed, map[string]string{DetailVersion: strconv.FormatInt(version, 10)})
	return Answer{}
}

// enrol changes people. What it gives counts a day later.
func (d *decider) enrol(do Enrol) Answer {
	r := d.rosters.see(d.cmd.TenantID)
	first := len(r.People) == 0
	switch {
	case first && (len(do.People) != 2 || do.RPID == "" || do.Origin == ""):
		return refuseField(CodeRosterFault, "people", "enrol the first two people of the agency together, with host and origin of their passkeys")
	case first:
	case len(do.People) == 0 || len(do.People) > maxEnrolled:
		return refuseField(CodeRosterFault, "people", fmt.Sprintf("enrol 1 to %d people at once", maxEnrolled))
	default:
		if refusal, ok := d.agreed(r, do.Content(), do.Confirmed); !ok {
			return refusal
		}
	}
	people := r.Roster
	for i, e := range do.People {
		p, _ := people.Find(e.ID)
		if refusal, ok := e.fits(people, p, fmt.Sprintf("people[%d].", i)); !ok {
			return refusal
		}
		people = people.With(e.on(p, d.cmd.At))
	}
	switch {
	case people.Count() > policy.MaxPeople:
		return refuseField(CodeRosterFault, "people", fmt.Sprintf("an agency has at most %d people in force: revoke those who left", policy.MaxPeople))
	case len(people.People) > policy.MaxEver:
		return refuseField(CodeRosterFault, "people", fmt.Sprintf("an agency enrols at most %d people, with those revoked", policy.MaxEver))
	}
	r = d.rosters.edit(d.cmd.TenantID)
	r.TenantID, r.Roster = d.cmd.TenantID, people
	r.Changes++
	if first {
		r.RPID, r.Origin = do.RPID, do.Origin
	}
	d.emitAgency(EventRoster, r, nil, do.Confirmed, nil)
	return Answer{}
}

// fits refuses an enrolment that contradicts the roster. known is the person as enrolled before.
func (e Enrolled) fits(r policy.Roster, known policy.Person, field string) (Answer, bool) {
	switch {
	case e.ID == "" || !printable(e.ID) || e.Number == "" || !printable(e.Number):
		return refuseField(CodeRosterFault, field+"id", "give id and staff number in ASCII"), false
	case !known.RevokedAt.IsZero():
		return refuseField(CodeRosterFault, field+"id", "a revoked person stays so: enrol the person anew, under another id"), false
	case len(e.Roles) > policy.MaxRoles || len(known.Keys)+len(e.Keys) > policy.MaxKeys:
		return refuseField(CodeRosterFault, field+"roles", fmt.Sprintf("give at most %d roles and %d passkeys", policy.MaxRoles, policy.MaxKeys)), false
	case e.For == e.ID:
		return refuseField(CodeRosterFault, field+"for", "a delegate stands for another person"), false
	}
	for i, k := range e.Keys {
		if slices.Contains(e.Keys[:i], k) {
			return refuse(CodeKeyTaken), false
		}
	}
	for _, p := range r.People {
		// A staff number stays taken while its person is in force, a passkey for ever.
		if p.Number == e.Number && p.ID != e.ID && p.RevokedAt.IsZero() {
			return refuse(CodeNumberTaken), false
		}
		if slices.ContainsFunc(p.Keys, func(k policy.Key) bool { return slices.Contains(e.Keys, k.Hash) }) {
			return refuse(CodeKeyTaken), false
		}
	}
	return Answer{}, true
}

// on returns the person with what is enrolled.
func (e Enrolled) on(p policy.Person, at time.Time) policy.Person {
	keys := slices.Clone(p.Keys)
	for _, k := range e.Keys {
		keys = append(keys, policy.Key{Hash: k, At: at})
	}
	return policy.Person{ID: e.ID, Number: e.Number, Roles: e.Roles, For: e.For, Until: e.Until, At: at, Keys: keys}
}

// revoke ends a person or a passkey, at once and for ever, and holds the live batches that it could approve.
func (d *decider) revoke(do Revoke) Answer {
	r := d.rosters.see(d.cmd.TenantID)
	p, ok := r.Find(do.Person)
	if !ok {
		return refuse(CodePersonUnknown)
	}
	p.Keys = slices.Clone(p.Keys)
	if do.Key == ([32]byte{}) {
		if !p.RevokedAt.IsZero() {
			return Answer{Replayed: true}
		}
		p.RevokedAt = d.cmd.At
	} else {
		i := slices.IndexFunc(p.Keys, func(k policy.Key) bool { return k.Hash == do.Key })
		if i < 0 {
			return refuse(CodePersonUnknown)
		}
		if !p.Keys[i].RemovedAt.IsZero() {
			return Answer{Replayed: true}
		}
		p.Keys[i].RemovedAt = d.cmd.At
	}
	if r.Able() >= 2 && r.With(p).Able() < 2 {
		return refuseField(CodeRosterFault, "person", "two people with a passkey must stay, who sign changes: enrol another person or passkey first, and hold the batches until then")
	}
	r = d.rosters.edit(d.cmd.TenantID)
	r.Roster = r.With(p)
	r.Changes++
	d.emitAgency(EventRevoked, r, nil, nil, map[string]string{DetailPerson: do.Person})
	for _, live := range []bool{false, true} {
		for _, id := range d.agencies.see(AgencyKey{d.cmd.TenantID, live}).Batches {
			d.holdOf(id, do)
		}
	}
	return Answer{}
}

// holdOf holds a batch if it was sealed with the person, or with the removed passkey, or if the person made it.
func (d *decider) holdOf(id string, do Revoke) {
	b := d.batches.see(id)
	if b.Maker == do.Person && b.Status != StatusDraft && do.Key == ([32]byte{}) {
		d.hold(b, "", "the person who made it was revoked")
		return
	}
	for _, l := range d.sealings.see(id).Content.Levels {
		for _, p := range l.Persons {
			named := p.ID == do.Person || p.For == do.Person
			if do.Key != ([32]byte{}) {
				named = slices.Contains(p.Keys, do.Key)
			}
			if named {
				d.hold(b, "", "a person or a passkey of its approvers was revoked")
				return
			}
		}
	}
}

// emitAgency records an event of an agency.
func (d *decider) emitAgency(t EventType, r *Roster, a *Agency, confirmed []Signed, detail map[string]string) {
	e := Event{ID: eventID(r.TenantID, r.Changes), Type: t, TenantID: r.TenantID, Live: d.cmd.Live, At: d.cmd.At, Detail: detail, Confirmed: confirmed}
	roster := *r
	e.Roster = &roster
	if a != nil {
		agency := a.copied()
		e.Agency = &agency
	}
	d.out.Events = append(d.out.Events, e)
}
