package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	// The library of Certificate Transparency's maintainers has the tree of RFC 6962 and its
	// proofs, with the vectors that other implementations are tested with.
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// ErrNotInTree is returned by Tree.Prove for a row that the tree does not have.
var ErrNotInTree = errors.New("no such row in the tree")

// ErrDuplicateRow is returned by New for a due that occurs twice: two rows have the same
// entry and item.
var ErrDuplicateRow = errors.New("two rows of the same due")

// Hash is a SHA-256 hash. Its text is hexadecimal.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hash in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return fmt.Errorf("a hash has %d hexadecimal digits, this text has %d bytes", 2*len(h), len(text))
	}
	copy(h[:], b)
	return nil
}

// Tree is the Merkle tree over the rows of a closed period. It does not change and is safe
// for concurrent use.
type Tree struct {
	// levels are the hashes of complete subtrees: the leaves first, then their parents.
	levels [][]Hash
	// position finds a row's leaf by its hash.
	position map[Hash]uint64
	root     Hash
}

// New returns the tree over the rows, in any order. The root of no rows is the SHA-256 of no
// bytes. It returns a *RowError for a row with a wrong value, and ErrDuplicateRow.
func New(rows []Row) (*Tree, error) {
	type due struct {
		entry string
		item  int
	}
	leaves := make([][]byte, len(rows))
	seen := make(map[due]struct{}, len(rows))
	for i := range rows {
		if err := rows[i].check(); err != nil {
			return nil, err
		}
		of := due{rows[i].Entry, rows[i].Item}
		if _, twice := seen[of]; twice {
			return nil, fmt.Errorf("%w: entry %s, item %d", ErrDuplicateRow, of.entry, of.item)
		}
		seen[of] = struct{}{}
		leaves[i] = rows[i].Canonical()
	}
	slices.SortFunc(leaves, bytes.Compare)
	return build(leaves)
}

// build returns the tree over leaves in their order.
func build(leaves [][]byte) (*Tree, error) {
	t := &Tree{position: make(map[Hash]uint64, len(leaves)), root: Hash(rfc6962.DefaultHasher.EmptyRoot())}
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	all := factory.NewEmptyRange(0)
	for i, leaf := range leaves {
		hash := rfc6962.DefaultHasher.HashLeaf(leaf)
		t.position[Hash(hash)] = uint64(i)
		if err := all.Append(hash, t.add); err != nil {
			return nil, fmt.Errorf("building the tree: %w", err)
		}
	}
	root, err := all.GetRootHash(nil)
	if err != nil {
		return nil, fmt.Errorf("building the tree: %w", err)
	}
	if root != nil {
		t.root = Hash(root)
	}
	return t, nil
}

// add keeps the hash of a complete subtree. The subtrees of a level come from left to right.
func (t *Tree) add(id compact.NodeID, hash []byte) {
	if int(id.Level) == len(t.levels) {
		t.levels = append(t.levels, nil)
	}
	t.levels[id.Level] = append(t.levels[id.Level], Hash(hash))
}

// Root returns the root, which a close keeps.
func (t *Tree) Root() Hash { return t.root }

// Size returns the number of rows, which a close keeps beside the root.
func (t *Tree) Size() uint64 { return uint64(len(t.position)) }

// Prove returns the proof that the tree has the row. It returns ErrNotInTree if any field of
// the row differs.
func (t *Tree) Prove(row Row) (Proof, error) {
	return t.prove(row.Canonical())
}

func (t *Tree) prove(leaf []byte) (Proof, error) {
	index, ok := t.position[Hash(rfc6962.DefaultHasher.HashLeaf(leaf))]
	if !ok {
		return Proof{}, ErrNotInTree
	}
	nodes, err := proof.Inclusion(index, t.Size())
	if err != nil {
		return Proof{}, fmt.Errorf("proving row %d of %d: %w", index, t.Size(), err)
	}
	path := make([][]byte, len(nodes.IDs))
	for i, id := range nodes.IDs {
		path[i] = t.levels[id.Level][id.Index][:]
	}
	path, err = nodes.Rehash(path, rfc6962.DefaultHasher.HashChildren)
	if err != nil {
		return Proof{}, fmt.Errorf("proving row %d of %d: %w", index, t.Size(), err)
	}
	p := Proof{Version: Version, Index: index, Size: t.Size(), Path: make([]Hash, len(path))}
	for i, hash := range path {
		p.Path[i] = Hash(hash)
	}
	return p, nil
}

// Proof is the audit path of RFC 6962, section 2.1.1, from a row to the root.
type Proof struct {
	// Version is that of the canonical form.
	Version int `json:"version"`
	// Index is the row's position among the Size sorted rows, from 0.
	Index uint64 `json:"index"`
	Size  uint64 `json:"size"`
	// Path has the hashes beside the way to the root, from the leaf.
	Path []Hash `json:"path"`
}

// Verify returns nil if the tree with the root and the size of a close has the row. Take both
// from the close, not from whoever gave the proof.
func (p *Proof) Verify(row Row, root Hash, size uint64) error {
	if p.Version != Version {
		return fmt.Errorf("the proof has version %d of the canonical form, this program knows version %d: use a later program", p.Version, Version)
	}
	if p.Size != size {
		return fmt.Errorf("the proof is of a tree of %d rows, the close has %d", p.Size, size)
	}
	if err := row.check(); err != nil {
		return err
	}
	return p.verify(row.Canonical(), root)
}

func (p *Proof) verify(leaf []byte, root Hash) error {
	path := make([][]byte, len(p.Path))
	for i := range p.Path {
		path[i] = p.Path[i][:]
	}
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, p.Index, p.Size, rfc6962.DefaultHasher.HashLeaf(leaf), path, root[:]); err != nil {
		return fmt.Errorf("verifying row %d of %d: %w", p.Index, p.Size, err)
	}
	return nil
}
