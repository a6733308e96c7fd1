package journal

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// historyAtMost is the largest number of entries that History returns.
const historyAtMost = 2000

// History returns the entries of a session of an agency that occurred since a time, in the
// order in which they occurred. whole is false if there are more.
func (s *Store) History(ctx context.Context, tenantID, sessionID string, since time.Time) (entries []Entry, whole bool, err error) {
	// A row that was written twice is the same twice: without FINAL the query reads only the
	// granules that may have the session.
	err = s.conn.Select(ctx, &entries, "SELECT "+entryTable.columns+` FROM journal
		WHERE tenant_id = ? AND session_id = ? AND occurred_at >= fromUnixTimestamp64Milli(?)
		ORDER BY occurred_at, sequence, entry_id LIMIT ?`, tenantID, sessionID, since.UnixMilli(), historyAtMost+1)
	if err != nil {
		return nil, false, fmt.Errorf("reading the journal of a session: %w", err)
	}
	if whole = len(entries) <= historyAtMost; !whole {
		entries = entries[:historyAtMost]
	}
	return slices.CompactFunc(entries, func(a, b Entry) bool { return a.ID == b.ID }), whole, nil
}

// referencesAtMost is the largest number of sessions that SessionsByReference returns.
const referencesAtMost = 50

// SessionsByReference returns the sessions with a payment that has this reference of its
// operator. If there are none, a thorough search returns those with a collection that was
// refused or is not decided: with this reference, or with the one that the operator was told.
// It may read a column of the whole journal. agencyID is the agency whose sessions are looked for;
// empty for all.
func (s *Store) SessionsByReference(ctx context.Context, agencyID, reference string, thorough bool) ([]string, error) {
	queries := []string{
		"SELECT DISTINCT session_id FROM receipts WHERE operator_ref = ? AND session_id != ''",
		"SELECT DISTINCT session_id FROM journal WHERE operator_ref = ? AND session_id != ''",
		"SELECT DISTINCT session_id FROM journal WHERE collection_id = ? AND session_id != ''",
	}
	if !thorough {
		queries = queries[:1]
	}
	for _, query := range queries {
		args := []any{reference}
		if agencyID != "" {
			query, args = query+" AND tenant_id = ?", append(args, agencyID)
		}
		ids, err := s.texts(ctx, query+" LIMIT ?", append(args, referencesAtMost)...)
		if err != nil {
			return nil, fmt.Errorf("looking for an operator's reference: %w", err)
		}
		if len(ids) > 0 {
			return ids, nil
		}
	}
	return nil, nil
}

// texts returns the column of a query.
func (s *Store) texts(ctx context.Context, query string, args ...any) (out []string, err error) {
	rows, err := s.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}
