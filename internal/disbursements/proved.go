package disbursements

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"sync"

	"quittance/disbursement/digest"
)

// provedAtMost is how many batches a process remembers: 3 MB each, of 100,000 lines.
const provedAtMost = 8

// proved are batches whose lines were all opened, and are those of their digest. It spares whoever signs a large batch from opening
// all lines at each page and each press. Safe for concurrent use.
type proved struct {
	mu      sync.Mutex
	batches []provedBatch // the oldest first
}

// provedBatch is what Compare has found of a batch without differences.
type provedBatch struct {
	id string
	// root is that of the leaves, rows the hash of the bytes from which they were opened.
	root, rows digest.Hash
	leaves     []digest.Hash
}

func (p *proved) of(id string, root digest.Hash) (provedBatch, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.batches, func(b provedBatch) bool { return b.id == id && b.root == root })
	if i < 0 {
		return provedBatch{}, false
	}
	return p.batches[i], true
}

func (p *proved) keep(b provedBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batches = slices.DeleteFunc(p.batches, func(known provedBatch) bool { return known.id == b.id })
	if len(p.batches) == provedAtMost {
		p.batches = slices.Delete(p.batches, 0, 1)
	}
	p.batches = append(p.batches, b)
}

// CompareShown does what Compare does, and returns the lines of a page, which are among those that were compared. A batch that this
// process has compared before is not opened again while the sealed bytes of all its rows are the same, by their SHA-256: then what it
// returns is opened and compared with the leaves of that time.
func (s *Store) CompareShown(ctx context.Context, with Opener, b Batch, q LineQuery) (shown []OpenLine, out []Difference, err error) {
	root := b.Sealing.Content.Root
	if known, ok := s.seen.of(b.ID, root); ok {
		same, err := s.sameRows(ctx, known)
		if err == nil && same && len(b.headerDiffers()) == 0 {
			shown, same, err = s.ofLeaves(ctx, with, b.ID, q, known.leaves)
			if err == nil && same {
				return shown, nil, nil
			}
		}
		if err != nil {
			return nil, nil, err
		}
		shown = nil
	}
	rows := sha256.New()
	var leaves []digest.Hash
	out, err = s.compare(ctx, with, b, func(l OpenLine, leaf digest.Hash) {
		addRow(rows, l.Sealed)
		leaves = append(leaves, leaf)
		if l.Position >= q.From && len(shown) < q.Size && (!q.Cases || l.Case != "") {
			shown = append(shown, l)
		}
	})
	if err == nil && len(out) == 0 {
		s.seen.keep(provedBatch{b.ID, root, digest.Hash(rows.Sum(nil)), leaves})
	}
	return shown, out, err
}

// addRow adds the sealed bytes of a line to the hash of a batch's rows, as queryRows does.
func addRow(rows hash.Hash, sealed []byte) {
	one := sha256.Sum256(sealed)
	rows.Write(one[:])
}

const queryRows = `SELECT sha256(coalesce(string_agg(sha256(sealed), ''::bytea ORDER BY position), '')) FROM disbursement_lines WHERE batch = $1`

// sameRows reports whether the sealed bytes of all rows are those that were compared.
func (s *Store) sameRows(ctx context.Context, known provedBatch) (bool, error) {
	var rows []byte
	if err := s.reads.QueryRow(ctx, queryRows, known.id).Scan(&rows); err != nil {
		return false, fmt.Errorf("reading the hash of a batch's lines: %w", err)
	}
	return slices.Equal(rows, known.rows[:]), nil
}

// ofLeaves opens the lines of a page. same is false if one of them is not that of its leaf.
func (s *Store) ofLeaves(ctx context.Context, with Opener, id string, q LineQuery, leaves []digest.Hash) (shown []OpenLine, same bool, err error) {
	if q.Size == 0 {
		return nil, true, nil
	}
	list, err := s.Lines(ctx, id, q)
	if err == nil {
		shown, err = Open(ctx, with, list)
	}
	if err != nil {
		return nil, false, err
	}
	if !q.Cases && len(shown) != min(q.Size, max(0, len(leaves)-q.From)) {
		return nil, false, nil
	}
	for i, l := range shown {
		if !q.Cases && l.Position != q.From+i {
			return nil, false, nil
		}
		leaf, err := digest.Leaf(l.Salt, l.Content)
		if !l.Opened || err != nil || l.Position >= len(leaves) || leaf != leaves[l.Position] {
			return nil, false, nil //nolint:nilerr // Compare says what differs
		}
	}
	return shown, true, nil
}
