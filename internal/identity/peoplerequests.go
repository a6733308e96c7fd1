package identity

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

const (
	// PeopleRequestLife is how long a request waits to be carried out. What was pressed longer ago is asked for again.
	PeopleRequestLife = time.Hour
	// maxPeopleRequests is the number of requests of a person that may wait at once.
	maxPeopleRequests = 10
)

// PeopleKind is what a person asks for on the page about people.
type PeopleKind string

// The kinds of requests.
const (
	PeopleInvite        PeopleKind = "invite"
	PeopleConfirm       PeopleKind = "confirm"
	PeopleWithdraw      PeopleKind = "withdraw" // an invitation
	PeoplePropose       PeopleKind = "propose"  // other roles, or a revocation
	PeopleApprove       PeopleKind = "approve"
	PeopleReject        PeopleKind = "reject" // a proposal, also the own one
	PeopleSuspend       PeopleKind = "suspend"
	PeopleLift          PeopleKind = "lift"
	PeopleRemovePasskey PeopleKind = "remove_passkey" // of the own
)

// Pressed reports whether the person signs the request with a passkey. What only ends something needs no signature.
func (k PeopleKind) Pressed() bool { return k != PeopleWithdraw && k != PeopleReject }

// PeopleState is the state of a request.
type PeopleState string

// The states of requests.
const (
	PeopleWaiting PeopleState = "waiting"
	PeopleDone    PeopleState = "done"
	PeopleRefused PeopleState = "refused"
)

// PeopleBody is what a form says besides whom it is about.
type PeopleBody struct {
	// Name, Number and Agency (an id; empty for operations) are those of a new person.
	Name   string `json:"name,omitempty"`
	Number string `json:"number,omitempty"`
	Agency string `json:"agency,omitempty"`
	Lost   bool   `json:"lost,omitempty"` // of a known person who is invited
	// Change is the kind of a proposal.
	Change StaffChangeKind `json:"change,omitempty"`
	// Add are the roles of an invitation, or those that a proposal gives.
	Add    []Role `json:"add,omitempty"`
	Remove []Role `json:"remove,omitempty"`
	Reason string `json:"reason,omitempty"`
	Digits string `json:"digits,omitempty"` // as the person typed them
}

// PeopleRequest is what a person asks for on the page about people. The pages sign its row; the sink cases verifies it,
// with the proof of the person's passkey, and carries it out once.
type PeopleRequest struct {
	// ID is a UUID of the form: what is asked for again with the same id is the same request. What the request makes, an
	// invitation or a change, has this id.
	ID   string
	Kind PeopleKind
	// Subject is the id of the person, the invitation, the change or the passkey; empty for a new person.
	Subject string
	Body    PeopleBody
	// Shown is what the page has shown, as Shown of an entry says it; empty for a page that shows nothing. It is not stored.
	Shown string

	// AgencyID is the group whose people are changed; empty for operations.
	AgencyID string
	// AskedBy is the id of the person, Origin the address of the browser.
	AskedBy, Origin   string
	CreatedAt, EndsAt time.Time
	State             PeopleState
	// Code and Args say why it was refused (operation.Error).
	Code   string
	Args   operation.Args
	DoneAt time.Time // zero: it waits
	// Forged means that the row is not as it was signed. It is not carried out.
	Forged bool

	tokenHash  []byte
	decisionID string // of the proof; empty for none
}

func toPeopleRequest(r requestRow, forged bool) PeopleRequest {
	return PeopleRequest{
		ID: r.ID, Kind: PeopleKind(r.Kind), Subject: r.Subject, Body: r.Body, AgencyID: value(r.AgencyID), AskedBy: r.AskedBy, Origin: r.Origin,
		CreatedAt: r.CreatedAt.UTC(), EndsAt: r.EndsAt.UTC(), State: PeopleState(r.State), Code: r.Code, Args: r.Args, DoneAt: value(r.DoneAt), Forged: forged,
		tokenHash: r.TokenHash, decisionID: value(r.DecisionID),
	}
}

// Refusal is why the request was refused; nil for one that was not.
func (r PeopleRequest) Refusal() error {
	if r.State != PeopleRefused {
		return nil
	}
	return operation.Refuse(r.Code, "", r.Args)
}

// Codes of refused requests.
const (
	codeRequestUnknown   = "staff_request.unknown"
	codeRequestMalformed = "staff_request.id_malformed"
	codeRequestOther     = "staff_request.other"
	codeRequestTooMany   = "staff_request.too_many"
	codeRequestLate      = "staff_request.late"
	codeRequestNotProven = "staff_request.not_proven"
	codeRequestCarried   = "staff_request.carried_out"
)

// of returns the statement as part of a request: one press is of one request.
func (s Statement) of(request string) Statement {
	s.Subject += "#" + request
	return s
}

// Shown is a digest of what a page shows of the person, for PeopleRequest.Shown.
func (e StaffEntry) Shown() string {
	content := map[string]string{"person": e.ID, "name": e.Name, "number": e.Number, "agency": e.AgencyID, "roles": joined(e.Roles), "state": string(e.State())}
	for _, p := range e.InForcePasskeys() {
		content["passkey "+p.ID] = p.Name
	}
	return hex.EncodeToString(casework.Digest(content))
}

// Shown is a digest of what a page shows of the invitation.
func (i InvitationEntry) Shown() string { return i.Statement("").Digest }

// Shown is a digest of what a page shows of the change.
func (c StaffChangeEntry) Shown() string { return c.Statement().Digest }

// Book is what people ask for on the page about people, and what the page shows: the staff pages store requests with their
// keys, the sink cases carries them out with its own. Safe for concurrent use.
type Book struct {
	pool     *pgxpool.Pool
	keys     *secret.Keys
	verifier *signed.Verifier
}

// OpenBook makes a Book on a migrated database. keys are those of the role.
func OpenBook(pool *pgxpool.Pool, keys *secret.Keys) *Book {
	return &Book{pool, keys, signed.NewVerifier(keys)}
}

// errReached ends a transaction at the signature of a noun, before it changes anything.
var errReached = errors.New("the signature is reached")

// preparing is a person who is about to sign. It notes what the noun wants to have signed.
type preparing struct {
	who  Staff
	what Statement
}

// Person implements Signer.
func (p *preparing) Person() Staff { return p.who }

// Signed implements Signer.
func (p *preparing) Signed(_ context.Context, _ pgx.Tx, s Statement) error {
	p.what = s
	return errReached
}

// Prepare checks a request that is not stored yet as far as its signature, and returns what the person signs for it. Nothing
// changes. A refusal is an *operation.Error of the noun, or record.changed when the page has shown something else.
func (b *Book) Prepare(ctx context.Context, a Acting, r PeopleRequest, now time.Time) (Statement, error) {
	who := &preparing{who: a.Person}
	err := change(ctx, b.pool, b.keys, now, func(t *Tx) error {
		if before, err := t.mayAsk(ctx, a, &r); err != nil || before.ID != "" {
			return cmp.Or(err, operation.Refuse(codeRequestOther, "", nil))
		}
		if err := t.asShown(ctx, r); err != nil {
			return err
		}
		_, err := t.do(ctx, By{Signer: who}, r)
		return err
	})
	if !errors.Is(err, errReached) {
		return Statement{}, fmt.Errorf("preparing what a person asks for: %w", err)
	}
	return who.what.of(r.ID), nil
}

// pressing is a person who has signed on a page. It notes the proof.
type pressing struct {
	a        Acting
	request  string
	decision string
}

// Person implements Signer.
func (p *pressing) Person() Staff { return p.a.Person }

// Signed implements Signer.
func (p *pressing) Signed(ctx context.Context, tx pgx.Tx, s Statement) (err error) {
	if p.decision, err = p.a.Prove(ctx, tx, s.of(p.request)); err == nil {
		err = errReached
	}
	return err
}

// Ask stores what a person asks for, to be carried out. Of a kind that is Pressed the person's passkey has signed what Prepare
// has returned. A request that was stored before is returned as it is. The secret is that of the link of an invitation, and
// not stored: show it once. now is the time of the service's clock. A refusal is an *operation.Error, as of Prepare or
// Acting.Prove. After an error nothing has changed.
func (b *Book) Ask(ctx context.Context, a Acting, r PeopleRequest, now time.Time) (asked PeopleRequest, link secret.Text, err error) {
	if r.Kind == PeopleInvite {
		link = secret.Mint(linkPrefix)
		r.tokenHash = hashOf(link)
	}
	err = change(ctx, b.pool, b.keys, now, func(t *Tx) error {
		before, err := t.mayAsk(ctx, a, &r)
		if err != nil {
			return err
		}
		if before.ID != "" {
			asked, link = before, secret.Text{}
			return nil
		}
		if r.Kind.Pressed() {
			by := &pressing{a: a, request: r.ID}
			if _, err := t.do(ctx, By{Signer: by}, r); !errors.Is(err, errReached) {
				return err
			}
			r.decisionID = by.decision
		}
		body, err := json.Marshal(r.Body)
		if err != nil {
			return err
		}
		if err := t.q.InsertStaffRequest(ctx, db.InsertStaffRequestParams{
			ID: r.ID, Kind: string(r.Kind), AgencyID: given(r.AgencyID), AskedBy: a.Person.ID, Origin: a.Actor.Origin, Subject: r.Subject, Body: body,
			TokenHash: r.tokenHash, DecisionID: given(r.decisionID), CreatedAt: now, EndsAt: now.Add(PeopleRequestLife),
		}); err != nil {
			return fmt.Errorf("storing what a person asks for: %w", err)
		}
		asked, err = t.request(ctx, r.ID)
		return err
	})
	if err != nil {
		return PeopleRequest{}, secret.Text{}, fmt.Errorf("asking for a change of people: %w", err)
	}
	return asked, link, nil
}

// mayAsk refuses a request that cannot be stored, and notes whose people it is about. It returns the request of the same id
// that was stored before.
func (t *Tx) mayAsk(ctx context.Context, a Acting, r *PeopleRequest) (before PeopleRequest, err error) {
	id, ok := form.CanonicalUUID(r.ID)
	if !ok {
		return before, operation.Refuse(codeRequestMalformed, "", nil)
	}
	r.ID = id
	if before, err = t.request(ctx, id); err != nil {
		return before, err
	}
	if before.ID != "" {
		if before.AskedBy != a.Person.ID || before.Kind != r.Kind || before.Subject != r.Subject {
			return before, operation.Refuse(codeRequestOther, "", nil)
		}
		return before, nil
	}
	waiting := 0
	if err := t.requests(ctx, "asked_by", a.Person.ID, func(o PeopleRequest) {
		if o.State == PeopleWaiting && !o.Forged {
			waiting++
		}
	}); err != nil {
		return before, err
	}
	if waiting >= maxPeopleRequests {
		return before, operation.Refuse(codeRequestTooMany, "", operation.Args{"most": maxPeopleRequests})
	}
	if r.AgencyID, err = t.groupOf(ctx, a, *r); err != nil {
		return before, err
	}
	if r.Kind != PeopleRemovePasskey {
		_, _, err = t.acts(By{Signer: &preparing{who: a.Person}}, r.AgencyID)
	}
	return before, err
}

// groupOf returns the group whose people a request is about.
func (t *Tx) groupOf(ctx context.Context, a Acting, r PeopleRequest) (string, error) {
	switch r.Kind {
	case PeopleConfirm, PeopleWithdraw:
		i, err := t.invitation(ctx, r.Subject)
		return i.Of.AgencyID, err
	case PeopleApprove, PeopleReject:
		c, err := t.change(ctx, r.Subject)
		return c.Of.AgencyID, err
	case PeopleRemovePasskey:
		return a.Person.AgencyID, nil
	case PeopleInvite, PeoplePropose, PeopleSuspend, PeopleLift:
		if r.Subject != "" {
			if _, isID := form.CanonicalUUID(r.Subject); !isID {
				return "", operation.Refuse("staff.unknown", "id", nil)
			}
			m, err := t.staffNamed(r.Subject)
			return m.AgencyID, err
		}
		if r.Body.Agency == "" {
			return "", nil
		}
		of, err := t.agency(r.Body.Agency)
		return of.ID, err
	}
	return "", operation.Refuse(codeRequestUnknown, "", nil)
}

// asShown refuses a request whose page has shown something else than there is now.
func (t *Tx) asShown(ctx context.Context, r PeopleRequest) error {
	var now string
	switch r.Kind {
	case PeopleConfirm, PeopleWithdraw:
		i, err := t.invitation(ctx, r.Subject)
		if err != nil {
			return err
		}
		now = i.Shown()
	case PeopleApprove, PeopleReject:
		c, err := t.change(ctx, r.Subject)
		if err != nil {
			return err
		}
		now = c.Shown()
	case PeopleInvite, PeoplePropose, PeopleSuspend, PeopleLift:
		if r.Subject == "" {
			return nil
		}
		m, err := t.staffNamed(r.Subject)
		if err != nil {
			return err
		}
		now = t.staffEntry(m).Shown()
	case PeopleRemovePasskey:
		return nil // the passkey is named, and does not change
	}
	if now != r.Shown {
		return operation.Refuse("record.changed", "", nil)
	}
	return nil
}

// do does what a request says, by a noun. wrong is a refusal that is counted, so that the transaction commits.
func (t *Tx) do(ctx context.Context, by By, r PeopleRequest) (wrong, err error) {
	by.Actor.Origin = r.Origin
	switch b := r.Body; r.Kind {
	case PeopleInvite:
		_, err = t.invite(ctx, by, InvitationRequest{Known: r.Subject, Lost: b.Lost, Person: StaffRequest{Name: b.Name, Number: b.Number, Agency: b.Agency, Roles: b.Add}}, r.ID, r.tokenHash)
	case PeopleConfirm:
		_, wrong, err = t.confirmInvitation(ctx, by, r.Subject, b.Digits)
	case PeopleWithdraw:
		_, _, err = t.withdrawInvitation(ctx, by, r.Subject)
	case PeoplePropose:
		if b.Change != StaffChangeRoles && b.Change != StaffChangeRevoke {
			return nil, operation.Refuse(codeRequestUnknown, "", nil)
		}
		_, err = t.proposeChange(ctx, by, StaffChangeRequest{Staff: r.Subject, Kind: b.Change, Roles: RolesRequest{b.Add, b.Remove}, Reason: b.Reason}, r.ID)
	case PeopleApprove:
		_, err = t.approveChange(ctx, by, r.Subject)
	case PeopleReject:
		_, err = t.rejectChange(ctx, by, r.Subject)
	case PeopleSuspend:
		_, err = t.suspend(ctx, by, r.Subject, b.Reason, r.ID)
	case PeopleLift:
		_, err = t.lift(ctx, by, r.Subject, b.Reason, r.ID)
	case PeopleRemovePasskey:
		_, err = t.removePasskey(ctx, by, r.Subject)
	default:
		err = operation.Refuse(codeRequestUnknown, "", nil)
	}
	return wrong, err
}

// pressed is the person of a stored request, with the proof of the passkey.
type pressed struct {
	who     Staff
	keys    *secret.Keys
	request PeopleRequest
	now     time.Time
}

// Person implements Signer.
func (p pressed) Person() Staff { return p.who }

// Signed implements Signer. It believes the stored proof only: it was made for this request, a short time before it, with
// one of two passkeys that approved then.
func (p pressed) Signed(ctx context.Context, tx pgx.Tx, s Statement) error {
	if p.request.decisionID == "" {
		return operation.Refuse("decision.passkey_needed", "", nil)
	}
	notProven := operation.Refuse(codeRequestNotProven, "", nil)
	rows, _ := tx.Query(ctx, selectProofs+` WHERE id = $1`, p.request.decisionID) // the rows return its error
	list, err := pgx.CollectRows(rows, scanProof)
	switch {
	case err != nil:
		return fmt.Errorf("reading the proof of a decision: %w", err)
	case len(list) == 0:
		return notProven
	}
	proof, s := list[0], s.of(p.request.ID)
	// The pages date all of it: nothing of it is from the future, or older than a request lives.
	future, since := p.now.Add(casework.ClocksDiffer), p.request.CreatedAt.Sub(proof.At)
	if since < 0 || since >= passkeys.ChallengeLifetime || p.request.CreatedAt.After(future) || !p.now.Before(p.request.CreatedAt.Add(PeopleRequestLife)) ||
		proof.StaffID != p.who.ID || proof.Kind != s.Kind || proof.Subject != s.Subject || proof.Verdict != s.Verdict {
		return notProven
	}
	statement, err := s.bytes(p.who, proof.At)
	if err != nil {
		return err
	}
	if !bytes.Equal(statement, proof.Statement) {
		return operation.Refuse("record.changed", "", nil)
	}
	n := slices.IndexFunc(p.who.Passkeys, func(k StaffPasskey) bool { return k.ID == proof.PasskeyID })
	if n < 0 || !p.who.Passkeys[n].InForce() || proof.verify(p.who.Passkeys[n]) != "" || len(p.who.approving(p.who.Passkeys[n].Host, proof.At)) < MinPasskeys {
		return notProven
	}
	return nil
}

// CarryOut carries a request out, and ends it in the same transaction: after a crash it waits, and is carried out once. The
// keys sign rows of staff. A request that is over stays so. One whose row does not verify is left as it is, so that nothing of
// it is signed. now is the time of the service's clock. An error means that the request waits.
func (b *Book) CarryOut(ctx context.Context, id string, now time.Time) (ended PeopleRequest, err error) {
	end := func(t *Tx, refusal error) error {
		if err := t.endRequest(ctx, id, refusal); err != nil {
			return err
		}
		ended, err = t.request(ctx, id)
		return err
	}
	// waits returns the request if it is to be carried out.
	waits := func(t *Tx) (PeopleRequest, bool, error) {
		r, err := t.request(ctx, id)
		ended = r
		return r, err == nil && r.State == PeopleWaiting && !r.Forged, err
	}
	err = change(ctx, b.pool, b.keys, now, func(t *Tx) error {
		r, ok, err := waits(t)
		if err != nil || !ok {
			return err
		}
		wrong, err := t.carryOutRequest(ctx, r)
		if err != nil {
			return err
		}
		return end(t, wrong)
	})
	var refusal *operation.Error
	if errors.As(err, &refusal) && !slices.Contains([]string{signed.CodeNoKey, signed.CodeUnsigned}, refusal.Code) {
		err = change(ctx, b.pool, b.keys, now, func(t *Tx) error {
			_, ok, err := waits(t)
			if err != nil || !ok {
				return err
			}
			return end(t, refusal)
		})
	}
	if err != nil {
		return PeopleRequest{}, fmt.Errorf("carrying out what a person asked for: %w", err)
	}
	return ended, nil
}

// carryOutRequest does what a request says, by the person who has asked.
func (t *Tx) carryOutRequest(ctx context.Context, r PeopleRequest) (wrong, err error) {
	if !t.tx.Now.Before(r.EndsAt) {
		return nil, operation.Refuse(codeRequestLate, "", nil)
	}
	if carried, err := t.carried(ctx, r.ID); err != nil || carried {
		if carried { // its row was put back
			err = operation.Refuse(codeRequestCarried, "", nil)
		}
		return nil, err
	}
	return t.do(ctx, By{Signer: pressed{t.member(r.AskedBy), t.tx.Keys(), r, t.tx.Now}}, r)
}

// carried reports whether there is what a request makes.
func (t *Tx) carried(ctx context.Context, id string) (bool, error) {
	list, err := t.invitations(ctx)
	if err != nil || slices.ContainsFunc(list, func(i Invitation) bool { return i.ID == id }) {
		return err == nil, err
	}
	changes, err := t.changes(ctx)
	return slices.ContainsFunc(changes, func(c StaffChangeEntry) bool { return c.ID == id }), err
}

// endRequest ends a request.
func (t *Tx) endRequest(ctx context.Context, id string, refusal error) error {
	row := db.EndStaffRequestParams{ID: id, State: string(PeopleDone), Args: []byte(`{}`), DoneAt: &t.tx.Now}
	var why *operation.Error
	if errors.As(refusal, &why) {
		row.State, row.Code = string(PeopleRefused), why.Code
		if len(why.Args) > 0 {
			text, err := json.Marshal(why.Args)
			if err != nil {
				return err
			}
			row.Args = text
		}
	}
	if err := t.q.EndStaffRequest(ctx, row); err != nil {
		return fmt.Errorf("ending request %s: %w", id, err)
	}
	return nil
}

// request returns the request with an id, or the zero PeopleRequest.
func (t *Tx) request(ctx context.Context, id string) (found PeopleRequest, err error) {
	err = t.requests(ctx, "id", id, func(r PeopleRequest) { found = r })
	return found, err
}

// requests reads the requests that have a value in a column.
func (t *Tx) requests(ctx context.Context, column, is string, take func(PeopleRequest)) error {
	return signed.Find(ctx, t.tx, nil, func(r requestRow, row signed.Row) {
		take(toPeopleRequest(r, t.tx.Forged(row)))
	}, "staff_requests", column, is)
}

// Waiting returns the ids of the requests that wait to be carried out and verify, the oldest first, and when the oldest
// one was made.
func (b *Book) Waiting(ctx context.Context) (ids []string, oldest time.Time, err error) {
	err = pgx.BeginTxFunc(ctx, b.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return signed.Find(ctx, tx, b.verifier, func(r requestRow, row signed.Row) {
			if !row.Verified {
				return
			}
			if ids = append(ids, r.ID); oldest.IsZero() {
				oldest = r.CreatedAt.UTC()
			}
		}, "staff_requests", "state", string(PeopleWaiting))
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading what people ask for: %w", err)
	}
	return ids, oldest, nil
}

// Request returns a request of a person. Another person's is unknown: the refusal is an *operation.Error with the code
// staff_request.unknown.
func (b *Book) Request(ctx context.Context, personID, id string) (found PeopleRequest, err error) {
	parsed, ok := form.CanonicalUUID(id)
	if ok {
		err = pgx.BeginTxFunc(ctx, b.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return signed.One(ctx, tx, b.verifier, func(r requestRow, row signed.Row) { found = toPeopleRequest(r, !row.Verified) }, "staff_requests", parsed)
		})
	}
	switch {
	case err != nil:
		return PeopleRequest{}, fmt.Errorf("reading a request: %w", err)
	case found.ID == "" || found.AskedBy != personID:
		return PeopleRequest{}, operation.Refuse(codeRequestUnknown, "id", nil)
	}
	return found, nil
}

// People is all that a page about people shows, of one reading.
type People struct {
	Staff       []StaffEntry       // the oldest first
	Invitations []InvitationEntry  // the oldest first
	Changes     []StaffChangeEntry // the oldest first, with their states now
	names       map[string]string
}

// Name returns the name of a person; empty for an unknown id.
func (p People) Name(id string) string { return p.names[id] }

// Managers counts the members of a group who can decide about its people on a page.
func (p People) Managers(agencyID string) (n int) {
	for _, e := range p.Staff {
		if e.AgencyID == agencyID && e.manages() {
			n++
		}
	}
	return n
}

// Read reads the people, their invitations and the changes about them, verified.
func (b *Book) Read(ctx context.Context, now time.Time) (p People, err error) {
	p.names = map[string]string{}
	err = registry.View(ctx, b.pool, "", func(tx pgx.Tx, reg *registry.Snapshot) error {
		forged := func(r signed.Row) bool { return !r.Verified }
		s, err := load(ctx, tx, reg, b.verifier, forged)
		if err != nil {
			return err
		}
		for _, m := range s.staff {
			p.Staff = append(p.Staff, s.staffEntry(m))
			p.names[m.ID] = m.Name
		}
		list, err := readInvitations(ctx, tx, b.verifier, forged)
		if err != nil {
			return err
		}
		for _, i := range list {
			p.Invitations = append(p.Invitations, InvitationEntry{Invitation: i, Of: s.staffEntry(s.member(i.StaffID))})
		}
		p.Changes, err = s.readChanges(ctx, tx, b.verifier, forged, now)
		return err
	})
	if err != nil {
		return People{}, fmt.Errorf("reading people: %w", err)
	}
	return p, nil
}

// PeopleStep is a row of the audit table about a person.
type PeopleStep struct {
	At     time.Time
	Action string
	// By is the id of the person, or the name of another actor.
	By string
}

// History returns what the audit table has about a person's account, the newest first, most rows at most. What the person
// reads and signs in is not part of it.
func (b *Book) History(ctx context.Context, personID string, most int) ([]PeopleStep, error) {
	rows, err := b.pool.Query(ctx, `SELECT at, action, actor FROM audit WHERE subject = $1 AND action LIKE 'staff.%' AND action NOT IN ('staff.sign_in', 'staff.refused', 'staff.read', 'staff.issuer_refused', 'staff.issuer_logout') ORDER BY at DESC, id DESC LIMIT $2`, personID, most)
	if err != nil {
		return nil, fmt.Errorf("reading the history of a person: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PeopleStep])
	if err != nil {
		return nil, fmt.Errorf("reading the history of a person: %w", err)
	}
	for i := range out {
		out[i].At = out[i].At.UTC()
	}
	return out, nil
}
