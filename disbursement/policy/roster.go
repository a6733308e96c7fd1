package policy

import (
	"cmp"
	"slices"
	"time"
)

// Settling is how long after its enrolment a passkey, a role, a delegation or a policy begins to count. In this time
// the watchers can object.
const Settling = 24 * time.Hour

// Bounds of a roster. With them its entry stays below 1 MiB.
const (
	MaxPeople = 200 // in force
	MaxEver   = 800 // with those revoked, whose passkeys stay taken
	MaxKeys   = 10
	MaxRoles  = 10
)

// Roster is the people of one agency. The people are sorted by id and never removed: who was revoked stays so.
type Roster struct {
	People []Person
}

// Person is a member of the agency's staff.
type Person struct {
	// ID is the person's, and Number the staff number, which is unique in the agency.
	ID, Number string
	Roles      []string
	// For is the id of the one person for whom this one may approve until Until; empty for none.
	For   string
	Until time.Time
	// At is when roles and delegation were confirmed. They count after Settling.
	At   time.Time
	Keys []Key
	// RevokedAt is zero for a person in force.
	RevokedAt time.Time
}

// Key is a passkey.
type Key struct {
	// Hash is the SHA-256 of its public key as SubjectPublicKeyInfo.
	Hash [32]byte
	// At is when it was enrolled. It counts after Settling.
	At        time.Time
	RemovedAt time.Time
}

// counts reports whether the key may sign at a time.
func (k Key) counts(at time.Time) bool { return k.RemovedAt.IsZero() && !at.Before(k.At.Add(Settling)) }

// Find returns the person with an id.
func (r Roster) Find(id string) (Person, bool) {
	i, ok := slices.BinarySearchFunc(r.People, id, func(p Person, id string) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return Person{}, false
	}
	return r.People[i], true
}

// With returns the roster with a person, in place of the one with the same id.
func (r Roster) With(p Person) Roster {
	i, ok := slices.BinarySearchFunc(r.People, p.ID, func(p Person, id string) int { return cmp.Compare(p.ID, id) })
	people := slices.Clone(r.People)
	if ok {
		people[i] = p
	} else {
		people = slices.Insert(people, i, p)
	}
	return Roster{people}
}

// Count returns the number of people who are not revoked.
func (r Roster) Count() (n int) {
	for _, p := range r.People {
		if p.RevokedAt.IsZero() {
			n++
		}
	}
	return n
}

// Able returns the number of people who are not revoked and have a passkey, also one that does not count yet.
func (r Roster) Able() (n int) {
	for _, p := range r.People {
		if p.RevokedAt.IsZero() && slices.ContainsFunc(p.Keys, func(k Key) bool { return k.RemovedAt.IsZero() }) {
			n++
		}
	}
	return n
}

// InForce reports whether a person may act with a key at a time.
func (r Roster) InForce(id string, key [32]byte, at time.Time) bool {
	p, ok := r.Find(id)
	return ok && p.RevokedAt.IsZero() && slices.ContainsFunc(p.Keys, func(k Key) bool { return k.Hash == key && k.counts(at) })
}

// keys returns the hashes of the keys with which the person may sign at a time; none if the person is not in force.
func (p Person) keys(at time.Time) (out [][32]byte) {
	if !p.RevokedAt.IsZero() || at.Before(p.At.Add(Settling)) {
		return nil
	}
	for _, k := range p.Keys {
		if k.counts(at) {
			out = append(out, k.Hash)
		}
	}
	return out
}

// Same reports whether two ids are those of one human: they are equal, or have the same staff number. A person who was
// revoked and enrolled anew has two ids.
func (r Roster) Same(one, two string) bool {
	a, known := r.Find(one)
	b, other := r.Find(two)
	return one == two || known && other && a.Number != "" && a.Number == b.Number
}

func (p Person) has(role string) bool { return slices.Contains(p.Roles, role) }

// Level is a number of people of a list, as at sealing.
type Level struct {
	// Role is what the people of the list have. It is not signed: the signed form has the people.
	Role    string
	Needed  int
	Persons []Approver
}

// Approver is a person who may approve at a level.
type Approver struct {
	ID string
	// For is the person for whom a delegate stands; empty for a person who has the role.
	For string
	// Keys are SHA-256 of public keys as SubjectPublicKeyInfo.
	Keys [][32]byte
}

// principal returns whose approval it is.
func (a Approver) principal() string { return cmp.Or(a.For, a.ID) }

// Levels names the people of each rule at a time. The maker is no approver, neither as a delegate nor through one. ok is
// false if there are fewer people than needed.
func (r Roster) Levels(rules []Rule, maker string, at time.Time) (levels []Level, ok bool) {
	needed, all := 0, map[string]bool{}
	for _, rule := range rules {
		level := Level{Role: rule.Role, Needed: rule.Needed, Persons: r.approvers(rule.Role, maker, at)}
		own := map[string]bool{}
		for _, a := range level.Persons {
			own[a.principal()], all[a.principal()] = true, true
		}
		if len(own) < rule.Needed {
			return nil, false
		}
		needed += rule.Needed
		levels = append(levels, level)
	}
	return levels, len(all) >= needed
}

// approvers returns the people with a role, and the delegates of people with it.
func (r Roster) approvers(role, maker string, at time.Time) (out []Approver) {
	for _, p := range r.People {
		keys := p.keys(at)
		if len(keys) == 0 || r.Same(p.ID, maker) {
			continue
		}
		if p.has(role) {
			out = append(out, Approver{ID: p.ID, Keys: keys})
			continue
		}
		of, known := r.Find(p.For)
		if known && of.has(role) && of.RevokedAt.IsZero() && !r.Same(of.ID, maker) && at.Before(p.Until) {
			out = append(out, Approver{ID: p.ID, For: of.ID, Keys: keys})
		}
	}
	return out
}

// Holds reports whether the people of an approval may still give it for a role at a time: the person has the role, or
// stands at that time for another one who has it. Passkeys are not looked at (see InForce).
func (r Roster) Holds(a Approval, role string, at time.Time) bool {
	p, ok := r.Find(a.Person)
	if !ok || !p.RevokedAt.IsZero() {
		return false
	}
	if a.For == "" {
		return p.has(role)
	}
	of, ok := r.Find(a.For)
	return ok && of.RevokedAt.IsZero() && of.has(role) && p.For == a.For && at.Before(p.Until)
}
