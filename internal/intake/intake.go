package intake

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/statements"
	"quittance/schemas"
)

// Config configures a Store. All fields but Closed are required.
type Config struct {
	Pool     *pgxpool.Pool
	Keys     *secret.Keys // seal originals
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	// Closed returns the last local day of the closed periods of an account, such as 2026-11-30; empty for none.
	// Withdrawals need it.
	Closed func(context.Context, registry.StatementAccountKey) (string, error)
}

// Store imports statements. It is safe for concurrent use.
type Store struct {
	cfg Config
	// killed simulates the death of the process after a step, in tests; nil otherwise.
	killed func(step) bool
	// patience is how long the broker may take to answer.
	patience time.Duration
}

// New makes a store.
func New(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Topology == nil || cfg.Codec == nil {
		return nil, errors.New("importing statements: Pool, Keys, Topology and Codec are required")
	}
	return &Store{cfg: cfg, patience: patience}, nil
}

// Request asks for the import of a file.
type Request struct {
	Account registry.StatementAccount
	// File is read several times.
	File io.ReadSeeker
	// BackFill says that the file may have days far from the account's last one.
	BackFill bool
	// Try asks what would become of the file. Nothing is stored.
	Try   bool
	Actor operation.Actor
	Now   time.Time // in UTC
}

// Result says what became of a file.
type Result struct {
	State statements.Verdict
	// ImportID is empty unless the file is stored: accepted, quarantined, or accepted earlier
	// with the same content.
	ImportID   string
	Statements []Statement
	// Lines is how many lines of the file count as money, and Skipped how many entries do not, by reason.
	Lines   int
	Skipped map[string]int
	// Faults are those of the file, and More counts further ones that are not listed.
	Faults []statements.Fault
	More   int
}

// Statement is a statement of a file, or a page of one.
type Statement struct {
	State statements.Verdict `json:"-"`
	Facts
}

// Facts are what the database keeps of a statement.
type Facts struct {
	ID       string `json:"id"`
	Page     int    `json:"page"`
	Sequence int64  `json:"sequence"`
	Last     bool   `json:"last"`
	From     string `json:"from"`
	To       string `json:"to"`
	Balanced bool   `json:"balanced"`
	Opening  int64  `json:"opening"`
	Closing  int64  `json:"closing"`
	Currency string `json:"currency"`
	Lines    int    `json:"lines"`
	Net      int64  `json:"net"`
	Digest   string `json:"digest"`
	// Tail is the id of the last line, without the number of a repetition, and TailAt its time.
	Tail   string    `json:"tail,omitempty"`
	TailAt time.Time `json:"tail_at,omitzero"`
	// Undecided is the first local day from which the statement may lack money (statements.Statement.Undecided).
	Undecided string `json:"undecided,omitempty"`
	// Scoped means that the ids of its lines name the statement where a bank's id is unique only there
	// (statements.Line.Scope). Earlier releases recorded lines without.
	Scoped bool `json:"scoped,omitempty"`
	// Nth is more than 1 for another statement with an id that the bank gave a statement of the same days. The ids of its
	// lines begin with it.
	Nth int `json:"nth,omitempty"`
	// Twice says of a statement in quarantine that an accepted one of its id has other content, and that lines have their ids from
	// their positions: released, they would count twice. Earlier releases do not say it.
	Twice bool `json:"twice,omitempty"`
}

func factsOf(s *statements.Statement, currency string) Facts {
	return Facts{
		ID: s.ID, Page: s.Page, Sequence: s.Sequence, Last: s.Last, From: s.From, To: s.To, Balanced: s.Balanced, Opening: s.Opening, Closing: s.Closing,
		Currency: currency, Lines: s.Lines, Net: s.Net, Digest: hex.EncodeToString(s.Digest[:]), Tail: s.Tail, TailAt: s.TailAt, Undecided: s.Undecided, Scoped: true,
	}
}

// mark returns the statement as the last accepted one of its account. to is the last day that
// was covered before.
func (r Facts) mark(to string) statements.Mark {
	m := statements.Mark{ID: r.ID, From: r.From, Sequence: r.Sequence, Page: r.Page, Last: r.Last, To: max(to, r.To), Balanced: r.Balanced, Opening: r.Opening, Closing: r.Closing, Lines: r.Lines, Tail: r.Tail, TailAt: r.TailAt}
	_, _ = hex.Decode(m.Digest[:], []byte(r.Digest)) // factsOf wrote it
	return m
}

// plan is what the acceptance of an import writes to Postgres.
type plan struct {
	// Mark is the last statement of the account, and To the last day that is covered after it.
	Mark       Facts           `json:"mark"`
	To         string          `json:"to"`
	Statements []Facts         `json:"statements"`
	Actor      operation.Actor `json:"actor"`
	// Faults are why a file is in quarantine.
	Faults []statements.FaultKind `json:"faults,omitempty"`
}

// ledgerMark is the last accepted statement of an account as its ledger keeps it.
type ledgerMark struct {
	Last Facts  `json:"last"`
	To   string `json:"to"`
}

// step is a step of an import, after which the process may die.
type step string

// The steps of an import.
const (
	stepPending   step = "pending"   // the pending row is stored
	stepProduced  step = "produced"  // the records are at the broker, not committed
	stepCommitted step = "committed" // the Kafka transaction is committed
)

var errKilled = errors.New("killed by a test")

func (s *Store) after(at step) error {
	if s.killed != nil && s.killed(at) {
		return errKilled
	}
	return nil
}

// Import validates a file and accepts it whole or not at all. Faults of the file and what a
// person must decide are in the Result. Errors are about this attempt: the import may be
// repeated, and says then what became of it.
func (s *Store) Import(ctx context.Context, req Request) (Result, error) {
	account, err := req.Account.Reader()
	if err != nil {
		return Result{}, err
	}
	if _, err := req.File.Seek(0, io.SeekStart); err != nil {
		return Result{}, fmt.Errorf("reading the file: %w", err)
	}
	file, err := statements.Read(req.File, account.At(req.Now), nil) // accepted files are read again without the bound
	if err != nil {
		return Result{}, err
	}
	i := &attempt{ledger: s.ledgerOf(req.Account.StatementAccountKey, req.Now), Request: req, reader: account, file: file, digest: hex.EncodeToString(file.Digest[:])}
	i.out = Result{Lines: file.Lines, Skipped: file.Skipped, Faults: file.Faults, More: file.More}
	for n := range file.Statements {
		i.out.Statements = append(i.out.Statements, Statement{Facts: factsOf(&file.Statements[n], req.Account.Currency)})
	}
	if file.Refused() {
		i.verdict(statements.VerdictRefused)
		return i.out, nil
	}
	for again := true; again; {
		if again, err = i.locked(ctx); err != nil {
			return Result{}, fmt.Errorf("importing a statement of account %s: %w", req.Account.Code, err)
		}
	}
	return i.out, nil
}

// attempt is one import.
type attempt struct {
	ledger
	Request
	reader statements.Account
	file   *statements.File
	digest string
	out    Result
	// next is the account's last statement after the file, if the file is accepted.
	next ledgerMark
	// same is the import of a statement with the same content.
	same string
	// released says that two people have released the file from quarantine.
	released bool
	// refused says that the file was in quarantine although its row said something else.
	refused bool
	// lives are how often lines of the account were withdrawn.
	lives map[lineKey]int32
}

// verdict sets the state of the file and of all its statements.
func (i *attempt) verdict(v statements.Verdict) {
	i.out.State = v
	for n := range i.out.Statements {
		i.out.Statements[n].State = v
	}
}

// locked imports while it holds the account's ledger. again means that it has settled an
// earlier import and must be called again.
func (i *attempt) locked(ctx context.Context) (again bool, err error) {
	tx, err := i.cfg.Pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	last, err := i.lock(ctx, tx)
	if err != nil {
		return false, err
	}
	earlier, err := i.pending(ctx, tx)
	switch {
	case err != nil:
		return false, err
	case earlier != nil && i.Try:
		return false, ErrInterrupted
	case earlier == nil:
		done, err := i.judge(ctx, tx, last)
		if err == nil && done && i.refused && !i.Try {
			err = tx.Commit(ctx)
		}
		if err != nil || done {
			return false, err
		}
	}
	w, err := i.fence(ctx)
	if err != nil {
		return false, err
	}
	defer w.client.Close()
	if earlier != nil {
		if err := i.settle(ctx, tx, w, earlier); err != nil {
			return false, err
		}
		return true, tx.Commit(ctx)
	}
	return false, i.accept(ctx, tx, w)
}

// ErrInterrupted says that nothing can be told of a file now.
var ErrInterrupted = errors.New("an earlier import or withdrawal of the account was interrupted, and its outcome is not known yet: repeat it first")

// judge decides on the file, and does what no broker is needed for. done means that this was all.
func (i *attempt) judge(ctx context.Context, tx pgx.Tx, last ledgerMark) (done bool, err error) {
	if known, err := i.known(ctx, tx); err != nil || known {
		return true, err
	}
	if err := i.decide(ctx, tx, last); err != nil {
		return true, err
	}
	switch {
	case i.Try:
		return true, nil
	case i.out.State == statements.VerdictQuarantined:
		return true, i.quarantine(ctx, tx)
	}
	return i.out.State != statements.VerdictAccepted, nil
}

// known reports whether the same bytes were imported before, and tells what became of them.
func (i *attempt) known(ctx context.Context, tx pgx.Tx) (bool, error) {
	var id uuid.UUID
	var state string
	var by *string
	err := tx.QueryRow(ctx, `SELECT id, state, dismissed_by FROM statement_imports WHERE (agency_id, live, code) = ($1, $2, $3) AND digest = $4 AND state NOT IN ('pending', 'withdrawn')
		ORDER BY state = 'accepted' DESC, id DESC LIMIT 1`, append(i.account(), i.digest)...).Scan(&id, &state, &by)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if of := Decision(state); err == nil && (of == Dismissed || of == Released) {
		var signed bool
		if signed, err = believed(ctx, tx, i.cfg.Keys, id.String(), of, i.Now); err == nil && !signed {
			return false, i.refuse(ctx, tx, id, of)
		}
	}
	switch {
	case err == nil && Decision(state) == Dismissed:
		i.out.ImportID = id.String()
		i.verdict(statements.VerdictRefused)
		i.out.Faults = append(i.out.Faults, statements.Fault{
			Kind: statements.FaultDismissed, Position: statements.Position{Line: 1, Column: 1},
			Detail: fmt.Sprintf("%s dismissed this file as import %s: a statement of its id was accepted with other content, and that one is right.", *by, id),
			Mend:   "Import another file.",
		})
		return true, nil
	case err != nil || state != "accepted":
		i.released = Decision(state) == Released
		return false, err // a file in quarantine is judged again
	}
	i.out.ImportID = id.String()
	i.verdict(statements.VerdictUnchanged)
	return true, nil
}

// refuse puts a file back into quarantine of which people have not signed what its row says, or whose release is over.
func (i *attempt) refuse(ctx context.Context, tx pgx.Tx, id uuid.UUID, of Decision) error {
	i.refused = true
	if err := quarantineAgain(ctx, tx, id.String()); err != nil {
		return fmt.Errorf("putting a file back into quarantine: %w", err)
	}
	return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorService, Name: "statements"}, i.Now, operation.Entry{
		Action: "statements.quarantine", Subject: id.String(), AgencyID: i.key.AgencyID,
		Detail: map[string]any{"agency_id": i.key.AgencyID, "mode": registry.Mode(i.key.Live), "account": i.key.Code, "was": string(of), "refusal": "statement.not_believed"},
	})
}

// decide compares the statements of the file with the last accepted one.
func (i *attempt) decide(ctx context.Context, tx pgx.Tx, last ledgerMark) error {
	var mark statements.Mark
	if last.Last.ID != "" {
		mark = last.Last.mark(last.To)
	}
	i.next = last
	before := map[string][]Facts{} // the statements of this file that were looked at
	worst := map[statements.Verdict]bool{}
	for n := range i.file.Statements {
		s, out := &i.file.Statements[n], &i.out.Statements[n]
		seen, earlier, err := i.seen(ctx, tx, mark, s, before)
		if err != nil {
			return err
		}
		previous := mark
		verdict, next, faults := statements.Follow(mark, s, seen)
		if verdict == statements.VerdictAccepted && next != mark {
			i.next = ledgerMark{out.Facts, next.To}
		}
		switch {
		case s.Another(previous, seen):
			out.Nth = earlier.Most + 1
		case seen.Earlier: // another version of a statement keeps the ids of its lines
			out.Scoped, out.Nth = earlier.Scoped, earlier.Nth
		}
		out.Twice = s.Positional && slices.ContainsFunc(faults, func(f statements.Fault) bool { return f.Kind == statements.FaultChanged })
		before[nameOf(s)] = append(before[nameOf(s)], out.Facts)
		out.State, i.out.Faults = verdict, append(i.out.Faults, faults...)
		worst[verdict] = true
		if mark = next; verdict == statements.VerdictRefused {
			mark = out.mark(mark.To) // so that the statements after it tell their own faults only
		}
	}
	for _, v := range []statements.Verdict{statements.VerdictRefused, statements.VerdictQuarantined, statements.VerdictAccepted, statements.VerdictUnchanged} {
		if worst[v] {
			i.out.State = v
			break
		}
	}
	if i.out.State == statements.VerdictUnchanged {
		i.out.ImportID = i.same
	}
	if i.out.State == statements.VerdictRefused || i.out.State == statements.VerdictQuarantined {
		i.verdict(i.out.State) // whole or not at all
	}
	return nil
}

// planned returns what acceptance writes.
func (i *attempt) planned() plan {
	p := plan{Mark: i.next.Last, To: i.next.To, Actor: i.Actor}
	for _, s := range i.out.Statements {
		if s.State == statements.VerdictAccepted {
			p.Statements = append(p.Statements, s.Facts)
		}
	}
	return p
}

// put stores the import with its original.
func (i *attempt) put(ctx context.Context, tx pgx.Tx, id uuid.UUID, state string, p plan, partition int32, from int64) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO statement_imports (id, agency_id, live, code, state, digest, size, profile, lines, partition, from_offset, plan, actor, imported_at)
		VALUES ($4, $1, $2, $3, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		append(i.account(), id, state, i.digest, i.file.Size, i.file.Profile, i.out.Lines, partition, from, text, i.Actor.Name, i.Now)...); err != nil {
		return fmt.Errorf("storing the import: %w", err)
	}
	if _, err := i.File.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	return i.putOriginal(ctx, tx, id, i.File)
}

// quarantine stores a file about which a person decides, once.
func (i *attempt) quarantine(ctx context.Context, tx pgx.Tx) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `SELECT id FROM statement_imports WHERE (agency_id, live, code) = ($1, $2, $3) AND digest = $4 AND state IN ('quarantined', 'released')`,
		append(i.account(), i.digest)...).Scan(&id)
	if i.out.ImportID = id.String(); !errors.Is(err, pgx.ErrNoRows) {
		return err // it is stored already
	}
	p := plan{Actor: i.Actor}
	for _, s := range i.out.Statements {
		p.Statements = append(p.Statements, s.Facts)
	}
	for _, f := range i.out.Faults {
		if f.Kind.Refuses() && !slices.Contains(p.Faults, f.Kind) {
			p.Faults = append(p.Faults, f.Kind)
		}
	}
	if err := i.put(ctx, tx, id, "quarantined", p, 0, 0); err != nil {
		return err
	}
	if err := i.audit(ctx, tx, id, "quarantined", i.Actor, p); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
