package disbursements

import (
	"context"
	"encoding/json"
	"slices"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
)

// Opener opens the sealed contents of lines: personal.Store. A line that cannot be opened has no content.
type Opener interface {
	Lines(ctx context.Context, lines []personal.SealedLine) ([]json.RawMessage, error)
}

var _ Opener = (*personal.Store)(nil)

// OpenLine is a line with its content.
type OpenLine struct {
	disbursement.Line
	Content digest.Line
	Salt    [32]byte
	// Opened is false for a line that was erased, or whose bytes are not its own.
	Opened bool
}

// Open opens lines of a batch, in their order.
func Open(ctx context.Context, with Opener, list []disbursement.Line) ([]OpenLine, error) {
	sealed := make([]personal.SealedLine, len(list))
	for i, l := range list {
		sealed[i] = personal.SealedLine{ID: personal.LineID(l.Batch, l.Position), Sealed: l.Sealed}
	}
	contents, err := with.Lines(ctx, sealed)
	if err != nil {
		return nil, err
	}
	out := make([]OpenLine, len(list))
	for i, l := range list {
		out[i].Line = l
		if contents[i] == nil {
			continue
		}
		salt, content, err := lines.ParseContent(contents[i])
		out[i].Salt, out[i].Content, out[i].Opened = salt, content, err == nil
	}
	return out, nil
}

// Difference is something in which the rows of a batch differ from what its approvers sign.
type Difference string

// The differences.
const (
	// DifferentDigest says that the digest is not that of what is shown of the batch.
	DifferentDigest Difference = "digest"
	DifferentRoot   Difference = "root"
	DifferentCount  Difference = "count"
	DifferentSum    Difference = "sum" // or the largest line, or the sum of an account
	// DifferentLines says that a line cannot be opened.
	DifferentLines Difference = "lines"
	// DifferentApprovals says that an approval is not signed over the batch, by a passkey of its person, or that one lacks, and
	// DifferentStatus that the status of a line or of the batch is not what the rest says. Stands finds them, Compare does not.
	DifferentApprovals Difference = "approvals"
	DifferentStatus    Difference = "status"
)

// Differences has all differences.
func Differences() []Difference {
	return []Difference{DifferentDigest, DifferentRoot, DifferentCount, DifferentSum, DifferentLines, DifferentApprovals, DifferentStatus}
}

// compareAtOnce is how many lines are in memory.
const compareAtOnce = 500

// Compare opens all lines of a sealed batch, 500 at a time, calls take with each, in their order, and returns in what they, and
// what the rows say of the batch, differ from what its approvers sign; none if a person may sign what take was given. Whoever
// shows lines beside a button shows those of take: rows that are read once more may be others.
func (s *Store) Compare(ctx context.Context, with Opener, b Batch, take func(OpenLine)) (out []Difference, err error) {
	return s.compare(ctx, with, b, func(l OpenLine, _ digest.Hash) { take(l) })
}

// compare is Compare. It calls take with the leaf of each line, too.
func (s *Store) compare(ctx context.Context, with Opener, b Batch, take func(OpenLine, digest.Hash)) (out []Difference, err error) {
	out = b.headerDiffers()
	differs := func(d Difference) {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	c := b.Sealing.Content
	var tree digest.Tree
	var sum, largest int64
	counts := map[string]disbursement.Total{}
	err = s.eachLine(ctx, b.ID, with, func(l OpenLine) {
		leaf, err := digest.Leaf(l.Salt, l.Content)
		take(l, leaf)
		if !l.Opened || err != nil || l.Position != tree.Size {
			differs(DifferentLines)
		}
		tree = tree.Add(leaf)
		sum, largest = sum+l.Content.Amount, max(largest, l.Content.Amount)
		of := counts[l.Content.PayoutAccount]
		counts[l.Content.PayoutAccount] = disbursement.Total{Count: of.Count + 1, Sum: of.Sum + l.Content.Amount}
	})
	if err != nil {
		return nil, err
	}
	if tree.Root() != c.Root {
		differs(DifferentRoot)
	}
	if tree.Size != c.Count {
		differs(DifferentCount)
	}
	if sum != c.Sum || largest != c.Largest || len(counts) != len(c.Accounts) {
		differs(DifferentSum)
	}
	for _, a := range c.Accounts {
		if counts[a.Code] != (disbursement.Total{Count: a.Count, Sum: a.Sum}) {
			differs(DifferentSum)
		}
	}
	slices.Sort(out)
	return out, nil
}

// headerDiffers returns in what the row of a batch differs from what its approvers sign.
func (b Batch) headerDiffers() (out []Difference) {
	c := b.Sealing.Content
	for d, differs := range map[Difference]bool{
		DifferentDigest: !b.ofDigest(), DifferentRoot: b.Tree.Root() != c.Root, DifferentCount: b.Count != c.Count, DifferentSum: b.Sum != c.Sum || b.Largest != c.Largest,
	} {
		if differs {
			out = append(out, d)
		}
	}
	return out
}

// eachLine calls take with each line of a batch in their order, compareAtOnce at a time. with opens them; nil for lines without
// their contents.
func (s *Store) eachLine(ctx context.Context, batch string, with Opener, take func(OpenLine)) error {
	for read, next := 0, 0; read <= disbursement.MaxLines; {
		list, err := s.Lines(ctx, batch, LineQuery{From: next, Size: compareAtOnce})
		if err != nil {
			return err
		}
		opened := make([]OpenLine, len(list))
		for i, l := range list {
			opened[i].Line = l
		}
		if with != nil {
			if opened, err = Open(ctx, with, list); err != nil {
				return err
			}
		}
		for _, l := range opened {
			take(l)
		}
		if len(list) < compareAtOnce {
			return nil
		}
		read, next = read+len(list), list[len(list)-1].Position+1
	}
	return nil
}

// ofDigest reports whether the rows of a sealed batch say of it what its digest does.
func (b Batch) ofDigest() bool {
	c := b.Sealing.Content
	own, err := c.Digest()
	return err == nil && own == b.Digest && c.Batch == b.ID && c.Agency == b.TenantID && c.Mode == disbursement.Mode(b.Live) && c.BatchRef == b.BatchRef &&
		c.Revision == b.Revision && c.Currency == b.Currency && c.Date == b.Date && c.Maker == b.Maker
}

// Line returns a line of a batch with its content. The error is ErrUnknown for a position that it does not have.
func (s *Store) Line(ctx context.Context, with Opener, b Batch, position int) (OpenLine, error) {
	if position < 0 || position >= b.Count || position >= disbursement.MaxLines {
		return OpenLine{}, ErrUnknown
	}
	list, err := s.Lines(ctx, b.ID, LineQuery{From: position, Size: 1})
	switch {
	case err != nil:
		return OpenLine{}, err
	case len(list) == 0 || list[0].Position != position:
		return OpenLine{}, ErrUnknown
	}
	opened, err := Open(ctx, with, list)
	if err != nil {
		return OpenLine{}, err
	}
	return opened[0], nil
}

// Approved reports whether a line is the one at its position that approvers signed, with this content if it could be opened:
// its leaf is in the root of the signed digest. The leaves of all lines are read for that, 500 at a time.
func (s *Store) Approved(ctx context.Context, b Batch, l OpenLine) (bool, error) {
	if l.Opened {
		leaf, err := digest.Leaf(l.Salt, l.Content)
		account := l.Account >= 0 && l.Account < len(b.Accounts) && b.Accounts[l.Account].Code == l.Content.PayoutAccount
		if err != nil || leaf != l.Leaf || l.Content.Amount != l.Amount || l.Content.LineRef != l.Ref || !account {
			return false, nil //nolint:nilerr // a content that is no line is not the approved one
		}
	}
	var tree digest.Tree
	same := b.ofDigest()
	err := s.eachLine(ctx, b.ID, nil, func(x OpenLine) {
		same = same && x.Position == tree.Size && (x.Position != l.Position || x.Leaf == l.Leaf)
		tree = tree.Add(x.Leaf)
	})
	if err != nil {
		return false, err
	}
	return same && tree.Root() == b.Sealing.Content.Root && l.Position < tree.Size, nil
}
