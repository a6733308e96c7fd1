package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// decisionKind is the kind of decisions about jobs, in what their steps sign.
const decisionKind = "job"

// digestOf returns the SHA-256 of what the rows of a job are about, in their order.
func digestOf(subjects []string) []byte {
	text, _ := json.Marshal(subjects) // texts always encode
	sum := sha256.Sum256(text)
	return sum[:]
}

// content is what people decide on.
func (j Job) content() map[string]string {
	return map[string]string{
		"job": j.ID, "kind": string(j.Kind), "conditions": j.conditions, "agency": j.AgencyID, "end": j.EndsAt.UTC().Format(time.RFC3339Nano),
		"count": strconv.Itoa(j.Total), "rows": hex.EncodeToString(j.rows),
	}
}

// agreement returns the signed steps of the job as they are stored.
func (j Job) agreement() casework.Agreement {
	a := casework.Agreement{Kind: decisionKind, Subject: j.ID, Digest: casework.Digest(j.content())}
	if !j.StartedAt.IsZero() {
		a.Proposed = &casework.Signed{Person: j.Maker.signedAs(), Name: j.Maker.Name, Group: j.Maker.Group, At: j.StartedAt, Signature: j.proposed}
	}
	if j.decidedID != "" {
		a.Approved = &casework.Signed{Person: j.decidedID, Name: j.Decider, Group: j.decidedGroup, At: j.DecidedAt, Signature: j.decided}
	}
	return a
}

// sign signs a step. pressed says that the passkey of a person on a page has signed it; its proof is stored then, and the id
// returned.
func (b By) sign(ctx context.Context, tx pgx.Tx, keys *secret.Keys, j Job, verdict casework.DecisionState, at time.Time, pressed bool) (signature []byte, proof *string, err error) {
	if b.acting.SignedIn() && pressed {
		what := identity.Statement{Kind: decisionKind, Subject: j.ID, Digest: hex.EncodeToString(casework.Digest(j.content())), Verdict: string(verdict), AgencyID: j.AgencyID}
		if b.prepares != nil {
			*b.prepares = what
			return nil, nil, identity.ErrPrepared
		}
		id, err := b.acting.Prove(ctx, tx, what)
		if err != nil {
			return nil, nil, err
		}
		proof = &id
	}
	who := b.maker()
	s, err := decisions.Sign(keys, j.agreement(), verdict, casework.Signed{Person: who.signedAs(), Name: who.Name, Group: who.Group, At: at})
	if err != nil {
		return nil, nil, err
	}
	return s.Signature, proof, nil
}

// Prepare checks a step on a page as far as the signature of the person's passkey, by the code that takes it, and returns what
// the passkey signs. take takes the step as the person that it is given. Nothing changes. A refusal is that of take.
func Prepare(by By, take func(By) error) (identity.Statement, error) {
	var s identity.Statement
	by.prepares = &s
	return identity.Prepared(&s, take(by))
}

// believed returns why the job is not carried out, as an *operation.Error; nil if it is: the steps are signed over its rows, in
// time, and those that need a passkey are proven. Another error says that it is not known.
func (j Job) believed(ctx context.Context, tx pgx.Tx, keys *secret.Keys, subjects []string, now time.Time) error {
	a := j.agreement()
	terms := casework.Terms{Digest: a.Digest, AgencyID: j.AgencyID, NeedsTwo: true}
	refuse := func(why error) error {
		return operation.Refuse(CodeNotBelieved, "", operation.Args{"why": why.Error()})
	}
	verify := decisions.Verify(keys)
	last := j.StartedAt
	switch {
	case j.Total != len(subjects), hex.EncodeToString(digestOf(subjects)) != hex.EncodeToString(j.rows):
		return refuse(casework.ErrOtherContent)
	case !j.NeedsTwo():
		if err := a.CheckProposal(terms, verify); err != nil {
			return refuse(err)
		}
	default:
		if err := a.Check(terms, verify); err != nil {
			return refuse(err)
		}
		last = j.DecidedAt
		if last.Sub(j.StartedAt) > ProposedLife {
			return refuse(casework.ErrLapsed)
		}
		fault, err := identity.Proves(ctx, tx, keys, j.decidedBy, a.Statement(casework.DecisionApproved, *a.Approved), *a.Approved, now)
		if err != nil {
			return err
		}
		if fault != nil {
			return refuse(fault)
		}
	}
	if last.After(now.Add(casework.ClocksDiffer)) || now.Sub(last) > runWithin {
		return refuse(casework.ErrLapsed)
	}
	return j.proposal(ctx, tx, keys, a, now, refuse)
}

// proposal returns why the maker's step does not count. One of the command line is signed with the master keys, which the pages
// do not have. What a person has signed on a page counts with the proof of a passkey where two people are needed.
func (j Job) proposal(ctx context.Context, tx pgx.Tx, keys *secret.Keys, a casework.Agreement, now time.Time, refuse func(error) error) error {
	statement := a.Statement(casework.DecisionProposed, *a.Proposed)
	if j.Maker.Kind != operation.ActorPerson {
		if !decisions.ByCommand(keys, statement, j.proposed) {
			return refuse(casework.ErrUnsigned)
		}
		return nil
	}
	if !j.NeedsTwo() || j.proposedBy == "" && decisions.ByCommand(keys, statement, j.proposed) { // a command has checked the person's key
		return nil
	}
	fault, err := identity.Proves(ctx, tx, keys, j.proposedBy, statement, *a.Proposed, now)
	if err != nil {
		return fmt.Errorf("reading the proof of a job: %w", err)
	}
	if fault != nil {
		return refuse(fault)
	}
	return nil
}
