package reconciliation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/dev/stack/chdb"
	"quittance/internal/analysts"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/reconciliation"
)

// other is an agency whose rows the analyst of tenant must not see. Its rows also have its id
// in another column than tenant_id.
const other = "018f0000-0000-7000-8000-000000000002"

// withoutAgency are tables that have no rows of agencies. No analyst may read them.
var withoutAgency = []string{"journal_positions", "rewrites", "schema_migrations"}

// A table or view that a migration adds must be in the lists of package analysts, or nobody
// restricts its rows. Views that read with the rights of their maker would show all rows.
func TestTablesOfAnalysts(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	of := func(rest string) []string {
		return lines(t, conn, "name", "FROM system.tables WHERE database = currentDatabase() AND "+rest+" ORDER BY name")
	}
	tables := of("engine NOT LIKE '%View'")
	if missing := slices.DeleteFunc(tables, func(n string) bool {
		return slices.Contains(analysts.Tables(), n) || slices.Contains(withoutAgency, n)
	}); len(missing) > 0 {
		t.Errorf("tables that analysts.Tables lacks: %q: add them, or to withoutAgency if they have no rows of agencies", missing)
	}
	want(t, lines(t, conn, "table", "FROM system.columns WHERE database = currentDatabase() AND name = 'tenant_id' AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine NOT LIKE '%View') ORDER BY table"), analysts.Tables()...)
	want(t, of("engine LIKE '%View'"), analysts.Views()...)
	want(t, of("engine LIKE '%View' AND position(create_table_query, 'SQL SECURITY INVOKER') > 0"), analysts.Views()...)
}

// fill writes rows of an agency to each table, so that each view has one.
func fill(t *testing.T, conn driver.Conn, agency string) {
	t.Helper()
	opened := event(agency, 3, "checkout.late_payment", "completed", 5000)
	opened.Detail = map[string]string{"case_id": "case_" + agency, "case_kind": "late_payment"}
	entries := []journal.Entry{event(agency, 1, "checkout.created", "open", 5000), event(agency, 2, "checkout.completed", "completed", 5000), opened, delivery(agency, "del_"+agency, "erp", 1, "delivered", 0)}
	for i := range entries {
		entries[i].TenantID = agency
	}
	insert(t, conn, entries...)
	r := receipt(agency, begin, 5075)
	r.TenantID = agency
	if err := journal.NewStore(conn).Insert(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"names (kind, id, tenant_id, name) VALUES ('agency', '{}', '{}', 'name of {}'), ('slug', '{}', '{}', 'slug-{}')",
		"expected_money (tenant_id, session_id) VALUES ('{}', '{}')",
		"statement_lines (tenant_id, line_id) VALUES ('{}', '{}')",
		"matches (tenant_id, finding_id) VALUES ('{}', '{}')",
		"breaks (tenant_id, finding_id, type, state) VALUES ('{}', '{}', 'break', 'open')",
		"day_totals (tenant_id, account) VALUES ('{}', 'account of {}')",
		"match_runs (tenant_id, run_id) VALUES ('{}', '{}')",
		"closes (tenant_id, close_id) VALUES ('{}', '{}')",
	} {
		if err := conn.Exec(t.Context(), "INSERT INTO "+strings.ReplaceAll(sql, "{}", agency)); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// users is a configuration whose user has the filters, rights and limits of an analyst. The
// embedded engine stores no users and policies; those of its configuration it applies.
func users(database, agency string) string {
	var filters, grants, settings, limits strings.Builder
	for _, table := range analysts.Tables() {
		fmt.Fprintf(&filters, "<%s><filter>%s</filter></%s>", table, analysts.Filter(agency), table)
	}
	for _, object := range slices.Concat(analysts.Tables(), analysts.Views()) {
		fmt.Fprintf(&grants, "<query>GRANT SELECT ON %s.%s</query>", database, object)
	}
	for _, l := range analysts.Limits() {
		fmt.Fprintf(&settings, "<%s>%d</%s>", l.Setting, l.Default, l.Setting)
		fmt.Fprintf(&limits, "<%s><min>1</min><max>%d</max></%s>", l.Setting, l.Most, l.Setting)
	}
	return fmt.Sprintf(`<clickhouse>
		<profiles><default/><analyst><readonly>%d</readonly>%s<constraints>%s</constraints></analyst></profiles>
		<quotas><default/></quotas>
		<users><default><password/><networks><ip>::/0</ip></networks><quota>default</quota><profile>analyst</profile>
			<grants>%s</grants><databases><%s>%s</%s></databases></default></users></clickhouse>`,
		analysts.ReadOnly, &settings, &limits, &grants, database, &filters, database)
}

// engine starts an engine of its own on a folder, with a configuration of users.
func engine(t *testing.T, dir, config, database string) (conn driver.Conn, stop func()) {
	t.Helper()
	s, err := chdb.Start(t.Context(), chdb.Config{Dir: dir, Users: config, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
	if conn, err = clickhouse.Open(t.Context(), "http://"+s.Addr()+"/"+database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, func() {
		_ = conn.Close()
		_ = s.Stop(t.Context())
	}
}

// An analyst sees a row of its agency and none of another in each table and each view, reads
// nothing else, writes nothing and stays within its limits.
func TestAnalystSeesOneAgency(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const database = "quittance"
	conn, stop := engine(t, dir, "", "default")
	if err := conn.Exec(t.Context(), "CREATE DATABASE "+database); err != nil {
		t.Fatal(err)
	}
	stop()
	conn, stop = engine(t, dir, "", database)
	if err := reconciliation.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	fill(t, conn, tenant)
	fill(t, conn, other)
	// seen returns how many rows of an object are there, and which hold the id of the other agency.
	seen := func(conn driver.Conn, object string) (all, others uint64) {
		if err := conn.QueryRow(t.Context(), "SELECT count(), countIf(position(formatRow('JSONEachRow', *), '"+other+"') > 0) FROM "+object).Scan(&all, &others); err != nil {
			t.Errorf("%s: %v", object, err)
		}
		return all, others
	}
	objects := slices.Concat(analysts.Tables(), analysts.Views())
	objects[slices.Index(objects, "chain")] = "chain(from = '1970-01-01', until = '2100-01-01')"
	for _, object := range objects {
		if all, others := seen(conn, object); others == 0 || all < 2*others {
			t.Errorf("without policies %s has %d rows, %d of the other agency", object, all, others)
		}
	}
	stop()

	conn, _ = engine(t, dir, users(database, tenant), database)
	for _, object := range objects {
		if all, others := seen(conn, object); all == 0 || others != 0 {
			t.Errorf("the analyst sees %d rows in %s, %d of the other agency", all, object, others)
		}
		if all, _ := seen(conn, object+" WHERE tenant_id = '"+other+"'"); all != 0 {
			t.Errorf("the analyst sees %d rows of the other agency in %s", all, object)
		}
	}
	for sql, code := range map[string]int32{
		"SELECT * FROM schema_migrations":                                     497, // ACCESS_DENIED
		"INSERT INTO names (id) VALUES ('a')":                                 497,
		"SELECT 1 SETTINGS readonly = 0":                                      164, // READONLY
		"SELECT 1 SETTINGS max_execution_time = 601":                          452, // SETTING_CONSTRAINT_VIOLATION
		"SELECT 1 SETTINGS max_execution_time = 0":                            452,
		"SELECT 1 SETTINGS max_result_rows = 0":                               452,
		"SELECT 1 SETTINGS max_threads = 64":                                  452,
		"CREATE ROW POLICY all ON names USING 1 TO ALL":                       497,
		"SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')":         497,
		"SELECT 1 SETTINGS max_execution_time = 600, max_threads = 2":         0,
		"SELECT * FROM sessions SETTINGS use_query_cache = 0":                 0,
		"SELECT count() FROM names SETTINGS apply_row_policy_after_final = 1": 0,
	} {
		rows, err := conn.Query(t.Context(), sql)
		if err == nil {
			for rows.Next() {
			}
			err = errors.Join(rows.Err(), rows.Close())
		}
		var exc *chgo.Exception
		if got := errors.As(err, &exc); code == 0 && err != nil || code != 0 && (!got || exc.Code != code) {
			t.Errorf("%s: %v, want the code %d", sql, err, code)
		}
	}
}
