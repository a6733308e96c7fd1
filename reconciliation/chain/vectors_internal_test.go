package chain

import (
	"testing"

	"github.com/transparency-dev/merkle/testonly"
)

// TestVectors holds the tree against the vectors of RFC 6962's implementations, and every
// proof in trees of each size against the root.
func TestVectors(t *testing.T) {
	t.Parallel()
	leaves, roots := testonly.LeafInputs(), testonly.RootHashes()
	for size := range len(leaves) + 1 {
		tree, err := build(leaves[:size])
		if err != nil {
			t.Fatal(err)
		}
		if tree.Root() != Hash(roots[size]) {
			t.Errorf("root of %d leaves: %s, want %x", size, tree.Root(), roots[size])
		}
		for i, leaf := range leaves[:size] {
			p, err := tree.prove(leaf)
			if err != nil {
				t.Fatal(err)
			}
			if int(p.Index) != i {
				t.Errorf("leaf %d has index %d", i, p.Index)
			}
			if err := p.verify(leaf, tree.Root()); err != nil {
				t.Errorf("leaf %d of %d: %v", i, size, err)
			}
		}
	}
}
