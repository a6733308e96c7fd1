package operation_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/test/servers"
)

// The record of an operation is part of its transaction. A change that is rolled back
// leaves no record. An operation without an actor cannot be recorded.
func TestRecordIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	actor := operation.Actor{Kind: operation.ActorCommandLine, Name: "root", Origin: "machine"}
	record := func(commit bool, a operation.Actor, e operation.Entry) error {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if err := operation.Record(t.Context(), tx, a, at, e); err != nil {
			return err
		}
		if !commit {
			return nil
		}
		return tx.Commit(t.Context())
	}
	if err := record(false, actor, operation.Entry{Action: "key.revoke", Subject: "k1"}); err != nil {
		t.Fatal(err)
	}
	if err := record(true, actor, operation.Entry{Action: "key.revoke", Subject: "k2", Detail: map[string]any{"overlap": "24h"}}); err != nil {
		t.Fatal(err)
	}
	if err := record(true, operation.Actor{}, operation.Entry{Action: "key.revoke", Subject: "k3"}); err == nil {
		t.Error("an operation without an actor was recorded")
	}
	rows, _ := pool.Query(t.Context(), `SELECT at, actor_kind, actor, origin, action, subject, detail->>'overlap' FROM audit`)
	type row struct {
		At                             time.Time
		Kind, Actor, Origin, Action, S string
		Overlap                        *string
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].S != "k2" || got[0].Kind != "command_line" || got[0].Actor != "root" || got[0].Origin != "machine" ||
		got[0].Action != "key.revoke" || !got[0].At.Equal(at) || got[0].Overlap == nil || *got[0].Overlap != "24h" {
		t.Errorf("audit holds %+v", got)
	}
}
