package quota

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/network"
)

// The limits of receipts that people ask for on the page of a payment, in 24 hours.
const (
	// ReceiptsPerSession is one address, and two corrections of a typing error.
	ReceiptsPerSession = 3
	// ReceiptsPerAddress is well below what an address gets of all messages, so that nobody keeps an address
	// from its other messages.
	ReceiptsPerAddress = 3
	// ReceiptsPerShared and ReceiptsPerSubscriber are how many an IPv4 address, which many phones share, and a
	// /64 of IPv6 may ask for. Wider networks have multiples (network.Multiples).
	ReceiptsPerShared     = 300
	ReceiptsPerSubscriber = 30
	receiptDay            = 24 * time.Hour
)

// Receipts limits the receipts that people ask for, so that a paid session is no way to send messages to any
// address. The limits of sessions and addresses are exact over all instances; requests at the same time may
// exceed those of a network by their number. Addresses and networks are kept as keyed hashes for a day. It is
// safe for concurrent use.
type Receipts struct {
	// Postgres, with the migrations of internal/postgres.
	Postgres Database
	// Hash is a keyed hash.
	Hash func(text string) [sha256.Size]byte
	// Now is the time in UTC.
	Now func() time.Time
}

// ReceiptRequest asks for a receipt.
type ReceiptRequest struct {
	// MessageID is the id of the message. It counts once, however often it is asked for.
	MessageID string
	SessionID string
	// Address is the address in its one spelling (contact.Address.Key).
	Address string
	// Client is who asks (network.Client).
	Client string
}

const (
	// lockReceipts makes the requests of a session, or of an address, begin one after the other.
	lockReceipts = `SELECT pg_advisory_xact_lock(hashtextextended('receipts ' || $1, 0))`

	countReceipts = `SELECT
    EXISTS (SELECT FROM receipt_requests WHERE message_id = $1),
    (SELECT count(*) FROM receipt_requests WHERE session_id = $2 AND at > $4),
    (SELECT count(*) FROM receipt_requests WHERE address = $3 AND at > $4)`

	// receiptsOfNetworks reports whether a network of the client has used up its limit.
	receiptsOfNetworks = `SELECT
    EXISTS (SELECT FROM receipt_requests WHERE client = $1 AND at > $4 ORDER BY at DESC OFFSET $5 LIMIT 1) OR
    EXISTS (SELECT FROM receipt_requests WHERE site = $2 AND at > $4 ORDER BY at DESC OFFSET $6 LIMIT 1) OR
    EXISTS (SELECT FROM receipt_requests WHERE provider = $3 AND at > $4 ORDER BY at DESC OFFSET $7 LIMIT 1)`

	addReceipt = `INSERT INTO receipt_requests (message_id, session_id, address, client, site, provider, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

	// forgetReceipts deletes more rows than one request adds. It never waits for a row.
	forgetReceipts = `DELETE FROM receipt_requests WHERE message_id IN (
    SELECT message_id FROM receipt_requests WHERE at <= $1 ORDER BY at LIMIT 20 FOR UPDATE SKIP LOCKED)`
)

// Begin counts a request and reports whether its receipt may be sent. A request that was counted may be sent
// again: it is the same message. An error means that Postgres did not answer in time; nothing may be sent then.
func (r *Receipts) Begin(ctx context.Context, q ReceiptRequest) (admitted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := r.Now()
	since, address := now.Add(-receiptDay), r.Hash("address "+q.Address)
	err = pgx.BeginFunc(ctx, r.Postgres, func(tx pgx.Tx) error {
		// Always the session first: two requests never wait for each other.
		for _, what := range []string{"session " + q.SessionID, fmt.Sprintf("address %x", address)} {
			if _, err := tx.Exec(ctx, lockReceipts, what); err != nil {
				return err
			}
		}
		var known, full bool
		var ofSession, ofAddress int
		if err := tx.QueryRow(ctx, countReceipts, q.MessageID, q.SessionID, address[:], since).Scan(&known, &ofSession, &ofAddress); err != nil {
			return err
		}
		if admitted = known || ofSession < ReceiptsPerSession && ofAddress < ReceiptsPerAddress; known || !admitted {
			return nil
		}
		most := ReceiptsPerSubscriber
		if network.Shared(q.Client) {
			most = ReceiptsPerShared
		}
		var networks, limits []any
		for w, name := range network.Of(q.Client) {
			hash := r.Hash("network " + name)
			networks, limits = append(networks, hash[:]), append(limits, most*network.Multiples[w]-1)
		}
		if err := tx.QueryRow(ctx, receiptsOfNetworks, append(append(append([]any{}, networks...), since), limits...)...).Scan(&full); err != nil {
			return err
		}
		if admitted = !full; full {
			return nil
		}
		if _, err := tx.Exec(ctx, addReceipt, append(append([]any{q.MessageID, q.SessionID, address[:]}, networks...), now)...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, forgetReceipts, since)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("counting a receipt that was asked for: %w", err)
	}
	return admitted, nil
}
