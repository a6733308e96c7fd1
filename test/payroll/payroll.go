// Package payroll has what tests of disbursement batches share: people with passkeys, an agency's policy, and lines.
package payroll

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

// The agency, and the host and origin of the passkeys of its people.
const (
	Tenant = "018f0000-0000-7000-8000-000000000001"
	RPID   = "staff.example"
	Origin = "https://staff.example"
	Payee  = "242060000001"
)

// Person has a passkey.
type Person struct {
	ID   string
	key  ed25519.PrivateKey
	spki []byte
}

var (
	people   = map[string]Person{}
	peopleMu sync.Mutex
)

// Human returns the person with an id, whose key is made of it.
func Human(id string) Person {
	peopleMu.Lock()
	defer peopleMu.Unlock()
	p, ok := people[id]
	if !ok {
		seed := sha256.Sum256([]byte("seed " + id))
		p = Person{ID: id, key: ed25519.NewKeyFromSeed(seed[:])}
		p.spki, _ = x509.MarshalPKIXPublicKey(p.key.Public())
		people[id] = p
	}
	return p
}

// Hash names the person's passkey in rosters.
func (p Person) Hash() [32]byte { return sha256.Sum256(p.spki) }

// Sign signs a statement as a browser with the person's passkey does.
func (p Person) Sign(statement digest.Hash) assertion.Assertion {
	challenge := slices.Concat(make([]byte, 32), statement[:])
	client, _ := json.Marshal(map[string]any{
		"type": "webauthn.get", "challenge": base64.RawURLEncoding.EncodeToString(challenge), "origin": Origin, "crossOrigin": false,
	})
	host := sha256.Sum256([]byte(RPID))
	data := slices.Concat(host[:], []byte{5, 0, 0, 0, 1})
	sum := sha256.Sum256(client)
	return assertion.Assertion{
		PublicKey: p.spki, ClientData: client, AuthenticatorData: data, Signature: ed25519.Sign(p.key, slices.Concat(data, sum[:])),
	}
}

// Step is what a person signs about a batch with a digest.
func Step(batch digest.Hash, person string, level int, verdict digest.Verdict) disbursement.Signed {
	statement, err := digest.Step{Digest: batch, Level: level, Person: person, Verdict: verdict}.Statement()
	if err != nil {
		panic(err)
	}
	return disbursement.Signed{Person: person, Assertion: Human(person).Sign(statement)}
}

// Settle is what two people sign about a line of a batch with a digest: that it is paid, or that no attempt can pay.
func Settle(batch digest.Hash, l disbursement.Line, paid bool, reference string, ids ...string) disbursement.Settle {
	do := disbursement.Settle{Position: l.Position, Paid: paid, Reference: reference}
	for i, id := range ids {
		statement, err := l.Settlement(batch, paid, reference).Statement(id)
		if err != nil {
			panic(err)
		}
		do.Signed[i] = disbursement.Signed{Person: id, Assertion: Human(id).Sign(statement)}
	}
	return do
}

// Confirm has people sign the change of roster or policy with a number.
func Confirm(number int64, content map[string]string, ids ...string) (out []disbursement.Signed) {
	for _, id := range ids {
		statement, err := digest.Change{Agency: Tenant, Number: number, Content: content, Person: id}.Statement()
		if err != nil {
			panic(err)
		}
		out = append(out, disbursement.Signed{Person: id, Assertion: Human(id).Sign(statement)})
	}
	return out
}

// Enrolled is a person with a passkey, to be enrolled.
func Enrolled(id string, roles ...string) disbursement.Enrolled {
	return disbursement.Enrolled{ID: id, Number: "n-" + id, Roles: roles, Keys: [][32]byte{Human(id).Hash()}}
}

// Policy is a policy of one level: a chief.
func Policy() policy.Policy {
	return policy.Policy{
		Currency: "XAF", Tiers: []policy.Tier{{Rules: []policy.Rule{{Role: "chief", Needed: 1}}}}, ApproveWithin: 72 * time.Hour, PayWithinDays: 5,
		NameCheck: policy.CheckOff, Release: policy.ReleaseManual,
	}
}

// Opening opens a batch of a local date with two payout accounts, as ama prepares it.
func Opening(ref, date string) disbursement.Open {
	return disbursement.Open{
		BatchRef: ref, Scope: disbursement.ScopeAgency, Source: disbursement.SourceFile, Currency: "XAF", Date: date, Maker: "ama", ImportID: "i",
		Accounts: []disbursement.Payout{{Code: "mtn", Fingerprint: "f-mtn", PerSecond: 10}, {Code: "airtel", Fingerprint: "f-airtel", PerSecond: 10}},
	}
}

// Content is a line as its sealed bytes tell it. Tests seal by plain JSON.
type Content struct {
	Salt [32]byte
	Line digest.Line
}

// Line is a line of an amount from an account.
func Line(ref, account, corrects string, amount int64) disbursement.NewLine {
	return LineTo(Payee, ref, account, corrects, amount)
}

// LineTo is a line that pays a number.
func LineTo(payee, ref, account, corrects string, amount int64) disbursement.NewLine {
	c := Content{Salt: sha256.Sum256([]byte(ref)), Line: digest.Line{
		Amount: amount, Currency: "XAF", LineRef: ref, PayoutAccount: account, PaymentMode: "momo", Name: "PAYEE " + ref, MSISDN: payee, Corrects: corrects,
	}}
	leaf, err := digest.Leaf(c.Salt, c.Line)
	if err != nil {
		panic(err)
	}
	b, _ := json.Marshal(c)
	return disbursement.NewLine{Ref: ref, Account: account, Amount: amount, Leaf: leaf, Sealed: b, Corrects: corrects}
}
