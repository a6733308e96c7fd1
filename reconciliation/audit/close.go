package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quittance/internal/journal"
	"quittance/internal/report"
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

// WithoutRows returns the close without its rows, to keep it: it proves nothing more.
func (c *Close) WithoutRows() Close {
	out := *c
	out.tree, out.rows = nil, nil
	return out
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

// EachOf computes the closes of an account again, in their order, and calls do for each. What do does not keep is
// forgotten: a close has all its rows.
func (b *Book) EachOf(account string, do func(*Close) error) error {
	w := newWorld(b, account)
	defer b.disk.forget(w.prefix)
	var failed error
	before, first, signed := "", true, false
	b.closes.each(account+"|", account+"}", func(_ string, c journal.Close) {
		if failed != nil {
			return
		}
		closed, err := w.close(&c)
		if err != nil {
			failed = fmt.Errorf("close %s: %w", c.ID, err)
			return
		}
		switch {
		case closed.Unproved: // named the digest of the one before
		case first && c.Previous != "":
			closed.Faults = append(closed.Faults, "it follows a close that Kafka does not have")
		case !first && c.Previous != before:
			closed.Faults = append(closed.Faults, fmt.Sprintf("it follows a close with the hash %s, the one before has %s", cmp.Or(c.Previous, "none"), before))
		}
		b.checkSignature(&closed, signed)
		b.checkReports(&closed)
		before, first, signed = c.Hash(), false, signed || c.Signature != ""
		failed = do(&closed)
	})
	return errors.Join(failed, b.disk.err)
}

// Each computes the closes of all accounts again, by account and in their order. See EachOf.
func (b *Book) Each(do func(*Close) error) error {
	for _, account := range b.Accounts() {
		if err := b.EachOf(account, do); err != nil {
			return err
		}
	}
	return nil
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

// checkSignature verifies the signature of a close. signed is true if an earlier close of the account is signed: then
// all are, so that nobody can leave the signature out.
func (b *Book) checkSignature(c *Close, signed bool) {
	switch {
	case c.Close.Signature == "" && !signed:
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

// checkReports compares what the reports say of the days of a close with what they said when it was closed. A close of
// an earlier release states nothing.
//
// The rest of the close is verified from Kafka alone: while the reports cannot be read, that is remembered (Unread), and the
// close is not in doubt.
func (b *Book) checkReports(c *Close) {
	if b.Reports == nil || len(c.Reports) == 0 || b.Unread != nil {
		return
	}
	now, err := b.Reports(&c.Close)
	if err != nil {
		b.Unread = err
		return
	}
	if differ := report.Differences(c.Close.Reports, now); len(differ) > 0 {
		c.Faults = append(c.Faults, "reports say something else of its days than when it was closed (`quittance journal verify` names the rows that were changed): "+strings.Join(differ, ", "))
	}
}

// Accounts returns the accounts with closes, sorted.
func (b *Book) Accounts() []string { return slices.Sorted(maps.Keys(b.accounts)) }

// Entries returns the ids of expected money that a term names: an entry, a session, an order, a
// payment or notice reference, an operator's reference, a collection, a transaction or a due.
func (b *Book) Entries(term string) []string {
	var out []string
	b.entries.each("", "", func(_ string, e entry) {
		if term != "" && (slices.Contains([]string{e.ID, e.Row, e.Session, e.Order, e.Payment, e.OperatorRef, e.Collection}, term) ||
			slices.Contains(e.Notices, term) || slices.Contains(e.Transactions, term) || slices.Contains(e.DueRefs, term)) {
			out = append(out, e.ID)
		}
	})
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
