package receipts

import (
	"context"
	"errors"
	"time"
)

// Verdict is what somebody who checks a receipt is told. There is one sentence for each.
type Verdict string

// The verdicts.
const (
	// VerdictAuthentic: the signature is valid, and the service says that the payment stands.
	VerdictAuthentic Verdict = "authentic"
	// VerdictUnconfirmed: the signature is valid. Nobody was asked about a reversal.
	VerdictUnconfirmed Verdict = "unconfirmed"
	// VerdictReversed: the receipt is authentic, and the money was given back.
	VerdictReversed Verdict = "reversed"
	// VerdictTest: the receipt of a test payment. At of the result says whether it was reversed.
	VerdictTest Verdict = "test"
	// VerdictDiffers: the signature is valid, and the record of that payment has another amount, fee, currency
	// or reference. Somebody has the key.
	VerdictDiffers Verdict = "differs"
	// VerdictUnknownKey: only the service can tell.
	VerdictUnknownKey Verdict = "unknown_key"
	// VerdictNone: not a receipt of this service.
	VerdictNone Verdict = "none"
)

// Result is the verdict on a text.
type Result struct {
	Verdict Verdict
	// At is when the payment was reversed (VerdictReversed; VerdictTest, zero if no reversal is
	// known), or as of when reversals are known (VerdictAuthentic, VerdictUnconfirmed; zero if
	// none are known).
	At time.Time
	// Claims are what the receipt says. They are zero for VerdictDiffers, VerdictUnknownKey and
	// VerdictNone, because then they prove nothing.
	Claims Claims
}

// Record is what the service has of a paid due.
type Record struct {
	// Claims of the record; zero for somebody who was told only whether they agree.
	Claims Claims
	// Differs is what such a caller was told: the record has not the payment of the receipt.
	Differs    bool
	Live       bool
	ReversedAt time.Time // zero: the payment stands
}

// Records returns the record of a transaction. ok is false if no due was paid with it. An error
// means that the record cannot be read now.
type Records func(ctx context.Context, transactionID string) (r Record, ok bool, err error)

// Check says what a text is that claims to be a receipt. All keys must be known, the revoked ones
// too. now is only what At says. An error is one of records.
func (ks Keys) Check(ctx context.Context, issuer, text string, now time.Time, records Records) (Result, error) {
	v, err := ks.Verify(issuer, text)
	if err != nil {
		return Result{Verdict: VerdictNone}, nil //nolint:nilerr // the verdict on a forged text
	}
	id, ok := v.Claims.TransactionID()
	switch {
	case !ok && v.Test():
		return Result{Verdict: VerdictTest, Claims: v.Claims}, nil
	case !ok:
		return Result{Verdict: VerdictNone}, nil
	}
	record, ok, err := records(ctx, id)
	switch {
	case err != nil:
		return Result{}, err
	case v.Test(): // without value, with a record or not
		return Result{VerdictTest, record.ReversedAt, v.Claims}, nil
	case !ok || !record.Live || v.Revoked() && !v.Claims.Agrees(record.Claims):
		return Result{Verdict: VerdictNone}, nil // somebody has the key
	case record.Differs || record.Claims != (Claims{}) && !record.Claims.HasPayment(v.Claims.PaymentDigest()):
		return Result{Verdict: VerdictDiffers}, nil
	case !record.ReversedAt.IsZero():
		return Result{VerdictReversed, record.ReversedAt, v.Claims}, nil
	}
	return Result{VerdictAuthentic, now, v.Claims}, nil
}

// CheckOffline is Check without the service: with the public keys, and with the list of
// reversals of the receipt's key, or nil.
func (ks Keys) CheckOffline(issuer, text string, lists func(kid string) *Reversals) Result {
	v, err := ks.Verify(issuer, text)
	switch {
	case errors.Is(err, ErrUnknownKey), errors.Is(err, ErrVersion), err == nil && v.Revoked():
		return Result{Verdict: VerdictUnknownKey}
	case err != nil:
		return Result{Verdict: VerdictNone}
	}
	out := Result{Verdict: VerdictUnconfirmed, Claims: v.Claims}
	if list := lists(v.Key.ID); list != nil {
		out.At = time.Unix(list.At, 0).UTC()
		if at, ok := list.Reversed[v.Claims.ID]; ok {
			out.Verdict, out.At = VerdictReversed, time.Unix(at, 0).UTC()
		}
	}
	if v.Test() {
		if out.Verdict != VerdictReversed {
			out.At = time.Time{}
		}
		out.Verdict = VerdictTest
	}
	return out
}
