package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// MinPasskeys is the number of passkeys without which a person approves nothing: whoever loses the only one could not
// come back without the others.
const MinPasskeys = 2

// proof is the answer of a passkey to a challenge of this session, not verified yet.
type proof struct {
	answer    passkeys.Assertion
	challenge []byte
	at        time.Time
}

// bytes returns what a passkey signs: the statement of a step as casework has it, of a person at a time. An error says
// that the digest is none.
func (s Statement) bytes(who Staff, at time.Time) ([]byte, error) {
	digest, err := hex.DecodeString(s.Digest)
	if err != nil || len(digest) != sha256.Size {
		return nil, errors.New("the digest of a statement is not the SHA-256 of what is decided on")
	}
	return casework.Agreement{Kind: s.Kind, Subject: s.Subject, Digest: digest}.Statement(
		casework.DecisionState(s.Verdict), casework.Signed{Person: who.ID, Name: who.Name, Group: who.AgencyID, At: at, Alone: s.Alone}), nil
}

// Challenge returns the options with which the browser of a session has the person's passkey sign a statement
// (PublicKeyCredentialRequestOptionsJSON, below publicKey). The statement bears the present time. The challenge
// is 32 random bytes and the SHA-256 of the statement; it is valid for five minutes, once. Refusals are
// *operation.Error: decision.two_passkeys, decision.not_yet.
func (d *Desk) Challenge(ctx context.Context, a Acting, s Statement) (json.RawMessage, error) {
	at := d.cfg.Now().UTC().Truncate(time.Millisecond)
	statement, err := s.bytes(a.Person, at)
	if err != nil {
		return nil, err
	}
	return d.challenge(ctx, a, statement, sha256.Sum256(statement), at, nil)
}

// challenge stores a challenge with a statement, 32 random bytes and end, and returns the options for it. among are the
// SHA-256 of the public keys that may answer; nil for all of the person's that approve.
func (d *Desk) challenge(ctx context.Context, a Acting, statement []byte, end [sha256.Size]byte, at time.Time, among [][sha256.Size]byte) (json.RawMessage, error) {
	keys := a.Person.approving(d.party.Host(), at)
	if len(keys) < MinPasskeys {
		return nil, a.Person.cannotApprove(d.party.Host())
	}
	if among != nil {
		keys = slices.DeleteFunc(keys, func(k StaffPasskey) bool {
			return !slices.ContainsFunc(among, func(h [sha256.Size]byte) bool { return bytes.Equal(h[:], k.SPKIHash) })
		})
		if len(keys) == 0 {
			return nil, operation.Refuse("decision.other_passkeys", "", operation.Args{"name": a.Person.Name})
		}
	}
	owner, err := a.Person.owner(keys...)
	if err != nil {
		return nil, err
	}
	challenge := make([]byte, 32, 64)
	_, _ = rand.Read(challenge) // never fails: the program ends instead
	challenge = append(challenge, end[:]...)
	options, err := d.party.BeginProof(owner, challenge)
	if err == nil {
		err = db.New(d.cfg.Pool).KeepStaffChallenge(ctx, db.KeepStaffChallengeParams{Session: a.session, Challenge: challenge, Statement: statement, At: at})
	}
	if err != nil {
		return nil, fmt.Errorf("beginning a decision: %w", err)
	}
	return options, nil
}

// approving returns the passkeys of a host with which the person may approve at a time.
func (s Staff) approving(host string, at time.Time) []StaffPasskey {
	return slices.DeleteFunc(slices.Clone(s.Passkeys), func(k StaffPasskey) bool {
		return k.Host != host || !k.Approves(at)
	})
}

// cannotApprove says why a person without two passkeys that approve may not approve: the newest begins later, or one
// is missing.
func (s Staff) cannotApprove(host string) error {
	var from time.Time
	n := 0
	for _, k := range s.Passkeys {
		if k.InForce() && k.Host == host {
			n++
			if k.ApprovesFrom.After(from) {
				from = k.ApprovesFrom
			}
		}
	}
	if n >= MinPasskeys {
		return operation.Refuse("decision.not_yet", "", operation.Args{"name": s.Name, "from": stamp(from)})
	}
	return operation.Refuse("decision.two_passkeys", "", operation.Args{"name": s.Name, "number": n})
}

// Answered returns who acts, with the answer of a passkey to a challenge of the session (AuthenticationResponseJSON).
// Nothing is verified yet: Prove does. A refusal is an *operation.Error: decision.challenge_over or
// decision.not_signed.
func (d *Desk) Answered(ctx context.Context, a Acting, response []byte) (Acting, error) {
	answer, err := passkeys.ParseAssertion(response)
	if err != nil {
		return a, operation.Refuse("decision.not_signed", "", nil)
	}
	p := proof{answer: answer, challenge: answer.Challenge()}
	at, err := db.New(d.cfg.Pool).StaffChallenge(ctx, db.StaffChallengeParams{Session: a.session, Challenge: p.challenge})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, operation.Refuse("decision.challenge_over", "", nil)
	case err != nil:
		return a, fmt.Errorf("reading a challenge: %w", err)
	}
	p.at = at.UTC()
	a.proof = &p
	return a, nil
}

// Proven reports whether the request bears the answer of a passkey, which Prove verifies.
func (a Acting) Proven() bool { return a.proof != nil }

// SignedAt is the time in the statement that the passkey has signed; zero without an answer.
func (a Acting) SignedAt() time.Time {
	if a.proof == nil {
		return time.Time{}
	}
	return a.proof.at
}

// Prove verifies, within the transaction of a decision, that the person's passkey has signed this statement, and
// stores the proof. It uses the challenge up. It returns the id of the proof. Refusals are *operation.Error:
// decision.passkey_needed without an answer, decision.challenge_over for one that is late or used, record.changed if
// another statement was signed than the present one, decision.two_passkeys, decision.not_yet, decision.not_signed.
func (a Acting) Prove(ctx context.Context, tx pgx.Tx, s Statement) (id string, err error) {
	if a.proof == nil {
		return "", operation.Refuse("decision.passkey_needed", "", nil)
	}
	statement, err := s.bytes(a.Person, a.proof.at)
	if err != nil {
		return "", err
	}
	p, err := a.pressed(ctx, tx, statement, sha256.Sum256(statement))
	if err != nil {
		return "", err
	}
	id = uuid.Must(uuid.NewV7()).String()
	e := a.proof.answer.Evidence()
	if err := db.New(tx).InsertDecision(ctx, db.InsertDecisionParams{
		ID: id, At: a.proof.at, StaffID: p.person.ID, Kind: s.Kind, Subject: s.Subject, Verdict: s.Verdict, AgencyID: given(s.AgencyID), Statement: statement,
		Challenge: a.proof.challenge, PasskeyID: p.passkeyID, PublicKey: p.public, ClientData: e.ClientData, AuthenticatorData: e.AuthenticatorData, Assertion: e.Signature,
	}); err != nil {
		return "", fmt.Errorf("storing the proof of a decision: %w", err)
	}
	return id, nil
}

// heldAnswer is an answer of a passkey that holds.
type heldAnswer struct {
	person    Staff // as in the transaction
	passkeyID string
	public    []byte // SubjectPublicKeyInfo
}

// pressed verifies the answer of the passkey to the challenge that was stored with a statement and has this end. It uses the
// challenge up. Refusals are those of Prove.
func (a Acting) pressed(ctx context.Context, tx pgx.Tx, statement []byte, end [sha256.Size]byte) (p heldAnswer, err error) {
	now := a.desk.cfg.Now().UTC()
	row, err := db.New(tx).TakeStaffChallenge(ctx, db.TakeStaffChallengeParams{Session: a.session, Challenge: a.proof.challenge})
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && !now.Before(row.At.Add(passkeys.ChallengeLifetime)):
		return p, operation.Refuse("decision.challenge_over", "", nil)
	case err != nil:
		return p, fmt.Errorf("taking a challenge: %w", err)
	case !bytes.Equal(row.Statement, statement) || !bytes.HasSuffix(a.proof.challenge, end[:]):
		return p, operation.Refuse("record.changed", "", nil)
	}
	if p.person, err = LockInForce(ctx, tx, a.desk.cfg.Keys, a.Person); err != nil {
		return p, err
	}
	host := a.desk.party.Host()
	keys := p.person.approving(host, now)
	if len(keys) < MinPasskeys {
		return p, p.person.cannotApprove(host)
	}
	owner, err := p.person.owner(keys...)
	if err != nil {
		return p, err
	}
	proven, _, err := a.desk.party.VerifyProof(owner, a.proof.challenge, a.proof.answer)
	i := slices.IndexFunc(keys, func(k StaffPasskey) bool { return bytes.Equal(k.Credential.ID, a.proof.answer.CredentialID()) })
	if err != nil || i < 0 {
		return p, operation.Refuse("decision.not_signed", "", nil)
	}
	if err := a.desk.used(ctx, tx, keys[i].ID, proven, now); err != nil {
		return p, err
	}
	p.passkeyID = keys[i].ID
	p.public, err = keys[i].Credential.SPKI()
	return p, err
}

// Signer returns the person with the answer of the passkey, for nouns that ask for one.
func (a Acting) Signer() Signer { return signer{a} }

type signer struct{ a Acting }

// Person implements Signer.
func (s signer) Person() Staff { return s.a.Person }

// Signed implements Signer.
func (s signer) Signed(ctx context.Context, tx pgx.Tx, what Statement) error {
	_, err := s.a.Prove(ctx, tx, what)
	return err
}

// Proof is a stored proof of a decision. Whoever has it and knows that the public key is the person's can verify it
// without the service.
type Proof struct {
	ID string
	// At is the time in the statement.
	At                     time.Time
	StaffID                string
	Kind, Subject, Verdict string
	AgencyID               string // empty: operations
	// Statement is what was signed: a line and canonical JSON (casework.Agreement.Statement).
	Statement []byte
	// Challenge is 32 random bytes and the SHA-256 of the statement.
	Challenge []byte
	PasskeyID string
	// Host is the RP id of the passkey.
	Host string
	// PublicKey is the passkey's, as SubjectPublicKeyInfo.
	PublicKey []byte
	Evidence  passkeys.Evidence
}

// ProofFault is why a proof does not hold.
type ProofFault string

// The faults of proofs.
const (
	// ProofMissing says that there is no proof.
	ProofMissing ProofFault = "missing"
	// ProofOtherStatement says that another statement was signed, or that the columns tell another one.
	ProofOtherStatement ProofFault = "other_statement"
	// ProofOtherPerson says that the passkey is not one of the person, or that its row is not as it was signed.
	ProofOtherPerson ProofFault = "other_person"
	// ProofOutOfForce says that the passkey approved nothing yet, or was removed, at the time of the statement.
	ProofOutOfForce ProofFault = "out_of_force"
	// ProofNotSigned says that the signature does not hold.
	ProofNotSigned ProofFault = "not_signed"
)

// verify returns the fault of a proof; empty if it holds. key is the passkey that the proof names.
func (p Proof) verify(key StaffPasskey) ProofFault {
	var said struct{ Kind, Subject, Verdict, Person, Group, At string }
	_, object, found := bytes.Cut(p.Statement, []byte("\n"))
	sum := sha256.Sum256(p.Statement)
	public := sha256.Sum256(p.PublicKey)
	switch {
	case !found || json.Unmarshal(object, &said) != nil || len(p.Challenge) != 64 || !bytes.HasSuffix(p.Challenge, sum[:]),
		said.Kind != p.Kind, said.Subject != p.Subject, said.Verdict != p.Verdict, said.Person != p.StaffID, said.At != p.At.UTC().Format("2006-01-02T15:04:05.000Z"):
		return ProofOtherStatement
	case key.ID == "", key.Forged, key.ID != p.PasskeyID, key.StaffID != p.StaffID, !bytes.Equal(key.SPKIHash, public[:]):
		return ProofOtherPerson
	case p.At.Before(key.ApprovesFrom), !key.RemovedAt.IsZero() && p.At.After(key.RemovedAt):
		return ProofOutOfForce
	case !p.Evidence.Proves(p.PublicKey, key.Host, p.Challenge):
		return ProofNotSigned
	}
	return ""
}

const selectProofs = `SELECT id, at, staff_id, kind, subject, verdict, coalesce(agency_id, '') AS agency_id, statement, challenge, passkey_id, public_key, client_data, authenticator_data, assertion FROM decisions`

func scanProof(row pgx.CollectableRow) (p Proof, err error) {
	err = row.Scan(&p.ID, &p.At, &p.StaffID, &p.Kind, &p.Subject, &p.Verdict, &p.AgencyID, &p.Statement, &p.Challenge, &p.PasskeyID, &p.PublicKey,
		&p.Evidence.ClientData, &p.Evidence.AuthenticatorData, &p.Evidence.Signature)
	p.At = p.At.UTC()
	return p, err
}

// Holds verifies the stored proof of one step: that it is over this statement and was made with a passkey of the
// person that approved at that time. id may be empty, for a step without a proof.
func Holds(ctx context.Context, tx pgx.Tx, keys *secret.Keys, id string, statement []byte) (ProofFault, error) {
	if id == "" {
		return ProofMissing, nil
	}
	rows, _ := tx.Query(ctx, selectProofs+` WHERE id = $1`, id) // the rows return its error
	list, err := pgx.CollectRows(rows, scanProof)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the proof of a decision: %w", err)
	case len(list) == 0:
		return ProofMissing, nil
	case !bytes.Equal(list[0].Statement, statement):
		return ProofOtherStatement, nil
	}
	key, err := passkeyOf(ctx, tx, signed.NewVerifier(keys), list[0].PasskeyID)
	if err != nil {
		return "", err
	}
	return list[0].verify(key), nil
}

// ErrPrepared ends the transaction of a step at the signature of a passkey, before it commits: what is to be signed is known.
var ErrPrepared = errors.New("what the passkey signs is known")

// Prepared returns what a passkey signs of a step that was taken up to the signature: s, which the step has noted, if it has ended with
// ErrPrepared. err is how it has ended; another end is the refusal of the step.
func Prepared(s *Statement, err error) (Statement, error) {
	switch {
	case errors.Is(err, ErrPrepared):
		return *s, nil
	case err == nil:
		err = errors.New("preparing a decision: the step needs no signature")
	}
	return Statement{}, err
}

// ErrNotProven says that no passkey of the person has signed a step that needs one.
var ErrNotProven = errors.New("no passkey of the person has signed a step that needs one")

// Proves returns why the stored proof of a signed step does not count: ErrNotProven; casework.ErrLapsed for a step that is dated
// ahead of now, the present time of the service's clock; casework.ErrRevoked for a person who was not in force then. It is nil
// if the proof counts. err is what is not found out.
func Proves(ctx context.Context, tx pgx.Tx, keys *secret.Keys, proof string, statement []byte, s casework.Signed, now time.Time) (fault, err error) {
	found, err := Holds(ctx, tx, keys, proof, statement)
	if err != nil {
		return nil, err
	}
	staff, err := StaffOf(ctx, tx, keys, s.Person)
	if err != nil {
		return nil, err
	}
	who := staff[s.Person]
	until := who.Until()
	switch {
	case found != "":
		fault = fmt.Errorf("%w: %s", ErrNotProven, found)
	case s.At.After(now.Add(casework.ClocksDiffer)):
		fault = casework.ErrLapsed
	case who.Forged, who.ApprovedAt.IsZero(), s.At.Before(who.ApprovedAt.Truncate(time.Millisecond)), !until.IsZero() && !s.At.Before(until):
		fault = casework.ErrRevoked
	}
	return fault, nil
}

func passkeyOf(ctx context.Context, q signed.Querier, v *signed.Verifier, id string) (key StaffPasskey, err error) {
	err = signed.One(ctx, q, v, func(r passkeyRow, row signed.Row) { key = toStaffPasskey(r, v != nil && !row.Verified) }, "staff_passkeys", id)
	return key, err
}

// ProofFilter chooses proofs. The zero value is all.
type ProofFilter struct {
	// Kind and Subject of the decision; empty for any.
	Kind, Subject string
	// Since and Until bound the time of the statement; zero for no bound.
	Since, Until time.Time
}

// CheckedProof is a proof and what is wrong with it.
type CheckedProof struct {
	Proof
	// Person is the name of the person.
	Person string
	// Fault is empty for a proof that holds.
	Fault ProofFault
}

// VerifyProofs calls take with each stored proof that a filter chooses, the oldest first, verified, in one snapshot of the
// database. It reads them one by one, so that memory does not grow with history.
func VerifyProofs(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, f ProofFilter, take func(CheckedProof) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		return verifyProofs(ctx, tx, keys, f, take)
	})
}

func verifyProofs(ctx context.Context, tx pgx.Tx, keys *secret.Keys, f ProofFilter, take func(CheckedProof) error) error {
	where, args := "", []any{}
	and := func(condition string, value any) {
		args = append(args, value)
		if where == "" {
			where = " WHERE "
		} else {
			where += " AND "
		}
		where += fmt.Sprintf(condition, len(args))
	}
	if f.Kind != "" {
		and("kind = $%d", f.Kind)
	}
	if f.Subject != "" {
		and("(subject = $%[1]d OR starts_with(subject, $%[1]d || '#'))", f.Subject)
	}
	if !f.Since.IsZero() {
		and("at >= $%d", f.Since)
	}
	if !f.Until.IsZero() {
		and("at < $%d", f.Until)
	}
	verifier := signed.NewVerifier(keys)
	known, names := map[string]StaffPasskey{}, map[string]string{}
	if err := errors.Join(
		signed.Read(ctx, tx, verifier, "staff_passkeys", func(r passkeyRow, row signed.Row) { known[r.ID] = toStaffPasskey(r, !row.Verified) }),
		signed.Read(ctx, tx, verifier, "staff", func(r staffRow, _ signed.Row) { names[r.ID] = r.Name }),
	); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, selectProofs+where+` ORDER BY at, id`, args...)
	if err != nil {
		return fmt.Errorf("reading proofs of decisions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		p, err := scanProof(rows)
		if err != nil {
			return fmt.Errorf("reading proofs of decisions: %w", err)
		}
		key := known[p.PasskeyID]
		p.Host = key.Host
		if err := take(CheckedProof{Proof: p, Person: names[p.StaffID], Fault: p.verify(key)}); err != nil {
			return err
		}
	}
	return rows.Err()
}
