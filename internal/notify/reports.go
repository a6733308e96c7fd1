package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/provider"
	"quittance/internal/secret"
)

// ReportState is what is known of a message that a provider reports on. Rows and metrics
// contain it, so it never changes.
type ReportState string

// The states of messages that providers report on:
//
//	sent ──► undelivered ──► delivered
//	  │           ▲              ▲
//	  └─► unknown ┴──────────────┘
//
// No report takes a message back to the left.
const (
	// ReportSent: the provider has the message, or may have it, and has not reported that it
	// was delivered or given up.
	ReportSent ReportState = "sent"
	// ReportUnknown: the provider has not reported for three days. A report may still come.
	ReportUnknown ReportState = "unknown"
	// ReportUndelivered: the provider has given the message up. A later report may still say
	// that it was delivered.
	ReportUndelivered ReportState = "undelivered"
	// ReportDelivered: the phone has the message. This is final.
	ReportDelivered ReportState = "delivered"
)

// rank orders the states: a report changes a message only to a state of a higher rank.
func (s ReportState) rank() int {
	switch s {
	case ReportSent, ReportUnknown:
	case ReportUndelivered:
		return 1
	case ReportDelivered:
		return 2
	}
	return 0
}

// stateAfter returns the state that a report asks for.
func stateAfter(s provider.ReportState) ReportState {
	switch s {
	case provider.ReportDelivered:
		return ReportDelivered
	case provider.ReportUndelivered:
		return ReportUndelivered
	case provider.ReportPending:
	}
	return ReportSent
}

const (
	// reportPatience is the time without a report after which a message is ReportUnknown.
	reportPatience = 3 * 24 * time.Hour
	// keptReports is how long a row is kept: as long as that of its delivery.
	keptReports = 60 * 24 * time.Hour
)

// ErrUnknownMessage says that the service has not given this message to the provider, or has
// forgotten it.
var ErrUnknownMessage = errors.New("the provider has no message of ours with this id")

// Reports remembers what providers report of messages. Safe for concurrent use.
type Reports struct{ pool *pgxpool.Pool }

// NewReports makes Reports over the pool, which the caller closes.
func NewReports(pool *pgxpool.Pool) *Reports { return &Reports{pool} }

// Done reports whether the message needs no call any more: its provider has accepted it, or
// has reported that it was delivered.
func (r *Reports) Done(ctx context.Context, messageID string) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = r.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM message_reports WHERE message_id = $1 AND (accepted_at IS NOT NULL OR state = 'delivered'))`, messageID).Scan(&done)
	if err != nil {
		return false, fmt.Errorf("reading the report on a message: %w", err)
	}
	return done, nil
}

// Begin records, before the call, that the provider gets the message and may report on it. A
// state that a report has set stays.
func (r *Reports) Begin(ctx context.Context, messageID, destinationID, providerName string, now time.Time) error {
	return r.write(ctx, "recording that a message is being sent", `
		INSERT INTO message_reports AS r (message_id, destination_id, provider, calls, sent_at) VALUES ($1, $2, $3, 1, $4)
		ON CONFLICT (message_id) DO UPDATE SET provider = $3, calls = r.calls + 1, sent_at = $4`,
		messageID, destinationID, providerName, now)
}

// Accepted records that the provider has accepted the message. The time of the first acceptance
// stays.
func (r *Reports) Accepted(ctx context.Context, messageID string, now time.Time) error {
	return r.write(ctx, "recording that a message was accepted", `UPDATE message_reports SET accepted_at = coalesce(accepted_at, $2) WHERE message_id = $1`, messageID, now)
}

func (r *Reports) write(ctx context.Context, doing, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if _, err := r.pool.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Refused records that the provider has definitely not accepted the message in the last call,
// so that no report on this call is awaited. unknown says that its address reaches nobody: it
// counts at the address, unless a report on the message has counted before.
func (r *Reports) Refused(ctx context.Context, messageID string, unknown bool, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		var destinationID string
		var state ReportState
		var calls int
		var counted bool
		err := tx.QueryRow(ctx, `SELECT destination_id, state, calls, counted FROM message_reports WHERE message_id = $1 FOR UPDATE`, messageID).Scan(&destinationID, &state, &calls, &counted)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if unknown && !counted {
			if err := countUnknown(ctx, tx, channelOf(destinationID), destinationID, now); err != nil {
				return err
			}
		}
		if calls == 1 && state.rank() == 0 {
			_, err = tx.Exec(ctx, `DELETE FROM message_reports WHERE message_id = $1`, messageID)
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE message_reports SET calls = greatest(calls - 1, 1), counted = counted OR $2 WHERE message_id = $1`, messageID, unknown)
		return err
	})
	if err != nil {
		return fmt.Errorf("recording that a message was refused: %w", err)
	}
	return nil
}

// Apply records a provider's report. changed is false for a report that says nothing new: one
// that came again, or after a better one. A number that got a message has no answers in a row
// any more; one that reaches nobody for the third time in a row gets codes only (Addresses).
// ErrUnknownMessage says that the report is about no message of ours. After another error
// nothing is recorded: apply the report again.
func (r *Reports) Apply(ctx context.Context, providerName string, report provider.Report, now time.Time) (changed bool, err error) {
	if !isMessageID(report.MessageID) {
		return false, ErrUnknownMessage
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		var destinationID string
		var state ReportState
		var counted bool
		err := tx.QueryRow(ctx, `SELECT destination_id, state, counted FROM message_reports WHERE message_id = $1 AND provider = $2 FOR UPDATE`, report.MessageID, providerName).
			Scan(&destinationID, &state, &counted)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrUnknownMessage
		}
		next := stateAfter(report.State)
		if err != nil || next.rank() <= state.rank() {
			return err
		}
		changed = true
		var reason zeronull.Text
		if next == ReportUndelivered {
			reason = zeronull.Text(report.Code)
		}
		unknown := next == ReportUndelivered && report.Unknown
		_, err = tx.Exec(ctx, `UPDATE message_reports SET state = $2, reason = $3, reported_at = $4, counted = counted OR $5 WHERE message_id = $1`, report.MessageID, next, reason, now, unknown)
		switch {
		case err != nil:
			return err
		case next == ReportDelivered:
			return endUnknown(ctx, tx, destinationID, now)
		case unknown && !counted:
			return countUnknown(ctx, tx, channelOf(destinationID), destinationID, now)
		}
		return nil
	})
	switch {
	case errors.Is(err, ErrUnknownMessage):
		return false, err
	case err != nil:
		return false, fmt.Errorf("recording a report on a message: %w", err)
	}
	return changed, nil
}

// isMessageID reports whether a text has the form of the ids of messages (MessageID).
func isMessageID(text string) bool {
	rest, ok := strings.CutPrefix(text, prefixID)
	return ok && len(text) == lengthID && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Reported is what is known of a message that its provider reports on.
type Reported struct {
	State ReportState
	// Reason is the provider's code, only of ReportUndelivered; empty for none.
	Reason string
	// SentAt is the time of the last call. At is that of the report that has set the state,
	// zero for none.
	SentAt, At time.Time
}

// Of returns what is known of messages, by their ids. Messages that no provider reports on are
// not in it.
func (r *Reports) Of(ctx context.Context, messageIDs []string) (map[string]Reported, error) {
	out := map[string]Reported{}
	rows, _ := r.pool.Query(ctx, `
		SELECT message_id, state, coalesce(reason, ''), sent_at, coalesce(reported_at, '0001-01-01Z') FROM message_reports WHERE message_id = ANY($1)`, messageIDs) // the rows carry its error
	var id string
	var m Reported
	_, err := pgx.ForEachRow(rows, []any{&id, &m.State, &m.Reason, &m.SentAt, &m.At}, func() error {
		m.SentAt, m.At = m.SentAt.UTC(), m.At.UTC()
		out[id] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the reports on messages: %w", err)
	}
	return out, nil
}

// Sweep gives up waiting for reports, and deletes old rows. unknown has the messages that are
// unknown now, by provider.
func (r *Reports) Sweep(ctx context.Context, now time.Time) (unknown map[string]int, err error) {
	unknown = map[string]int{}
	rows, _ := r.pool.Query(ctx, `UPDATE message_reports SET state = 'unknown' WHERE state = 'sent' AND sent_at < $1 RETURNING provider`, now.Add(-reportPatience)) // the rows carry its error
	var name string
	if _, err := pgx.ForEachRow(rows, []any{&name}, func() error { unknown[name]++; return nil }); err != nil {
		return nil, fmt.Errorf("giving up waiting for reports: %w", err)
	}
	if _, err := r.pool.Exec(ctx, `DELETE FROM message_reports WHERE sent_at < $1`, now.Add(-keptReports)); err != nil {
		return unknown, fmt.Errorf("deleting old reports: %w", err)
	}
	return unknown, nil
}

// LabelReports is the label of the MACs in the addresses of providers' reports (internal/secret).
const LabelReports = "message reports"

// ReportURL returns the address for a provider's reports on a message:
// {base}/callbacks/messages/{provider}/{message_id}/{mac}. Without a message id it is the
// address for the reports on all messages, for a provider that takes one address only:
// {base}/callbacks/messages/{provider}/{mac}. Whoever knows an address can report: do not log
// it.
func ReportURL(signer secret.Signer, base, providerName, messageID string) string {
	path := strings.TrimRight(base, "/") + "/callbacks/messages/" + url.PathEscape(providerName) + "/"
	if messageID != "" {
		path += url.PathEscape(messageID) + "/"
	}
	return path + secret.AddressMAC(signer, LabelReports, reportData(providerName, messageID))
}

// VerifyReportURL reports whether mac is the MAC that ReportURL writes for this provider and
// message.
func VerifyReportURL(verifier secret.Verifier, providerName, messageID, mac string) bool {
	return secret.VerifyAddressMAC(verifier, LabelReports, reportData(providerName, messageID), mac)
}

// reportData is the text that the MAC of an address covers. No name of a provider has a bar.
func reportData(providerName, messageID string) []byte { return []byte(providerName + "|" + messageID) }

// ProviderState is what is known of the messages that a provider was given since a time.
type ProviderState struct {
	Provider string
	// Given are messages that the provider was given or called for, Accepted those that it has accepted, Delivered and Undelivered
	// those of which it has reported so.
	Given, Accepted, Delivered, Undelivered int64
	// LastAccepted is when it accepted one; zero: none of them.
	LastAccepted time.Time
}

// Providers returns what is known of the messages since a time, by provider. Providers that do not report have none.
func (r *Reports) Providers(ctx context.Context, since time.Time) ([]ProviderState, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, _ := r.pool.Query(ctx, `
		SELECT provider, count(*), count(accepted_at), count(*) FILTER (WHERE state = 'delivered'), count(*) FILTER (WHERE state = 'undelivered'), coalesce(max(accepted_at), '0001-01-01Z')
		FROM message_reports WHERE sent_at >= $1 GROUP BY provider ORDER BY provider`, since)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ProviderState])
	if err != nil {
		return nil, fmt.Errorf("reading what providers of messages did: %w", err)
	}
	for i := range out {
		out[i].LastAccepted = out[i].LastAccepted.UTC()
	}
	return out, nil
}
