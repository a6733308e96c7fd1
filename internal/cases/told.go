package cases

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"quittance/casework"
	"quittance/checkout"
)

// Told is an event of cases.events, as whoever carries out what people agreed on has read it. Whoever can write the
// topic can write one: only the signatures in it prove something.
type Told struct {
	ID     string // of the event
	Event  checkout.EventType
	Detail map[string]string
}

// number returns the number of the proposal that the event is about; 0 for none.
func (t Told) number() int {
	n, _ := strconv.Atoi(t.Detail[checkout.DetailProposal])
	return n
}

// Agreed returns what people agreed on in the case: the first approval among its events that two people have signed,
// about the case as the caller knows it, and in time. It is nil if there is none. unproven are the approvals before
// it, and why each does not count, by the ids of the events. Nobody's revocation is known here.
func (c Case) Agreed(events []Told, now time.Time, verify casework.Verify) (agreed *Approved, unproven map[string]checkout.Code) {
	unproven = map[string]checkout.Code{}
	var proposals []casework.Agreement
	for _, e := range events {
		if e.Event != checkout.EventCaseApproved {
			continue
		}
		a := c.step(e)
		err := a.Agreement.CheckApproval(c.termsOf(e, now), verify)
		if err == nil {
			if proposals == nil { // not before: a flood of forged steps then costs one check each
				proposals = c.proposed(events, now, verify)
			}
			if a, err = a.with(proposals, c.termsOf(e, now), verify); err == nil {
				return &a, unproven
			}
		}
		unproven[e.ID] = checkout.ApprovalCode(err)
	}
	return nil, unproven
}

// step returns what an event says that somebody proposed or approved.
func (c Case) step(e Told) Approved {
	digest, step := checkout.SignedStep(e.Detail)
	a := Approved{
		CaseID: c.ID, Number: e.number(), Resolution: casework.Resolution(e.Detail[checkout.DetailResolution]), Reference: e.Detail[checkout.DetailReference], Reason: e.Detail[checkout.DetailReason],
		Agreement: casework.Agreement{Kind: checkout.DecisionOfCase, Subject: checkout.Subject(c.ID, e.number()), Digest: digest},
	}
	if e.Event == checkout.EventCaseProposed {
		a.Agreement.Proposed = step
	} else {
		a.Agreement.Approved = step
	}
	return a
}

// proposed returns the proposals that their events prove, each once.
func (c Case) proposed(events []Told, now time.Time, verify casework.Verify) (out []casework.Agreement) {
	for _, e := range events {
		if e.Event != checkout.EventCaseProposed {
			continue
		}
		a := c.step(e).Agreement
		known := a.Proposed == nil || slices.ContainsFunc(out, func(b casework.Agreement) bool { return bytes.Equal(b.Proposed.Signature, a.Proposed.Signature) })
		if !known && a.CheckProposal(c.termsOf(e, now), verify) == nil {
			out = append(out, a)
		}
	}
	return out
}

// with returns the approval with the proposal that it approves, and why the two do not count.
func (a Approved) with(proposals []casework.Agreement, t casework.Terms, verify casework.Verify) (Approved, error) {
	err := casework.ErrUnsigned
	for _, p := range proposals {
		if p.Subject != a.Agreement.Subject || !bytes.Equal(p.Digest, a.Agreement.Digest) {
			continue
		}
		a.Agreement.Proposed = p.Proposed
		if err = a.Agreement.Check(t, verify); err == nil {
			by := a.Agreement.Approved
			a.Proposer, a.Decider, a.DecidedBy, a.DecidedAt = p.Proposed.Name, by.Name, by.Person, by.At
			break
		}
	}
	return a, err
}

// termsOf returns what the step of an event must fit.
func (c Case) termsOf(e Told, now time.Time) casework.Terms {
	return c.terms(e.number(), casework.Resolution(e.Detail[checkout.DetailResolution]), e.Detail[checkout.DetailReference], e.Detail[checkout.DetailReason], now)
}
