package deliveries

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quittance/schemas/record"
)

// accepted finds the final event of a session among the accepted deliveries of its kind.
const accepted = `SELECT FROM deliveries n WHERE n.kind = c.kind AND n.session_id = c.session_id AND n.event = c.final AND n.state = 'delivered'`

// supersede ends the deliveries of the outcomes' sessions that come before a final event
// which was accepted. The caller has locked the destinations.
func (s *Store) supersede(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) error {
	var rows [][]any
	for _, a := range outcomes {
		if kind, err := s.kinds.Of(Kind(a.Delivery.Kind)); err == nil && kind.Final != "" {
			rows = append(rows, []any{a.Delivery.Kind, a.Delivery.SessionID, kind.Final})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE deliveries d SET state = 'superseded', reason = 'superseded', next_attempt_at = NULL, lease_until = NULL, body = NULL
		FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::text[]) AS c (kind, session_id, final)) c
		WHERE d.kind = c.kind AND d.session_id = c.session_id AND d.event <> c.final
			AND d.state IN ('waiting', 'queued', 'needs_operator', 'exhausted') AND EXISTS (`+accepted+`)`, byColumn(rows)...)
	return failed("superseding deliveries", err)
}

// superseded returns those sessions of deliveries whose final event was accepted.
func (s *Store) superseded(ctx context.Context, kind Registration, sessionIDs []string) (map[string]bool, error) {
	if kind.Final == "" || len(sessionIDs) == 0 {
		return nil, nil
	}
	return collectMap[string, bool](ctx, s.pool, "asking which sessions have their final event", `
		SELECT c.session_id, true FROM (SELECT DISTINCT $1::text AS kind, session_id, $3::text AS final FROM unnest($2::text[]) AS u (session_id)) c
		WHERE EXISTS (`+accepted+`)`, kind.Kind, sessionIDs, kind.Final)
}

// Superseded reports whether the final event of a delivery's session was accepted, as far as
// Postgres knows.
func (h *History) Superseded(ctx context.Context, kind Registration, sessionID string) (bool, error) {
	found, err := h.store.superseded(ctx, kind, []string{sessionID})
	return found[sessionID], err
}
