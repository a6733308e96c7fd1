package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"quittance/internal/journal"
	"quittance/internal/secret"
	"quittance/reconciliation/chain"
	"quittance/schemas"
)

// Close is a close that was computed again. Root and Rows are those computed; the record says
// ChainRoot and ChainRows.
type Close struct {
	journal.Close
	Root chain.Hash
	Rows int64
	// Faults say where the record differs from what was computed; empty for a close that holds.
	Faults []string
	// Signature says whether the close is signed.
	Signature Signature
	// Unproved is true for a close without a root, of a release before there were roots.
	Unproved bool

	tree *chain.Tree
	rows map[string][]chain.Row // by entry
}

// Evidence returns where the record of the close is.
func (c *Close) Evidence() chain.Evidence {
	return chain.Evidence{Topic: schemas.TopicReconciliation, Partition: c.SourcePartition, Offset: c.SourceOffset}
}

// Holds reports whether the close has a root, and Kafka has the rows under it.
func (c *Close) Holds() bool { return !c.Unproved && len(c.Faults) == 0 }

// Proof proves a row of a close.
type Proof struct {
	Row   chain.Row   `json:"row"`
	Proof chain.Proof `json:"proof"`
}

// Proofs returns the rows of an entry of expected money in the close, each with its proof; none if the
// close has none.
func (c *Close) Proofs(entryID string) ([]Proof, error) {
	var out []Proof
	for _, row := range c.rows[entryID] {
		p, err := c.tree.Prove(row)
		if err != nil {
			return nil, err
		}
		if err := p.Verify(row, c.Root, uint64(c.Rows)); err != nil { //nolint:gosec // a count
			return nil, err
		}
		out = append(out, Proof{row, p})
	}
	return out, nil
}

// Closes computes the closes of an account again, in their order.
func (b *Book) Closes(account string) ([]Close, error) {
	w := newWorld(b, account)
	var out []Close
	for _, c := range b.closes {
		if c.Account != account {
			continue
		}
		closed, err := w.close(c)
		if err != nil {
			return nil, fmt.Errorf("close %s: %w", c.ID, err)
		}
		switch {
		case closed.Unproved: // named the digest of the one before
		case len(out) == 0 && c.Previous != "":
			closed.Faults = append(closed.Faults, "it follows a close that Kafka does not have")
		case len(out) > 0 && c.Previous != out[len(out)-1].Hash():
			closed.Faults = append(closed.Faults, fmt.Sprintf("it follows a close with the hash %s, the one before has %s", cmp.Or(c.Previous, "none"), out[len(out)-1].Hash()))
		}
		b.checkSignature(&closed, out)
		out = append(out, closed)
	}
	return out, nil
}

// Signature says whether a close is signed.
type Signature string

// What is known of a signature.
const (
	SignatureGood      Signature = "good"
	SignatureNone      Signature = "none"        // of a release before there were signatures
	SignatureUnchecked Signature = "not checked" // the Book has no keys
	SignatureBad       Signature = "bad"
)

// checkSignature verifies the signature of a close. before are the earlier closes of the account: once one is signed,
// all are, so that nobody can leave the signature out.
func (b *Book) checkSignature(c *Close, before []Close) {
	switch {
	case c.Close.Signature == "" && !slices.ContainsFunc(before, func(o Close) bool { return o.Close.Signature != "" }):
		c.Signature = SignatureNone
		return
	case c.Close.Signature == "":
		c.Faults = append(c.Faults, "it has no signature, an earlier close has one")
	case len(b.Keys) == 0:
		c.Signature = SignatureUnchecked
		return
	case c.SignedBy(b.Keys):
		c.Signature = SignatureGood
		return
	case !slices.ContainsFunc(b.Keys, func(k secret.PublicKey) bool { return k.ID == c.SignedWith }):
		c.Faults = append(c.Faults, fmt.Sprintf("it is signed with the key %q, which is not known: give the public key of that time", c.SignedWith))
	default:
		c.Faults = append(c.Faults, "its signature does not verify: its record was changed")
	}
	c.Signature = SignatureBad
}

// All computes the closes of all accounts again, by account and in their order.
func (b *Book) All() ([]Close, error) {
	var out []Close
	for _, account := range b.Accounts() {
		closes, err := b.Closes(account)
		if err != nil {
			return nil, err
		}
		out = append(out, closes...)
	}
	return out, nil
}

// Accounts returns the accounts with closes, sorted.
func (b *Book) Accounts() []string {
	seen := map[string]bool{}
	for _, c := range b.closes {
		seen[c.Account] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Entries returns the ids of expected money that a term names: an entry, a session, an order, a
// payment or notice reference, an operator's reference, a collection, a transaction or a due.
func (b *Book) Entries(term string) []string {
	var out []string
	for _, e := range b.entries {
		if term != "" && (slices.Contains([]string{e.ID, e.row, e.Session, e.order, e.payment, e.OperatorRef, e.collection}, term) ||
			slices.Contains(e.notices, term) || slices.Contains(e.Transactions, term) || slices.Contains(e.DueRefs, term)) {
			out = append(out, e.ID)
		}
	}
	slices.Sort(out)
	return out
}

func set(texts []string) map[string]bool {
	out := map[string]bool{}
	for _, t := range texts {
		out[t] = true
	}
	return out
}
