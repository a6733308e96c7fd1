package decisions_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/operation"
	"quittance/test/servers"
)

// A noun of its own keeps its decisions in its own table: batches of payments that one person
// proposes and another approves. Each step is stored and in the audit table; what is refused
// leaves neither.
func TestNounOfItsOwn(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE batches (id text, state text, proposer text)`); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	awa, ben := casework.Person{ID: "a", Name: "Awa", InForce: true}, casework.Person{ID: "b", Name: "Ben", InForce: true}
	take := func(step func(decisions.Step, pgx.Tx) error, by casework.Person, action, sql string, args ...any) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return step(decisions.Step{
				Decision: casework.Decision{State: casework.DecisionProposed, ProposedBy: awa.ID, ProposedAt: at},
				Proposer: awa, By: by, Actor: operation.Actor{Kind: operation.ActorPerson, Name: by.ID}, At: at,
				Refusals: map[error]error{
					casework.ErrSamePerson: operation.Refuse("batch.second_person", "", nil),
					casework.ErrDecided:    operation.Refuse("batch.decided", "id", nil),
				},
				Store: func() (operation.Entry, error) {
					tag, err := tx.Exec(t.Context(), sql, args...)
					if err == nil && tag.RowsAffected() == 0 {
						err = casework.ErrDecided
					}
					return operation.Entry{Action: action, Subject: "7"}, err
				},
			}, tx)
		})
	}
	propose := func(s decisions.Step, tx pgx.Tx) error { return decisions.Propose(t.Context(), tx, s) }
	approve := func(s decisions.Step, tx pgx.Tx) error { return decisions.Approve(t.Context(), tx, s) }
	reject := func(s decisions.Step, tx pgx.Tx) error { return decisions.Reject(t.Context(), tx, s) }
	const insert, update = `INSERT INTO batches VALUES ('7', 'proposed', $1)`, `UPDATE batches SET state = $1 WHERE state = 'proposed'`
	revoked := casework.Person{ID: "c", Name: "Chloe"}
	for n, s := range []struct {
		err  error
		want string // code of the refusal; empty for none
	}{
		{take(propose, revoked, "batch.propose", insert, "Chloe"), "staff.revoked"},
		{take(propose, awa, "batch.propose", insert, "Awa"), ""},
		{take(approve, awa, "batch.approve", update, "approved"), "batch.second_person"},
		{take(approve, revoked, "batch.approve", update, "approved"), "staff.revoked"},
		{take(reject, revoked, "batch.reject", update, "rejected"), "staff.revoked"},
		{take(approve, ben, "batch.approve", update, "approved"), ""},
		{take(reject, awa, "batch.reject", update, "rejected"), "batch.decided"},
	} {
		var e *operation.Error
		if errors.As(s.err, &e); s.want == "" && s.err != nil || s.want != "" && (e == nil || e.Code != s.want) {
			t.Errorf("step %d: %v, want %q", n, s.err, s.want)
		}
	}
	rows, _ := pool.Query(t.Context(), `SELECT action || ' ' || actor FROM audit UNION ALL SELECT state FROM batches ORDER BY 1`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"approved", "batch.approve b", "batch.propose a"}; err != nil || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
