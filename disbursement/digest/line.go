package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Line is the content of a line, with its texts as the rail sends them. Empty texts are absent.
type Line struct {
	// Amount in minor units of Currency.
	Amount        int64
	Currency      string
	LineRef       string
	PayoutAccount string // code
	PaymentMode   string
	Name          string
	MSISDN        string
	IBAN          string
	BIC           string
	Number        string // of an account without an IBAN
	Purpose       string
	Corrects      string // line_ref
}

// Leaf returns the leaf of a line: SHA-256 of a zero byte, the salt and the canonical JSON. The salt is sealed with the
// line, so that a leaf tells nothing once the line is erased. The error is ErrText.
func Leaf(salt [32]byte, l Line) (Hash, error) {
	j, err := canonical(without(object{
		"amount": l.Amount, "bic": l.BIC, "corrects": l.Corrects, "currency": l.Currency, "iban": l.IBAN, "line_ref": l.LineRef, "msisdn": l.MSISDN,
		"name": l.Name, "number": l.Number, "payment_mode": l.PaymentMode, "payout_account": l.PayoutAccount, "purpose": l.Purpose,
	}))
	if err != nil {
		return Hash{}, err
	}
	return sha256.Sum256(slices.Concat([]byte{0}, salt[:], j)), nil
}

// Tree is the tree of RFC 6962 over leaves that come one by one. It keeps the roots of the complete subtrees only, at most
// 17 for 100,000 leaves. The zero value is the empty tree.
type Tree struct {
	Size  int
	Peaks []Hash // the largest subtree first
}

// Add returns the tree with one more leaf. It does not change t.
func (t Tree) Add(leaf Hash) Tree {
	peaks := append(slices.Clone(t.Peaks), leaf)
	for n := t.Size; n&1 == 1; n >>= 1 {
		last := len(peaks) - 1
		peaks = append(peaks[:last-1], node(peaks[last-1], peaks[last]))
	}
	return Tree{t.Size + 1, peaks}
}

// Root returns the root of the tree.
func (t Tree) Root() Hash {
	if t.Size == 0 {
		return sha256.Sum256(nil)
	}
	root := t.Peaks[len(t.Peaks)-1]
	for i := len(t.Peaks) - 2; i >= 0; i-- {
		root = node(t.Peaks[i], root)
	}
	return root
}

func node(left, right Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}
