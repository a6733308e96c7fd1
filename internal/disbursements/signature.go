package disbursements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/disbursement/policy"
)

// SignatureKind says what two people sign.
type SignatureKind string

// The kinds of what two people sign.
const (
	SignResume SignatureKind = "resume" // the end of a hold
	SignPeople SignatureKind = "people"
	SignPolicy SignatureKind = "policy"
	SignSettle SignatureKind = "settle" // what becomes of a line
)

// SignatureLife is how long a first signature waits for the second.
const SignatureLife = 7 * 24 * time.Hour

// SignatureKey names what a first signature waits for. One waits for each.
type SignatureKey struct {
	TenantID string
	Kind     SignatureKind
	Live     bool   // of a policy and of a batch
	Batch    string // of a hold
}

// SettleKey names what the first signature about a line waits for.
func SettleKey(b disbursement.Batch, position int) SignatureKey {
	return SignatureKey{TenantID: b.TenantID, Kind: SignSettle, Live: b.Live, Batch: fmt.Sprintf("%s/%d", b.ID, position)}
}

// Settlement is what is proposed about a line.
type Settlement struct {
	Paid      bool   `json:"paid"`
	Reference string `json:"reference"` // of the evidence
	// Shown is the line as the person saw it, as the pages write it. A signature about another line than the present one is none.
	Shown string `json:"shown"`
}

// FirstSignature is the signature of one person on what two people sign. Whoever writes Postgres can change it: the second
// person signs what the page shows, and the processor refuses two signatures that are not over the same.
type FirstSignature struct {
	SignatureKey

	// Number is that of the hold, of the change, or of the decision about the line.
	Number int64
	// People, Policy and Settle are what is proposed, by the kind.
	People []disbursement.Enrolled
	Policy *policy.Policy
	Settle *Settlement
	Signed disbursement.Signed
	At     time.Time // UTC
}

// proposedContent is the stored form of what is proposed.
type proposedContent struct {
	People []disbursement.Enrolled `json:"people,omitempty"`
	Policy *policy.Policy          `json:"policy,omitempty"`
	Settle *Settlement             `json:"settle,omitempty"`
}

// KeepSignature stores a first signature, in place of one that waits for the same, and deletes those that have waited for
// SignatureLife.
func (s *Store) KeepSignature(ctx context.Context, f FirstSignature) error {
	content, err := json.Marshal(proposedContent{f.People, f.Policy, f.Settle})
	if err != nil {
		return fmt.Errorf("storing a first signature: %w", err)
	}
	signed, err := json.Marshal(f.Signed)
	if err != nil {
		return fmt.Errorf("storing a first signature: %w", err)
	}
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM disbursement_signatures WHERE at <= $1`, f.At.Add(-SignatureLife))
	b.Queue(`INSERT INTO disbursement_signatures (tenant_id, kind, livemode, batch, number, content, signed, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant_id, kind, livemode, batch) DO UPDATE SET number = excluded.number, content = excluded.content, signed = excluded.signed, at = excluded.at`,
		f.TenantID, string(f.Kind), f.Live, f.Batch, f.Number, content, signed, f.At)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("storing a first signature: %w", err)
	}
	return nil
}

// FirstSignature returns the signature that waits under a number at a time; nil if none does.
func (s *Store) FirstSignature(ctx context.Context, k SignatureKey, number int64, now time.Time) (*FirstSignature, error) {
	f := FirstSignature{SignatureKey: k, Number: number}
	var content, signed []byte
	err := s.pool.QueryRow(ctx, `SELECT content, signed, at FROM disbursement_signatures
		WHERE tenant_id = $1 AND kind = $2 AND livemode = $3 AND batch = $4 AND number = $5 AND at > $6`,
		k.TenantID, string(k.Kind), k.Live, k.Batch, number, now.Add(-SignatureLife)).Scan(&content, &signed, &f.At)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading a first signature: %w", err)
	}
	var c proposedContent
	if err := errors.Join(json.Unmarshal(content, &c), json.Unmarshal(signed, &f.Signed)); err != nil {
		return nil, nil //nolint:nilerr // a row that is not ours is no signature
	}
	f.At, f.People, f.Policy, f.Settle = f.At.UTC(), c.People, c.Policy, c.Settle
	return &f, nil
}

// DropSignature deletes a first signature, if it is still the one under the number.
func (s *Store) DropSignature(ctx context.Context, k SignatureKey, number int64) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM disbursement_signatures WHERE tenant_id = $1 AND kind = $2 AND livemode = $3 AND batch = $4 AND number = $5`,
		k.TenantID, string(k.Kind), k.Live, k.Batch, number); err != nil {
		return fmt.Errorf("deleting a first signature: %w", err)
	}
	return nil
}
