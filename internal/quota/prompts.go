package quota

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quittance/internal/network"
)

// Share is what the limits of a number are counted by, so that strangers who know a number use up nothing of its
// owner's. The names are in rows.
type Share string

// The shares of a number.
const (
	// ShareTyped is of whoever typed the number. Nothing tells the owner's browser from a stranger's.
	ShareTyped Share = "typed"
	// ShareGiven is of sessions whose integrator has named the number.
	ShareGiven Share = "given"
	// ShareProven is of sessions of a citizen whose account has proved the number.
	ShareProven Share = "proven"
)

// The limits of prompts to one phone number, in each share.
const (
	// PromptsPerWindow is how many prompts a share of a number gets in PromptWindow.
	PromptsPerWindow = 3
	PromptWindow     = 10 * time.Minute
	// PromptsPerDay is how many it gets in 24 hours.
	PromptsPerDay = 10
	promptDay     = 24 * time.Hour
	// PromptsPerShared and PromptsPerSubscriber are how many prompts may be sent from an IPv4
	// address, which many phones share, and from a /64 of IPv6 in PromptWindow. Wider networks have
	// multiples (network.Multiples).
	PromptsPerShared     = 300
	PromptsPerSubscriber = 30
)

// Database is the part of a Postgres pool that Prompts uses.
type Database interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Prompts limits the requests to pay that citizens send to a phone: whoever types a number makes
// that phone ring. A number has one open prompt at a time in each share, and the networks of the client that
// asks for a number that was typed have limits of their own, so that nobody makes one phone after the other ring. The limits
// of a number are exact over all instances; prompts that begin at the same time may exceed those
// of a network by their number. Numbers and networks are kept as keyed hashes for a day. It is
// safe for concurrent use.
type Prompts struct {
	// Postgres, with the migrations of internal/postgres.
	Postgres Database
	// Hash is a keyed hash.
	Hash func(text string) [sha256.Size]byte
	// Now is the time in UTC.
	Now func() time.Time
}

// Prompt is a request to pay on a phone.
type Prompt struct {
	// CollectionID is a UUID. Its prompt counts once, however often it begins.
	CollectionID string
	SessionID    string
	// Share is what it counts as; ShareTyped when empty. It is empty in an answer.
	Share Share
	// Client is who asks for it (network.Client), counted for ShareTyped alone. It is empty in an answer.
	Client string
	// EndsAt is when the prompt is over if nobody ends it before, UTC.
	EndsAt time.Time
}

// Prompted is the answer to Begin.
type Prompted struct {
	// Admitted says that the prompt may be sent, Added that it was counted now.
	Admitted, Added bool
	// Open is the prompt of the share that is open on the phone; nil for none. If it is decided, End it and
	// begin again.
	Open *Prompt
	// Wait is the time until a prompt may be sent; zero unless a limit is reached.
	Wait time.Duration
	// Network says that the limit is that of a network of the client, not that of the number.
	Network bool
}

const (
	// lockNumber makes the prompts of a number begin one after the other.
	lockNumber = `SELECT pg_advisory_xact_lock(hashtextextended('prompts ' || encode($1, 'hex'), 0))`

	promptsOf = `SELECT collection_id::text, session_id, share, at, ends_at FROM payment_prompts WHERE number = $1 AND at > $2 ORDER BY at DESC`

	// fullNetwork returns the prompt whose age ends the refusal by the limits of the networks;
	// null if none is reached.
	fullNetwork = `SELECT max(at) FROM (
    (SELECT at FROM payment_prompts WHERE client = $1 AND at > $4 ORDER BY at DESC OFFSET $5 LIMIT 1) UNION ALL
    (SELECT at FROM payment_prompts WHERE site = $2 AND at > $4 ORDER BY at DESC OFFSET $6 LIMIT 1) UNION ALL
    (SELECT at FROM payment_prompts WHERE provider = $3 AND at > $4 ORDER BY at DESC OFFSET $7 LIMIT 1)) last`

	addPrompt = `INSERT INTO payment_prompts (collection_id, number, session_id, share, at, ends_at, client, site, provider) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	// forgetPrompts deletes more rows than one prompt adds. It never waits for a row.
	forgetPrompts = `DELETE FROM payment_prompts WHERE collection_id IN (
    SELECT collection_id FROM payment_prompts WHERE at <= $1 ORDER BY at LIMIT 20 FOR UPDATE SKIP LOCKED)`

	endPrompt = `UPDATE payment_prompts SET ends_at = LEAST(ends_at, $2) WHERE collection_id = $1`

	withdrawPrompt = `DELETE FROM payment_prompts WHERE collection_id = $1`
)

// Begin counts a prompt to the number, which may be written in any way, unless another one is
// open or a limit is reached. An error means that Postgres did not answer in time; nothing may
// be sent then.
func (p *Prompts) Begin(ctx context.Context, number string, q Prompt) (out Prompted, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := p.Now()
	q.Share = cmp.Or(q.Share, ShareTyped)
	hash := p.Hash(digits(number))
	err = pgx.BeginFunc(ctx, p.Postgres, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockNumber, hash[:]); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, promptsOf, hash[:], now.Add(-promptDay)) // CollectRows returns its error
		sent, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sentPrompt])
		if err != nil {
			return err
		}
		if out = decide(sent, q, now); !out.Added {
			return nil
		}
		networks := []any{nil, nil, nil}
		if q.Share == ShareTyped {
			var wait time.Duration
			if networks, wait, err = p.networks(ctx, tx, q.Client, now); err != nil {
				return err
			}
			if wait > 0 {
				out = Prompted{Wait: wait, Network: true}
				return nil
			}
		}
		if _, err := tx.Exec(ctx, addPrompt, append([]any{q.CollectionID, hash[:], q.SessionID, q.Share, now, q.EndsAt}, networks...)...); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, forgetPrompts, now.Add(-promptDay))
		return err
	})
	if err != nil {
		return Prompted{}, fmt.Errorf("counting a prompt to a phone: %w", err)
	}
	return out, nil
}

// networks returns the hashes of a client's networks, by width, and the time until they may send a
// prompt.
func (p *Prompts) networks(ctx context.Context, tx pgx.Tx, client string, now time.Time) (hashes []any, wait time.Duration, err error) {
	most := PromptsPerSubscriber
	if network.Shared(client) {
		most = PromptsPerShared
	}
	var limits []any
	for w, name := range network.Of(client) {
		hash := p.Hash("network " + name)
		hashes = append(hashes, hash[:])
		limits = append(limits, most*network.Multiples[w]-1)
	}
	var last *time.Time
	err = tx.QueryRow(ctx, fullNetwork, slices.Concat(hashes, []any{now.Add(-PromptWindow)}, limits)...).Scan(&last)
	if err == nil && last != nil {
		wait = last.Add(PromptWindow).Sub(now)
	}
	return hashes, wait, err
}

// sentPrompt is a row of payment_prompts.
type sentPrompt struct {
	CollectionID, SessionID string
	Share                   Share
	At, EndsAt              time.Time
}

// decide reports whether a prompt may be sent after those of the last day, the newest first.
func decide(sent []sentPrompt, q Prompt, now time.Time) Prompted {
	for _, s := range sent {
		if s.CollectionID == q.CollectionID {
			return Prompted{Admitted: true}
		}
	}
	sent = slices.DeleteFunc(sent, func(s sentPrompt) bool { return s.Share != q.Share })
	for _, s := range sent {
		if now.Before(s.EndsAt) {
			return Prompted{Open: &Prompt{CollectionID: s.CollectionID, SessionID: s.SessionID, EndsAt: s.EndsAt.UTC()}}
		}
	}
	wait := time.Duration(0)
	if len(sent) >= PromptsPerWindow {
		wait = sent[PromptsPerWindow-1].At.Add(PromptWindow).Sub(now)
	}
	if len(sent) >= PromptsPerDay {
		wait = max(wait, sent[PromptsPerDay-1].At.Add(promptDay).Sub(now))
	}
	if wait > 0 {
		return Prompted{Wait: wait}
	}
	return Prompted{Admitted: true, Added: true}
}

// End says that the prompt of a collection is over, because the collection is decided.
func (p *Prompts) End(ctx context.Context, collectionID string) error {
	return p.change(ctx, "ending a prompt to a phone", endPrompt, collectionID, p.Now())
}

// Withdraw says that the prompt of a collection was not sent.
func (p *Prompts) Withdraw(ctx context.Context, collectionID string) error {
	return p.change(ctx, "withdrawing a prompt to a phone", withdrawPrompt, collectionID)
}

func (p *Prompts) change(ctx context.Context, doing, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := p.Postgres.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// nationalDigits is how long a number of the Republic of the Congo is without its country code.
const nationalDigits = 9

// digits returns the last digits of a number, so that one number has one hash with and without
// the country code.
func digits(number string) string {
	out := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, number)
	return out[max(0, len(out)-nationalDigits):]
}
