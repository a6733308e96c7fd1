package disbursements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
)

// Notes are what an import says of a batch beside its lines. They refuse nothing, are not signed, and have no name and no
// account.
type Notes struct {
	// Revision compares with the last revision of the batch_ref, Last with the last batch of the agency in the mode; nil if there
	// is none.
	Revision *Comparison `json:"revision,omitempty"`
	Last     *Comparison `json:"last,omitempty"`
	// Warnings has the number of all warnings by kind, Warned the first NotesListed of each kind, in the order of line_ref.
	Warnings map[lines.WarningKind]int `json:"warnings,omitempty"`
	Warned   []Warned                  `json:"warned,omitempty"`
	// Names says whose names operators are asked for; nil for nobody's.
	Names *NamesAsked `json:"names,omitempty"`
}

// NotesListed is how many changes or warnings of a kind Notes list.
const NotesListed = 100

// Warned is a warning about a line.
type Warned struct {
	Kind lines.WarningKind `json:"kind"`
	Ref  string            `json:"line_ref"`
	// Other is as in lines.Warning.
	Other string `json:"other,omitempty"`
}

// ChangeKind classifies differences between batches.
type ChangeKind string

// The differences. The first three are by line_ref, the others by payee.
const (
	ChangeAdded   ChangeKind = "added"
	ChangeRemoved ChangeKind = "removed"
	ChangeLine    ChangeKind = "changed"
	ChangeNew     ChangeKind = "new_payee"
	ChangeGone    ChangeKind = "gone_payee"
	ChangeAccount ChangeKind = "other_account" // a name of the earlier batch has another account
	ChangeAmount  ChangeKind = "other_amount"  // the sum that a payee gets
)

// ChangeKinds has all differences, in the order in which they are shown.
func ChangeKinds() []ChangeKind {
	return []ChangeKind{ChangeAdded, ChangeRemoved, ChangeLine, ChangeNew, ChangeGone, ChangeAccount, ChangeAmount}
}

// WarningKinds has all warnings, in the order in which they are shown.
func WarningKinds() []lines.WarningKind {
	return []lines.WarningKind{lines.WarnTwice, lines.WarnRecent, lines.WarnAccount, lines.WarnName, lines.WarnPayee}
}

// Comparison is what differs between a batch and an earlier one.
type Comparison struct {
	Batch    string `json:"batch"`
	BatchRef string `json:"batch_ref"`
	Revision int    `json:"revision"`
	Date     string `json:"date"`
	// Before and After are the sums of the two, in minor units.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	// Count has the number of all differences by kind; List the first NotesListed of each.
	Count map[ChangeKind]int `json:"count"`
	List  []Changed          `json:"list,omitempty"`
}

// Changed is one difference. Ref is the line_ref of the new line, or of the earlier one if there is no new one. Before and After
// are amounts, 0 for none.
type Changed struct {
	Kind    ChangeKind     `json:"kind"`
	Ref     string         `json:"line_ref"`
	Columns []lines.Column `json:"columns,omitempty"`
	Before  int64          `json:"before,omitempty"`
	After   int64          `json:"after,omitempty"`
}

func (c *Comparison) add(x Changed) {
	if c.Count[x.Kind]++; c.Count[x.Kind] <= NotesListed {
		c.List = append(c.List, x)
	}
}

// Empty reports whether nothing differs.
func (c *Comparison) Empty() bool { return len(c.Count) == 0 }

// Notes returns what the import said of a batch; nil if there is nothing.
func (s *Store) Notes(ctx context.Context, batch string) (*Notes, error) {
	var text []byte
	err := s.pool.QueryRow(ctx, `SELECT notes FROM disbursement_notes WHERE batch = $1`, batch).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nothing was said
	}
	var n Notes
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what an import said: %w", err)
	}
	return &n, nil
}

// KeepNotes stores what an import says of a batch, once.
func (s *Store) KeepNotes(ctx context.Context, b disbursement.Batch, n *Notes) error {
	text, err := json.Marshal(n)
	if err == nil {
		_, err = s.pool.Exec(ctx, `INSERT INTO disbursement_notes (batch, notes, date) VALUES ($1, $2, $3::text::date)`, b.ID, text, b.Date)
	}
	if err != nil {
		return fmt.Errorf("storing what an import says: %w", err)
	}
	return nil
}

const (
	// queryRevision returns the newest revision of a batch_ref that was sealed.
	queryRevision = `SELECT id FROM disbursement_batches WHERE tenant_id = $1 AND livemode = $2 AND batch_ref = $3 AND revision < $4 AND status NOT IN ('draft', 'discarded')
		ORDER BY revision DESC LIMIT 1`
	// queryLast returns the newest batch that was sealed and not withdrawn.
	queryLast = `SELECT id FROM disbursement_batches WHERE tenant_id = $1 AND livemode = $2 AND id <> $3 AND status IN ('sealed', 'approved', 'releasing', 'done')
		ORDER BY id DESC LIMIT 1`
)

// earlier returns the batch that a query selects; ErrUnknown if there is none.
func (s *Store) earlier(ctx context.Context, sql string, args ...any) (Batch, error) {
	var id string
	err := s.pool.QueryRow(ctx, sql, args...).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Batch{}, ErrUnknown
	}
	if err != nil {
		return Batch{}, fmt.Errorf("finding an earlier batch: %w", err)
	}
	return s.Batch(ctx, Scope{}, id)
}

// note compares a batch with earlier ones, looks its payees up, and stores both. list is in the order of positions.
func (x *importing) note(ctx context.Context, b disbursement.Batch, list []lines.Line) (*Notes, error) {
	known, err := x.Payees.Known(ctx, b.TenantID, b.Live, b.Date, list)
	if err != nil {
		return nil, err
	}
	warnings, err := lines.Warn(list, b.Date, known, x.Payees.MAC)
	if err != nil {
		return nil, err
	}
	n := &Notes{Warnings: warnings.Count}
	listed := map[lines.WarningKind]int{}
	for _, w := range warnings.List {
		if listed[w.Kind]++; listed[w.Kind] <= NotesListed {
			n.Warned = append(n.Warned, Warned{w.Kind, w.Ref, w.Other})
		}
	}
	revision, err := x.Batches.earlier(ctx, queryRevision, b.TenantID, b.Live, b.BatchRef, b.Revision)
	if err == nil {
		n.Revision, err = x.byRef(ctx, revision, list)
	}
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	last, err := x.Batches.earlier(ctx, queryLast, b.TenantID, b.Live, b.ID)
	if err == nil && last.ID != revision.ID {
		n.Last, err = x.byPayee(ctx, last, list)
	}
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	if n.Names, err = x.askNames(ctx, b, list, known); err != nil {
		return nil, err
	}
	if err := x.Payees.Keep(ctx, b, list); err != nil {
		return nil, err
	}
	return n, x.Batches.KeepNotes(ctx, b, n)
}

// byRef compares with an earlier revision, whose lines it opens. A line that cannot be opened any more counts as removed and
// added.
func (x *importing) byRef(ctx context.Context, earlier Batch, list []lines.Line) (*Comparison, error) {
	var before, after []digest.Line
	for _, l := range list {
		after = append(after, l.Content)
	}
	err := x.Batches.eachLine(ctx, earlier.ID, x.Personal, func(l OpenLine) {
		if !l.Opened {
			l.Content = digest.Line{LineRef: l.Ref, Amount: l.Amount}
		}
		before = append(before, l.Content)
	})
	if err != nil {
		return nil, err
	}
	c, d := comparedWith(earlier, list), lines.Compare(before, after)
	for _, l := range d.Added {
		c.add(Changed{Kind: ChangeAdded, Ref: l.LineRef, After: l.Amount})
	}
	for _, l := range d.Removed {
		c.add(Changed{Kind: ChangeRemoved, Ref: l.LineRef, Before: l.Amount})
	}
	for _, l := range d.Changed {
		c.add(Changed{Kind: ChangeLine, Ref: l.After.LineRef, Columns: l.Columns, Before: l.Before.Amount, After: l.After.Amount})
	}
	return c, nil
}

func comparedWith(earlier Batch, list []lines.Line) *Comparison {
	c := &Comparison{
		Batch: earlier.ID, BatchRef: earlier.BatchRef, Revision: earlier.Revision, Date: earlier.Date, Before: earlier.Sum, Count: map[ChangeKind]int{},
	}
	for _, l := range list {
		c.After += l.Content.Amount
	}
	return c
}

// totalOf is what a payee gets in a batch: all its lines, and the first one.
type totalOf struct {
	ref      string
	position int
	name     lines.MAC
	amount   int64
}

// byPayee compares with an earlier batch whose line_refs are others: those of the month before.
func (x *importing) byPayee(ctx context.Context, earlier Batch, list []lines.Line) (*Comparison, error) {
	read, err := x.Payees.of(ctx, earlier.ID)
	if err != nil || len(read) == 0 {
		return nil, err
	}
	before, after := map[lines.MAC]*totalOf{}, map[lines.MAC]*totalOf{}
	var payeesBefore, payeesAfter []lines.MAC // in the order of positions
	under := earlierHashes{}
	for _, l := range list {
		x.Payees.add(under, lines.PayeeText(l.Content))
		x.Payees.add(under, lines.NameText(l.Content))
	}
	for _, p := range read {
		p.payee, p.name = under.now(p.payee), under.now(p.name)
		if t := before[p.payee]; t != nil {
			t.amount += p.amount
			continue
		}
		before[p.payee] = &totalOf{position: p.position, name: p.name, amount: p.amount}
		payeesBefore = append(payeesBefore, p.payee)
	}
	for i, l := range list {
		payee := x.Payees.MAC(lines.PayeeText(l.Content))
		if t := after[payee]; t != nil {
			t.amount += l.Content.Amount
			continue
		}
		after[payee] = &totalOf{ref: l.Content.LineRef, position: i, name: x.Payees.MAC(lines.NameText(l.Content)), amount: l.Content.Amount}
		payeesAfter = append(payeesAfter, payee)
	}
	// A name whose account is gone may have another one now. Of two people of one name each takes one.
	gone := map[lines.MAC][]lines.MAC{}
	for _, payee := range payeesBefore {
		if after[payee] == nil {
			name := before[payee].name
			gone[name] = append(gone[name], payee)
		}
	}
	c, moved := comparedWith(earlier, list), map[lines.MAC]bool{}
	for _, payee := range payeesAfter {
		now := after[payee]
		was := before[payee]
		switch {
		case was != nil && was.amount != now.amount:
			c.add(Changed{Kind: ChangeAmount, Ref: now.ref, Before: was.amount, After: now.amount})
		case was != nil:
		case len(gone[now.name]) > 0:
			of := gone[now.name][0]
			gone[now.name], moved[of] = gone[now.name][1:], true
			c.add(Changed{Kind: ChangeAccount, Ref: now.ref, Before: before[of].amount, After: now.amount})
		default:
			c.add(Changed{Kind: ChangeNew, Ref: now.ref, After: now.amount})
		}
	}
	var left []int32
	for _, payee := range payeesBefore {
		if after[payee] == nil && !moved[payee] {
			c.add(Changed{Kind: ChangeGone, Before: before[payee].amount})
			left = append(left, int32(before[payee].position)) //nolint:gosec // below MaxLines
		}
	}
	return c, x.Batches.nameGone(ctx, c, earlier.ID, left[:min(len(left), NotesListed)])
}

// nameGone sets the line_refs of the payees that are gone, whose positions in the earlier batch are in the order of the list.
func (s *Store) nameGone(ctx context.Context, c *Comparison, batch string, positions []int32) error {
	rows, _ := s.pool.Query(ctx, `SELECT position, line_ref FROM disbursement_lines WHERE batch = $1 AND position = ANY($2)`, batch, positions) // the rows carry its error
	var position int32
	var ref string
	refs := map[int32]string{}
	if _, err := pgx.ForEachRow(rows, []any{&position, &ref}, func() error { refs[position] = ref; return nil }); err != nil {
		return fmt.Errorf("reading lines of an earlier batch: %w", err)
	}
	first := slices.IndexFunc(c.List, func(x Changed) bool { return x.Kind == ChangeGone })
	for i, position := range positions {
		c.List[first+i].Ref = refs[position]
	}
	return nil
}
