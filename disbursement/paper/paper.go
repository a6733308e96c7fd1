// Package paper says what a batch and its lines have for their papers: the facts of the certificate and of the payment advices that
// package document makes.
//
// Everything in this package is pure and safe for concurrent use.
package paper

import (
	"cmp"
	"encoding/hex"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/document"
)

// Given is an approval whose signature holds. Passkey is the SHA-256 of its SubjectPublicKeyInfo.
type Given struct {
	Level       int
	Person, For string // ids
	At          time.Time
	Passkey     [32]byte
}

// Approval returns a with what a batch has of its approval, whose content is what was signed. It leaves the agency, the times
// of the paper and the address of the check. releasedBy is the id of a person; empty for none. person returns who has an id.
func Approval(b disbursement.Batch, c digest.Batch, given []Given, releasedBy string, person func(id string) document.Person, a document.Approval) document.Approval {
	a.Test, a.Batch, a.BatchRef, a.Revision = !b.Live, b.ID, c.BatchRef, c.Revision
	a.Date, a.PayUntil, a.Count, a.Sum, a.Largest, a.Currency = c.Date, c.PayUntil, c.Count, c.Sum, c.Largest, c.Currency
	a.Maker, a.SealedAt = person(c.Maker), b.SealedAt
	a.Digest, a.Root, a.Policy = b.Digest.String(), c.Root.String(), c.Policy
	for _, f := range c.Accounts {
		a.Accounts = append(a.Accounts, document.Total{Name: f.Code, Count: f.Count, Sum: f.Sum})
	}
	for i, l := range c.Levels {
		level := document.Level{Role: l.Role, Needed: l.Needed}
		for _, g := range given {
			if g.Level != i+1 {
				continue
			}
			x := document.Approved{By: person(g.Person), At: g.At, Passkey: hex.EncodeToString(g.Passkey[:])}
			if g.For != "" {
				x.For = person(g.For)
			}
			level.Given = append(level.Given, x)
		}
		a.Levels = append(a.Levels, level)
	}
	if a.ReleasedAt = b.ReleasedAt; releasedBy != "" {
		a.ReleasedBy = person(releasedBy)
	}
	a.State, a.HeldSince = document.State(b.Status), b.Hold.Since
	for _, s := range disbursement.LineStatuses() {
		t := b.Lines.Of(s)
		a.Lines = append(a.Lines, document.StateTotal{State: document.State(s), Count: t.Count, Sum: t.Sum})
	}
	return a
}

// Payout returns p with what a line of a batch has of its payment: its content, and when its money moved. It leaves the agency,
// the time of the paper and the address of the check. PaidAt is zero unless the line is paid, or was and came back, without a doubt.
func Payout(b disbursement.Batch, l disbursement.Line, c digest.Line, h disbursement.History, p document.Payout) document.Payout {
	p.Test = !b.Live
	p.Amount, p.Currency = c.Amount, c.Currency
	p.Payee, p.Account, p.Purpose, p.Means = c.Name, MaskedAccount(c), c.Purpose, c.PaymentMode
	p.BatchRef, p.Revision, p.LineRef, p.Number = b.BatchRef, b.Revision, c.LineRef, l.Position+1
	p.PayoutRef, p.OperatorRef = PayoutRef(l), l.OperatorRef
	if !h.Evidenced(l) {
		p.PaidAt = time.Time{}
		return p
	}
	p.PaidAt, p.Decided, p.ReturnedAt = h.PaidAt, h.Decided, h.ReturnedAt
	for _, part := range h.Parts {
		p.Returned = append(p.Returned, document.ReturnedPart{Amount: part.Amount, Currency: part.Currency, At: part.At})
	}
	return p
}

// PayoutRef returns the reference of the attempt that paid a line, otherwise of the last one; empty before the first.
func PayoutRef(l disbursement.Line) string {
	attempt := cmp.Or(l.PaidBy, l.Attempt)
	if attempt == 0 {
		return ""
	}
	return disbursement.NewAttemptID(l.Batch, l.Position, attempt).PayoutRef()
}

// shownOfAccount is the number of characters of an account that people see.
const shownOfAccount = 4

// MaskedAccount returns the account or number of a payee with all but its last four characters masked.
func MaskedAccount(c digest.Line) string {
	account := cmp.Or(c.IBAN, c.Number, c.MSISDN)
	if len(account) <= shownOfAccount {
		return strings.Repeat("•", len(account))
	}
	return "•••• " + account[len(account)-shownOfAccount:]
}
