package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/citizens"
	"quittance/internal/receipts"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/test/registries"
)

// others are values that a column of a type may have beside the present one. The constraints refuse
// some of them.
var others = map[string][]string{
	"uuid": {`'018f0000-0000-7000-8000-0000000000ff'`}, "boolean": {`NOT %s`}, "integer": {`%s + 1`, `%s - 1`}, "bigint": {`%s + 1`, `%s - 1`},
	"text":  {`%s || 'x'`, `'honour'`, `'hold'`, `'basic'`, `'bearer'`, `'bank'`, `'cash'`, `'card'`},
	"bytea": {`%s || '\x00'`, `'\x00'`}, "timestamp with time zone": {`%s + interval '1 us'`, `now()`}, "jsonb": {`'{"width": 7}'`},
	"text[]": {`%s || 'test'::text`, `'{test}'`, `'{}'`}, "cidr[]": {`%s || '10.0.0.0/8'::cidr`}, "uuid[]": {`%s || '018f0000-0000-7000-8000-0000000000ff'::uuid`},
}

// Somebody writes another value, and NULL, into every column of every table that decides. A column that
// a migration adds is tried without a change of this test.
func TestTamper(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, registries.Edit(t, "api_user: momo-user", "api_user: momo-other")) // replaces the account
	if err := receipts.EnsureKeys(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	accounts, err := citizens.New(citizens.Config{Pool: h.Pool, Keys: h.Keys, Reference: secret.GenerateReferenceKey(), Now: func() time.Time { return registries.Epoch }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.RenewCodes(t.Context(), registries.Actor, time.Hour); err != nil {
		t.Fatal(err)
	}
	var columns, found, refused, harmless, believed int
	for _, table := range signed.Tables {
		for _, c := range columnsOf(t, h, table.Name) {
			columns++
			for _, to := range append(alternatives(t, c), "NULL") {
				switch tamper(t, h, table.Name, c.name, strings.ReplaceAll(to, "%s", c.name)) {
				case "found":
					found++
				case "refused": // by a constraint of the database
					refused++
				case "believed":
					if _, left := table.Left[c.name]; left {
						harmless++
						continue
					}
					believed++
					t.Errorf("%s.%s = %s is believed", table.Name, c.name, to)
				}
			}
		}
	}
	t.Logf("tamper columns=%d found=%d refused=%d harmless=%d believed=%d", columns, found, refused, harmless, believed)
	if columns < 100 || found < columns {
		t.Errorf("%d columns and %d findings are too few", columns, found)
	}
}

type tableColumn struct{ name, kind string }

func columnsOf(t *testing.T, h registries.House, table string) []tableColumn {
	t.Helper()
	rows, _ := h.Pool.Query(t.Context(), `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, table)
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (c tableColumn, err error) {
		err = r.Scan(&c.name, &c.kind)
		return c, err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d columns, %v", table, len(out), err)
	}
	return out
}

func alternatives(t *testing.T, c tableColumn) []string {
	t.Helper()
	list := others[c.kind]
	if list == nil {
		t.Fatalf("%s: no values of the type %s to try", c.name, c.kind)
	}
	return list
}

// tamper writes a value into a row and says what becomes of it: same, when the row had it; refused by
// the database; found; or believed. Nothing stays of it.
func tamper(t *testing.T, h registries.House, table, name, value string) (outcome string) {
	t.Helper()
	tx, err := h.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`); err != nil { // no foreign keys: the thief moves all that refers to the row
		t.Fatal(err)
	}
	done, err := tx.Exec(t.Context(), fmt.Sprintf(`UPDATE %[1]s SET %[2]s = %[3]s WHERE ctid = (SELECT ctid FROM %[1]s ORDER BY (%[2]s IS NULL), ctid LIMIT 1) AND (%[2]s IS DISTINCT FROM %[3]s)`, table, name, value))
	switch {
	case err != nil:
		return "refused"
	case done.RowsAffected() == 0:
		return "same"
	}
	f, err := signed.Look(t.Context(), tx, h.Keys)
	if err != nil {
		t.Fatal(err)
	}
	if f.Counts()[table] > 0 {
		return "found"
	}
	return "believed"
}
