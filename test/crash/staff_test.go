package crash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/test/harness"
)

// staff plays two members of operations who give back payments and resolve operator cases
// while the load runs, and the payers whose journey gave up.
type staff struct {
	stack  *harness.Stack
	load   *load
	cases  *cases.Store
	people [2]cases.By
	// program runs commands with the key of the first person.
	program *program.Program

	tried       map[string]int  // proposals about late payments, by case
	requested   map[string]bool // sessions for which a refund was requested
	outstanding atomic.Int64    // completed sessions for which it is not requested yet
	proposed    atomic.Int64
	parts       atomic.Int64   // refunds of one due of a cart that were requested
	refusals    map[string]int // of the service, by code
}

// honourTries is how often staff propose that a late payment completes its session. The
// service refuses that for ever when another cart has paid one of its dues.
const honourTries = 10

func newStaff(ctx context.Context, s *harness.Stack, l *load) (*staff, error) {
	p := &staff{stack: s, load: l, cases: cases.NewStore(s.Pool), tried: map[string]int{}, requested: map[string]bool{}, refusals: map[string]int{}}
	for i := range p.people {
		actor := operation.Actor{Kind: operation.ActorCommandLine, Name: "crash"}
		added, err := identity.AddStaff(ctx, s.Pool, s.Keys, actor, "", identity.StaffRequest{Name: fmt.Sprintf("Member %d", i)}, time.Now())
		if err != nil {
			return nil, err
		}
		p.people[i] = cases.By{Staff: added.Staff, Origin: "crash", Signer: s.Keys}
		if i == 0 {
			p.program = s.Program.With("QUITTANCE_STAFF_KEY=" + added.Secret.Reveal())
		}
	}
	return p, nil
}

// left reports whether staff leave a case open to the end: those whose id ends with a digit,
// one in three.
func left(id string) bool { return id[len(id)-1] <= '9' }

// run works until ctx ends.
func (p *staff) run(ctx context.Context) {
	for measure.Pause(ctx, 300*time.Millisecond) {
		p.load.approveAbandoned(ctx)
		p.refund(ctx)
		open, err := p.cases.List(ctx, nil, cases.Filter{State: cases.StateOpen})
		if err != nil {
			continue // PostgreSQL is being restored
		}
		for _, c := range open {
			if !left(c.ID) {
				p.resolve(ctx, c)
			}
		}
	}
}

// refund requests that completed payments are given back. A payment that failed, or that
// its citizen gave up, needs none.
func (p *staff) refund(ctx context.Context) {
	p.load.mu.Lock()
	refunds, parts := slices.Clone(p.load.refunds), slices.Clone(p.load.parts)
	p.load.mu.Unlock()
	var outstanding int64
	for _, session := range slices.Concat(refunds, parts) {
		if ctx.Err() != nil {
			return
		}
		if p.requested[session] {
			continue
		}
		var status string
		var open bool // by a request whose answer was lost
		var dues []string
		if err := p.stack.Pool.QueryRow(ctx, `SELECT status, EXISTS (SELECT FROM cases WHERE session_id = $1 AND kind = 'refund_request'), transactions
			FROM sessions WHERE id = $1`, session).Scan(&status, &open, &dues); err != nil || status != string(checkout.StatusCompleted) {
			continue
		}
		command := []string{"cases", "open", session, "--reason", "crash test"}
		part := slices.Contains(parts, session) && len(dues) > 1
		if part {
			command = append(command, "--due", dues[len(dues)-1])
		}
		switch {
		case open:
			p.requested[session] = true
		case p.program.Run(ctx, command...) == nil:
			p.requested[session] = true
			if part {
				p.parts.Add(1)
			}
		default:
			outstanding++
		}
	}
	p.outstanding.Store(outstanding)
}

// resolve proposes a resolution as one person and approves it as the other. A refusal is
// counted: after a restore of PostgreSQL a case may look open that is closed.
func (p *staff) resolve(ctx context.Context, c cases.Case) {
	request := cases.Request{CaseID: c.ID, Reason: "crash test", Reference: "evidence of " + c.ID}
	switch c.Kind {
	case checkout.CaseLatePayment:
		request.Resolution = checkout.ResolutionRefund
		// A payment whose due another cart has paid cannot be honoured.
		if p.tried[c.ID]++; c.ID[len(c.ID)-2] < 'm' && p.tried[c.ID] <= honourTries {
			request.Resolution, request.Reference = checkout.ResolutionHonour, ""
		}
	case checkout.CaseRefundRequest, checkout.CaseOrphan, checkout.CaseMismatch:
		request.Resolution = checkout.ResolutionRefund
	case checkout.CaseReversal:
		request.Resolution = casework.ResolutionAcknowledge
	default:
		p.load.surprise("a case of kind %s: %+v", c.Kind, c)
		return
	}
	if refusal, refused := errors.AsType[*operation.Error](p.agree(ctx, request)); refused {
		p.refusals[refusal.Code]++
	}
}

// agree proposes a resolution as one person and approves it as the other, if it needs two.
func (p *staff) agree(ctx context.Context, request cases.Request) error {
	detail, err := p.cases.Propose(ctx, p.people[0], request, time.Now())
	refusal, refused := errors.AsType[*operation.Error](err)
	switch {
	case err == nil:
		p.proposed.Add(1)
	case refused && refusal.Code == "case.proposal_waits":
		// The approval failed while PostgreSQL was away, or the sink carries it out now.
		detail, err = p.cases.Show(ctx, &p.people[1].Staff, request.CaseID, time.Now())
	}
	if n := len(detail.Proposals); err == nil && n > 0 && detail.Proposals[n-1].State == cases.ProposalOpen {
		_, err = p.cases.Approve(ctx, p.people[1], request.CaseID, n, time.Now())
	}
	return err
}

// unfinished returns how many proposals wait for the processor and how many cases staff has
// still to resolve.
func (w *witness) unfinished(ctx context.Context) (approved, unresolved int, err error) {
	store := cases.NewStore(w.stack.Pool)
	n, _, err := store.CountApproved(ctx)
	if err != nil {
		return 0, 0, err
	}
	open, err := store.List(ctx, nil, cases.Filter{State: cases.StateOpen})
	for _, c := range open {
		if !left(c.ID) {
			unresolved++
		}
	}
	return int(n), unresolved, err
}
