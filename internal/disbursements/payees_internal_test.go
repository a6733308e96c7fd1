package disbursements

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"quittance/test/plans"
	"quittance/test/servers"
)

// What an import looks up is found by indexes, and at most so many rows of a payee or a name are read, however many years are
// stored.
func TestPlansOfNotes(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	for _, sql := range []string{
		`INSERT INTO disbursement_batches (id, tenant_id, livemode, batch_ref, revision, status, held, opened_at, sequence, snapshot)
			SELECT 'dsb_' || lpad(b::text, 5, '0'), 'a', true, 'ref-' || b / 3, b % 3 + 1, (ARRAY['done', 'recalled', 'draft'])[b % 3 + 1], false, now(), 1, '' FROM generate_series(1, 3000) b`,
		`INSERT INTO disbursement_lines (batch, position, line_ref, status, case_kind, sequence, snapshot, sealed)
			SELECT 'dsb_' || lpad(b::text, 5, '0'), l, 'l' || l, 'paid', '', 1, '', '' FROM generate_series(1, 3000) b, generate_series(0, 29) l`,
		`INSERT INTO disbursement_payees (batch, position, tenant_id, livemode, payee, name, amount, currency, date)
			SELECT 'dsb_' || lpad(b::text, 5, '0'), l, 'a', true, sha256(l::text::bytea), sha256(('n' || l)::bytea), 1000, 'XAF', date '2026-11-30' - b / 3 FROM generate_series(1, 3000) b, generate_series(0, 29) l`,
		`ANALYZE disbursement_batches, disbursement_lines, disbursement_payees`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var payees, names [][]byte
	for l := range 10 {
		payee, name := sha256.Sum256([]byte(fmt.Sprint(l))), sha256.Sum256([]byte(fmt.Sprint("n", l)))
		payees, names = append(payees, payee[:]), append(names, name[:])
	}
	plans.Check(t, pool, nil, queryPayments, "a", true, payees, "2026-09-01")
	plans.Check(t, pool, nil, queryNames, "a", true, names)
	plans.Check(t, pool, nil, queryRevision, "a", true, "ref-7", 3)
	plans.Check(t, pool, nil, queryLast, "a", true, "dsb_03000")
}
