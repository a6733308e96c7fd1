package cases

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/decisions"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/money"
)

// Lengths in characters. The reference of a match by hand names other cases, 50 at least.
const (
	maxReason    = 500
	maxReference = 200
	maxMatched   = 2000
)

// By is the person who acts, and the machine or address that the person uses.
type By struct {
	Staff  identity.Staff
	Origin string
	// Signer signs what the person decides. It is required for proposals and approvals.
	Signer decisions.Signer
	// Acting is the person's sign-in on a page, whose passkey signs proposals and approvals; the zero value for one who acts
	// with a key.
	Acting identity.Acting
}

// still refuses a person on a page whose roles allow it no more. Of one who acts with a key no role is asked.
func (b By) still(ctx context.Context, tx pgx.Tx, p identity.Permission, c Case) error {
	if !b.Acting.SignedIn() {
		return nil
	}
	_, err := b.Acting.Still(ctx, tx, p, c.AgencyID)
	return err
}

// at returns the time of a step: that in the statement that the passkey has signed, else now.
func (b By) at(now time.Time) time.Time {
	if b.Acting.Proven() {
		return b.Acting.SignedAt()
	}
	return now
}

func (b By) actor() operation.Actor { return b.Staff.Actor(b.Origin) }

// Request proposes a resolution.
type Request struct {
	CaseID     string
	Resolution casework.Resolution
	// Reference names the refund or the evidence. All resolutions but honour, retry, match and the
	// acknowledgement of poison and of a refund request need one. Of a match by hand it names the
	// cases of the other breaks, which a break with both sides does not need.
	Reference string
	Reason    string
}

// Propose stores a proposal. Below the agency's single_approval_below it is approved at
// once, unless it is to be recorded by hand, which always takes two people, or the person is signed in on a page. On a page
// by bears the answer of the passkey to ProposalStatement: record.changed refuses when it has signed another proposal than
// the one that would be stored. now is the time of the service's clock. A refusal is an *operation.Error with the
// field id, resolution, reason or reference, or one of identity.Acting.Prove. After an error nothing has changed.
func (s *Store) Propose(ctx context.Context, by By, req Request, now time.Time) (d Detail, err error) {
	err = s.tx(ctx, "proposing a resolution", func(tx pgx.Tx) error {
		c, p, me, err := s.proposal(ctx, tx, by, req, now)
		if err != nil {
			return err
		}
		if err := lapse(ctx, tx, c.ID, now); err != nil {
			return err
		}
		if err := propose(ctx, tx, by, c, p, p.step(by, me, now), map[string]any{"reference": req.Reference}); err != nil {
			return err
		}
		alone, err := s.mayAlone(ctx, tx, c, req.Resolution)
		if err != nil {
			return err
		}
		if alone && !by.Acting.SignedIn() {
			onPages, err := identity.NeedsPasskeys(ctx, tx, by.Staff.AgencyID, now)
			if err != nil {
				return err
			}
			alone = !onPages // the proposal waits: a passkey approves it
		}
		if alone && !by.Acting.SignedIn() { // on a page the passkey signs the approval, which is a step of its own
			own := p.step(by, me, now)
			own.Decision.Alone = true
			if err := s.approve(ctx, tx, by, c, p, own); err != nil {
				return err
			}
		}
		d, err = s.show(ctx, tx, &by.Staff, c.ID, now)
		return err
	})
	return d, err
}

// proposal checks what a person proposes, and returns it as it would be stored. It changes nothing.
func (s *Store) proposal(ctx context.Context, tx pgx.Tx, by By, req Request, now time.Time) (c Case, p Proposal, me identity.Staff, err error) {
	if c, err = lockOpen(ctx, tx, by, req.CaseID); err != nil {
		return c, p, me, err
	}
	if _, err := req.check(c); err != nil {
		return c, p, me, err
	}
	if me, err = mayResolve(ctx, tx, s.keys, by, c); err != nil {
		return c, p, me, err
	}
	if err := by.still(ctx, tx, identity.MayPropose, c); err != nil {
		return c, p, me, err
	}
	number, err := s.nextNumber(ctx, tx, by, c, now)
	if err != nil {
		return c, p, me, err
	}
	p = Proposal{
		CaseID: c.ID, Number: number, State: ProposalOpen, Resolution: req.Resolution, Reference: req.Reference, Reason: req.Reason,
		ProposedBy: me.ID, ProposedAt: by.at(now), from: me.Person(),
	}
	return c, p, me, req.checkOthers(ctx, tx, by, c)
}

// ProposalStatement returns what the person's passkey signs to propose a resolution on a page. number is that of the
// proposal on the page: case.changed refuses when the case has another number of proposals since. Other refusals are
// those of Propose. Nothing has changed afterwards.
func (s *Store) ProposalStatement(ctx context.Context, by By, req Request, number int, now time.Time) (out identity.Statement, err error) {
	err = s.tx(ctx, "preparing a proposal", func(tx pgx.Tx) error {
		c, p, _, err := s.proposal(ctx, tx, by, req, now)
		if err != nil {
			return err
		}
		if p.Number != number {
			return operation.Refuse("case.changed", "", nil)
		}
		out = statement(c, p, casework.DecisionProposed, false)
		return nil
	})
	return out, err
}

// step returns a step of a person about the proposal, but for how it is stored. It has the time that the person's passkey
// has signed, if it has.
func (p Proposal) step(by By, me identity.Staff, now time.Time) decisions.Step {
	return decisions.Step{
		Decision: p.decision(), Proposer: p.from, By: me.Person(), Actor: by.actor(), At: by.at(now),
		Refusals: map[error]error{
			casework.ErrSamePerson: operation.Refuse("case.second_person", "", nil),
			casework.ErrLapsed:     operation.Refuse("case.proposal_over", "id", operation.Args{"number": p.Number, "state": ProposalLapsed}),
			casework.ErrDecided:    operation.Refuse("case.no_proposal", "id", nil),
		},
	}
}

// propose stores a proposal, on a page with the proof of the passkey. detail is what the audit table has beside its number,
// resolution and proof.
func propose(ctx context.Context, tx pgx.Tx, by By, c Case, p Proposal, s decisions.Step, detail map[string]any) error {
	s.Store = func() (operation.Entry, error) {
		var proof *string
		if by.Acting.SignedIn() {
			id, err := by.Acting.Prove(ctx, tx, statement(c, p, casework.DecisionProposed, false))
			if err != nil {
				return operation.Entry{}, err
			}
			proof, detail["proof"] = &id, id
		}
		signed, err := p.sign(by, c, casework.DecisionProposed, casework.Signed{Person: s.By.ID, Name: s.By.Name, Group: by.Staff.AgencyID, At: s.At})
		if err != nil {
			return operation.Entry{}, err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO case_proposals (case_id, number, state, session_id, resolution, reference, reason, proposed_by, proposer, proposed_at, digest, proposed_signature, proposed_proof)
			VALUES ($1, $2, 'open', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			c.ID, p.Number, sessionOf(c), string(p.Resolution), p.Reference, p.Reason, s.By.ID, s.By.Name, s.At, p.Digest, signed.Signature, proof)
		detail["proposal"], detail["resolution"] = p.Number, p.Resolution
		return entry("case.propose", c, detail), err
	}
	return decisions.Propose(ctx, tx, s)
}

// oneApproves reports whether a resolution needs no second person. The difference of a break
// counts without its sign. One of zero says nothing of the money at stake.
func (c Case) oneApproves(exit casework.Exit, below int64) bool {
	switch {
	case c.Currency != money.Default || exit.NeedsTwo:
		return false
	case c.Kind == KindBreak && c.Amount == 0:
		return false
	case c.Amount < 0:
		return -c.Amount < below
	}
	return c.Amount < below
}

// checkOthers refuses a match by hand with cases that are no open breaks of the same account, or
// whose differences do not cancel each other out.
func (req Request) checkOthers(ctx context.Context, tx pgx.Tx, by By, c Case) error {
	if req.Resolution != ResolutionMatchByHand {
		return nil
	}
	sum := c.Amount
	seen := map[string]bool{c.ID: true}
	for _, id := range Others(req.Reference) {
		other, err := find(ctx, tx, &by.Staff, id, "")
		if err != nil || seen[id] || other.Kind != KindBreak || !other.Open() || other.EndedAs != "" || other.AgencyID != c.AgencyID || other.Mode != c.Mode ||
			other.Evidence[EvidenceLedger] != c.Evidence[EvidenceLedger] || other.Currency != c.Currency {
			if err != nil && !errors.As(err, new(*operation.Error)) {
				return err
			}
			return operation.Refuse("case.no_break_to_match", "reference", operation.Args{"case": id})
		}
		seen[id] = true
		sum += other.Amount
	}
	switch {
	case len(seen) == 1 && (c.Evidence[EvidenceExpected] == "" || c.Evidence[EvidenceLines] == ""):
		return operation.Refuse("case.nothing_to_match", "reference", nil)
	case sum != 0:
		return operation.Refuse("case.sums_differ", "reference", operation.Args{"difference": sum, "currency": c.Currency})
	}
	return nil
}

// check refuses a request that does not fit the case, and returns the exit that it proposes.
func (req Request) check(c Case) (casework.Exit, error) {
	exit, ok := Catalog().Exit(c.Kind, req.Resolution)
	most := maxReference
	if req.Resolution == ResolutionMatchByHand {
		most = maxMatched
	}
	switch {
	case !ok:
		return exit, operation.Refuse("case.resolution_not_allowed", "resolution", operation.Args{"kind": c.Kind, "allowed": names(Catalog().Allowed(c.Kind))})
	case !form.IsLine(req.Reason, maxReason):
		return exit, operation.Refuse("case.reason_malformed", "reason", operation.Args{"most": maxReason})
	case req.Resolution == checkout.ResolutionHonour && c.nobodys():
		return exit, operation.Refuse("case.not_asked_for", "resolution", operation.Args{})
	case req.Resolution == checkout.ResolutionHonour && c.lacks():
		owed, currency, _ := c.Owed()
		return exit, operation.Refuse("case.too_little", "resolution", operation.Args{"amount": c.Amount, "currency": c.Currency, "owed": owed, "owed_currency": currency})
	case req.Reference == "" && exit.NeedsReference:
		return exit, operation.Refuse("case.reference_missing", "reference", operation.Args{"resolution": req.Resolution})
	case req.Reference != "" && !form.IsLine(req.Reference, most):
		return exit, operation.Refuse("case.reference_malformed", "reference", operation.Args{"most": most})
	}
	return exit, nil
}

// nobodys reports whether the money was not asked for, so that it pays no session.
func (c Case) nobodys() bool {
	_, _, asked := c.Owed()
	return c.Kind == checkout.CaseOrphan && !asked
}

// lacks reports whether less than the payer owed was reported, or another currency.
func (c Case) lacks() bool {
	owed, currency, known := c.Owed()
	return known && (c.Currency != currency || c.Amount < owed)
}

func names[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = string(r)
	}
	return out
}

// lockOpen locks an open case that the person may see. Every transaction locks the case
// before its proposals and before staff.
func lockOpen(ctx context.Context, tx pgx.Tx, by By, id string) (Case, error) {
	c, err := find(ctx, tx, &by.Staff, id, "FOR UPDATE")
	if err == nil && !c.Open() {
		err = operation.Refuse("case.closed", "id", operation.Args{"resolution": c.Resolution, "at": c.ClosedAt})
	}
	if err == nil && c.EndedAs != "" {
		err = operation.Refuse("case.closed", "id", operation.Args{"resolution": c.EndedAs, "at": c.EndedAt})
	}
	return c, err
}

// mayResolve refuses a person who is revoked, or who took or gave back the cash. It returns the
// person as of the transaction.
func mayResolve(ctx context.Context, tx pgx.Tx, keys *secret.Keys, by By, c Case) (me identity.Staff, err error) {
	if me, err = identity.LockInForce(ctx, tx, keys, by.Staff); err != nil {
		return me, err
	}
	own := slices.ContainsFunc(c.Clerks, func(code string) bool { return me.IsClerk(c.AgencyID, code) })
	if !own && me.AnyClerk(c.AgencyID) {
		own, err = ofCash(ctx, tx, keys, c)
	}
	if own {
		err = operation.Refuse("case.own_cash", "", nil)
	}
	return me, err
}

// ofCash reports whether a case of the matcher is about an account of the counters. It does not name
// the clerks who took the cash, so no clerk of the agency resolves it, and nobody alone.
func ofCash(ctx context.Context, tx pgx.Tx, keys *secret.Keys, c Case) (cash bool, err error) {
	if c.Evidence[EvidenceLedger] == "" {
		return false, nil
	}
	return registry.StatementAccountKey{AgencyID: c.AgencyID, Live: c.Mode == mode(true), Code: c.Evidence[EvidenceLedger]}.TakesCash(ctx, tx, keys)
}

// nextNumber returns the number of a new proposal. A proposal that has lapsed makes room (lapse).
func (s *Store) nextNumber(ctx context.Context, tx pgx.Tx, by By, c Case, now time.Time) (int, error) {
	d, err := s.show(ctx, tx, &by.Staff, c.ID, now)
	if err != nil {
		return 0, err
	}
	for _, p := range d.Proposals {
		switch p.State {
		case ProposalOpen, ProposalApproved:
			return 0, operation.Refuse("case.proposal_waits", "id", operation.Args{"number": p.Number, "state": p.State, "resolution": p.Resolution, "proposer": p.Proposer})
		case ProposalLapsed, ProposalCarriedOut, ProposalRefused, ProposalRejected, ProposalVoid:
		}
	}
	return len(d.Proposals) + 1, nil
}

// lapse ends the open proposal of a case of which nextNumber has found that it has lapsed.
func lapse(ctx context.Context, tx pgx.Tx, id string, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE case_proposals SET state = 'lapsed', finished_at = $2 WHERE case_id = $1 AND state = 'open'`, id, now)
	return err
}

// sessionOf returns the session whose processor carries a resolution out; nil for a case
// without a session.
func sessionOf(c Case) *string {
	if !c.InSession {
		return nil
	}
	return &c.SessionID
}

// entry returns the entry of the audit table about an operation on a case.
func entry(action string, c Case, detail map[string]any) operation.Entry {
	detail["kind"] = c.Kind
	return operation.Entry{Action: action, Subject: c.ID, AgencyID: c.AgencyID, Detail: detail}
}

// Approve approves a proposal of another person; on a page, also one's own below the agency's single_approval_below.
// number may be 0 when the case has had one proposal. now is the time of the service's clock. A refusal is an
// *operation.Error with the field id or proposal. After an error nothing has changed.
func (s *Store) Approve(ctx context.Context, by By, id string, number int, now time.Time) (d Detail, err error) {
	err = s.tx(ctx, "approving a proposal", func(tx pgx.Tx) error {
		c, p, step, err := s.approval(ctx, tx, by, id, number, now)
		if err != nil {
			return err
		}
		if err := s.believed(ctx, tx, by, c, p, now); err != nil {
			return err
		}
		if err := s.approve(ctx, tx, by, c, p, step); err != nil {
			return err
		}
		d, err = s.show(ctx, tx, &by.Staff, id, now)
		return err
	})
	return d, err
}

// approval reads a proposal and prepares the step of the person who approves it.
func (s *Store) approval(ctx context.Context, tx pgx.Tx, by By, id string, number int, now time.Time) (c Case, p Proposal, step decisions.Step, err error) {
	if c, err = lockOpen(ctx, tx, by, id); err != nil {
		return c, p, step, err
	}
	d, err := s.show(ctx, tx, &by.Staff, id, now)
	if err != nil {
		return c, p, step, err
	}
	if p, err = d.choose(number); err != nil {
		return c, p, step, err
	}
	me, err := mayResolve(ctx, tx, s.keys, by, c)
	if err != nil {
		return c, p, step, err
	}
	step = p.step(by, me, now)
	needed := identity.MayApprove
	if by.Acting.SignedIn() && me.ID == p.ProposedBy {
		if step.Decision.Alone, err = s.mayAlone(ctx, tx, c, p.Resolution); step.Decision.Alone {
			needed = identity.MayPropose // nobody else is needed
		}
	}
	return c, p, step, errors.Join(err, by.still(ctx, tx, needed, c))
}

// MayAlone reports whether a resolution of the case needs no second person: below the agency's single_approval_below.
func (s *Store) MayAlone(ctx context.Context, c Case, r casework.Resolution) (alone bool, err error) {
	err = s.tx(ctx, "reading who decides", func(tx pgx.Tx) error {
		alone, err = s.mayAlone(ctx, tx, c, r)
		return err
	})
	return alone, err
}

// mayAlone reports whether a resolution of the case needs no second person.
func (s *Store) mayAlone(ctx context.Context, tx pgx.Tx, c Case, r casework.Resolution) (bool, error) {
	below, err := registry.SingleApprovalBelow(ctx, tx, s.keys, c.AgencyID)
	if err != nil {
		return false, err
	}
	cash, err := ofCash(ctx, tx, s.keys, c)
	exit, known := Catalog().Exit(c.Kind, r)
	return known && !cash && c.oneApproves(exit, below), err
}

// Statement returns what the person's passkey signs to approve a proposal, for a page that has shown it. shown is
// the digest of the page (Detail.Shown): record.changed refuses when the case or the proposal is another one since.
// Other refusals are those of Approve.
func (s *Store) Statement(ctx context.Context, by By, id string, number int, shown string, now time.Time) (out identity.Statement, err error) {
	err = s.tx(ctx, "preparing an approval", func(tx pgx.Tx) error {
		c, p, step, err := s.approval(ctx, tx, by, id, number, now)
		if err != nil {
			return err
		}
		if err := step.Decision.MayApprove(step.At, step.By, step.Proposer); err != nil {
			return step.Refusal(err)
		}
		out = statement(c, p, casework.DecisionApproved, step.Decision.Alone)
		if shown != out.Digest {
			return operation.Refuse("record.changed", "", nil)
		}
		return nil
	})
	return out, err
}

// Shown returns the digest of what a page shows of a proposal of the case, by its number; empty for an unknown one. The
// page's form carries it, and Statement compares it.
func (d Detail) Shown(number int) string {
	for _, p := range d.Proposals {
		if p.Number == number {
			return statement(d.Case, p, casework.DecisionApproved, false).Digest
		}
	}
	return ""
}

// statement returns what is signed to take a step about a proposal.
func statement(c Case, p Proposal, verdict casework.DecisionState, alone bool) identity.Statement {
	return identity.Statement{
		Kind: checkout.DecisionOfCase, Subject: checkout.Subject(c.ID, p.Number), Verdict: string(verdict), AgencyID: c.AgencyID, Alone: alone,
		Digest: hex.EncodeToString(casework.Digest(c.decided(p.Number, p.Resolution, p.Reference, p.Reason).Content())),
	}
}

// choose returns the open proposal that a number names.
func (d Detail) choose(number int) (Proposal, error) {
	switch {
	case len(d.Proposals) == 0:
		return Proposal{}, operation.Refuse("case.no_proposal", "id", nil)
	case number == 0 && len(d.Proposals) > 1:
		return Proposal{}, operation.Refuse("case.which_proposal", "proposal", operation.Args{"number": len(d.Proposals)})
	case number == 0:
		number = 1
	case number < 1 || number > len(d.Proposals):
		return Proposal{}, operation.Refuse("case.proposal_unknown", "proposal", operation.Args{"most": len(d.Proposals)})
	}
	p := d.Proposals[number-1]
	if p.State != ProposalOpen {
		return p, operation.Refuse("case.proposal_over", "id", operation.Args{"number": p.Number, "state": p.State})
	}
	return p, nil
}

// believed refuses a proposal that was not signed where its proposer's key was checked, that pages have signed without the
// proposer's passkey, or whose case is another one since: nobody would carry it out.
func (s *Store) believed(ctx context.Context, tx pgx.Tx, by By, c Case, p Proposal, now time.Time) error {
	a, err := s.agreement(ctx, tx, c, p.Number, now)
	if err != nil {
		return err
	}
	if _, err := p.sign(by, c, casework.DecisionApproved, casework.Signed{}); err != nil {
		return err // without a key nothing can be verified either
	}
	if code := a.CheckProposal(decisions.Verify(by.Signer)); code != checkout.CodeOK {
		return operation.Refuse("case.proposal_not_believed", "id", operation.Args{"number": p.Number, "code": code})
	}
	return nil
}

// approve records the approval. The sink cases carries the proposal out.
func (s *Store) approve(ctx context.Context, tx pgx.Tx, by By, c Case, p Proposal, step decisions.Step) error {
	step.Store = func() (operation.Entry, error) {
		alone := step.Decision.Alone
		proof, err := by.prove(ctx, tx, s.keys, statement(c, p, casework.DecisionApproved, alone), step.At)
		if err != nil {
			return operation.Entry{}, err
		}
		signed, err := p.sign(by, c, casework.DecisionApproved, casework.Signed{Person: step.By.ID, Name: step.By.Name, Group: by.Staff.AgencyID, At: step.At, Alone: alone})
		if err != nil {
			return operation.Entry{}, err
		}
		tag, err := tx.Exec(ctx, `UPDATE case_proposals SET state = 'approved', decided_by = $3, decider = $4, decided_at = $5, decided_signature = $6, alone = $7, decided_proof = $8
			WHERE case_id = $1 AND number = $2 AND state = 'open'`, c.ID, p.Number, step.By.ID, step.By.Name, step.At, signed.Signature, alone, proof)
		if err == nil && tag.RowsAffected() == 0 {
			err = casework.ErrLapsed // since it was read
		}
		detail := map[string]any{"proposal": p.Number}
		if proof != nil {
			detail["proof"] = *proof
		}
		return entry("case.approve", c, detail), err
	}
	return decisions.Approve(ctx, tx, step)
}

// prove returns the id of the passkey's proof of an approval; nil for a person who acts with a key, which is refused
// when the group approves with passkeys.
func (b By) prove(ctx context.Context, tx pgx.Tx, keys *secret.Keys, s identity.Statement, at time.Time) (*string, error) {
	if !b.Acting.SignedIn() {
		return nil, identity.ApprovesWithKey(ctx, tx, b.Staff.AgencyID, at)
	}
	id, err := b.Acting.Prove(ctx, tx, s)
	return &id, err
}

// rejectsWithKey refuses to reject what another person has proposed, when the person's group approves with passkeys.
func rejectsWithKey(ctx context.Context, tx pgx.Tx, by By, id string, now time.Time) error {
	list, err := proposals(ctx, tx, id)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(p Proposal) bool { return p.State == ProposalOpen && p.ProposedBy != by.Staff.ID }) {
		return identity.ApprovesWithKey(ctx, tx, by.Staff.AgencyID, now)
	}
	return nil
}

// Reject ends the open proposal of a case. Whoever proposed it may withdraw it so. now is
// the time of the service's clock. A refusal is an *operation.Error with the field id or
// reason. After an error nothing has changed.
func (s *Store) Reject(ctx context.Context, by By, id, reason string, now time.Time) (d Detail, err error) {
	err = s.tx(ctx, "rejecting a proposal", func(tx pgx.Tx) error {
		c, err := lockOpen(ctx, tx, by, id)
		if err != nil {
			return err
		}
		if !form.IsLine(reason, maxReason) {
			return operation.Refuse("case.reason_malformed", "reason", operation.Args{"most": maxReason})
		}
		staff, err := identity.LockStaff(ctx, tx, s.keys, by.Staff.ID)
		if err != nil {
			return err
		}
		if !by.Acting.SignedIn() {
			if err := rejectsWithKey(ctx, tx, by, id, now); err != nil {
				return err
			}
		}
		rejection := Proposal{State: ProposalOpen}.step(by, staff[by.Staff.ID], now)
		rejection.Store = func() (operation.Entry, error) {
			tag, err := tx.Exec(ctx, `UPDATE case_proposals SET state = 'rejected', decided_by = $2, decider = $3, decided_at = $4, decision = $5, finished_at = $4
				WHERE case_id = $1 AND state = 'open'`, id, by.Staff.ID, by.Staff.Name, now, reason)
			if err == nil && tag.RowsAffected() == 0 {
				err = casework.ErrDecided
			}
			return entry("case.reject", c, map[string]any{"reason": reason}), err
		}
		if err := decisions.Reject(ctx, tx, rejection); err != nil {
			return err
		}
		d, err = s.show(ctx, tx, &by.Staff, id, now)
		return err
	})
	return d, err
}

// Asker sends a command and waits for its answer.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// OpenRefundRequest opens a case about a completed payment, or about some of its dues, which
// transactions name. An open request of the same dues is returned. now is the time of the service's
// clock. A refusal is an *operation.Error with the field id, reason or due. An error that wraps
// commands.ErrUnavailable means that the outcome is not known; it is safe to call again.
func (s *Store) OpenRefundRequest(ctx context.Context, by By, processor Asker, session checkout.Session, transactions []string, reason string, now time.Time) (caseID string, err error) {
	switch {
	case !by.Staff.ActsFor(session.TenantID):
		return "", operation.Refuse("case.session_unknown", "id", nil)
	case !form.IsLine(reason, maxReason):
		return "", operation.Refuse("case.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	a, err := processor.Ask(ctx, checkout.Command{
		At: now, TenantID: session.TenantID, SessionID: session.ID, Do: checkout.OpenRefundRequest{By: by.Staff.Name, Reason: reason, TransactionIDs: transactions},
	})
	if err != nil {
		return "", fmt.Errorf("opening a refund request: %w", err)
	}
	switch a.Code {
	case checkout.CodeOK:
	case checkout.CodeNotCompleted:
		return "", operation.Refuse("case.not_paid", "id", nil)
	case checkout.CodeDueUnknown:
		return "", operation.Refuse("case.due_unknown", "due", operation.Args{"dues": duesOf(session)})
	case checkout.CodeDueReturned:
		return "", operation.Refuse("case.due_returned", "due", nil)
	case checkout.CodeRefundRequested:
		return "", operation.Refuse("case.refund_requested", "due", operation.Args{"id": a.CaseID})
	default:
		return "", operation.Refuse("case.session_unknown", "id", nil)
	}
	detail := map[string]any{"session_id": session.ID, "reason": reason}
	if len(transactions) > 0 {
		detail["transaction_ids"] = transactions
	}
	err = s.tx(ctx, "opening a refund request", func(tx pgx.Tx) error {
		return operation.Record(ctx, tx, by.actor(), now, operation.Entry{Action: "case.open", Subject: a.CaseID, AgencyID: session.TenantID, Detail: detail})
	})
	return a.CaseID, err
}

// duesOf lists the transaction ids of the session's dues, with the references of the dues.
func duesOf(s checkout.Session) string {
	var out []string
	for _, due := range s.Dues() {
		out = append(out, strings.TrimSpace(due.TransactionID+" "+due.ERPDueRef))
	}
	return strings.Join(out, ", ")
}
