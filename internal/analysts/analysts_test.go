package analysts_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/dev/stack/chdb"
	"quittance/internal/analysts"
	chouse "quittance/internal/clickhouse"
	"quittance/internal/operation"
	"quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/reconciliation"
	"quittance/test/servers"
)

var (
	now   = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	actor = operation.Actor{Kind: operation.ActorCommandLine, Name: "root", Origin: "machine"}
)

const agencies = `agencies:
  - {id: 018f0000-0000-7000-8000-000000000001, slug: impots, name: Impôts}
  - {id: 018f0000-0000-7000-8000-000000000002, slug: douanes, name: Douanes}
`

// Codes of ClickHouse.
const (
	codeUnknownRole = 511 // also of a user that does not exist
	codeNoStorage   = 514 // no storage for users and policies
	codeReadOnly    = 495 // a user of the configuration
	codeUnknownUser = 192
)

func code(err error) int32 {
	var exc *clickhouse.Exception
	if errors.As(err, &exc) {
		return exc.Code
	}
	return 0
}

// account is an engine that keeps users, policies and rights in tables of its own, in place
// of the system tables. The embedded engine has no storage for them: it checks each
// statement, settings and names of tables included, and refuses to store.
type account struct {
	driver.Conn
	t    *testing.T
	ran  []string
	fail string // a statement that begins so fails
}

var system = []string{"user_directories", "users", "row_policies", "grants", "settings_profile_elements"}

// store makes the tables, with the columns of the engine.
func store(t *testing.T, conn driver.Conn) *account {
	t.Helper()
	a := &account{Conn: conn, t: t}
	for _, table := range system {
		a.real("CREATE TABLE kept_" + table + " ENGINE = Memory AS SELECT * FROM system." + table + " WHERE 0")
	}
	a.real("INSERT INTO kept_user_directories (name, type) VALUES ('local', 'local_directory')")
	a.real("INSERT INTO kept_users (name) VALUES ('default')")
	return a
}

func (a *account) real(sql string) {
	a.t.Helper()
	if err := a.Conn.Exec(a.t.Context(), sql); err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
}

func kept(sql string) string {
	for _, table := range system {
		sql = strings.ReplaceAll(sql, "system."+table, "kept_"+table)
	}
	return sql
}

func (a *account) Select(ctx context.Context, dest any, sql string, args ...any) error {
	return a.Conn.Select(ctx, dest, kept(sql), args...)
}

func (a *account) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	return a.Conn.Query(ctx, kept(sql), args...)
}

func (a *account) QueryRow(ctx context.Context, sql string, args ...any) driver.Row {
	return a.Conn.QueryRow(ctx, kept(sql), args...)
}

var (
	policyOf = regexp.MustCompile("^CREATE ROW POLICY OR REPLACE `?(\\w[\\w-]*)`? ON (.*) USING (.*) AS (PERMISSIVE|RESTRICTIVE) TO (.*)$")
	tableOf  = regexp.MustCompile("`\\.`(\\w+)`")
	named    = regexp.MustCompile("`([\\w-]+)`")
)

// Exec has the engine check the statement, and keeps what it would store.
func (a *account) Exec(ctx context.Context, sql string, args ...any) error {
	if a.fail != "" && strings.HasPrefix(sql, a.fail) {
		return &clickhouse.Exception{Code: 497, Message: "Not enough privileges"}
	}
	err := a.Conn.Exec(ctx, sql, args...)
	done := err == nil && regexp.MustCompile("^(DROP|CREATE DATABASE|CREATE OR REPLACE VIEW)").MatchString(sql)
	if c := code(err); c != codeNoStorage && c != codeUnknownRole && c != codeReadOnly && c != codeUnknownUser && !done {
		a.t.Errorf("%s: %v", sql, err)
	}
	a.ran = append(a.ran, sql)
	word, names := strings.Fields(sql), named.FindAllStringSubmatch(sql, -1)
	switch {
	case policyOf.MatchString(sql):
		a.policy(policyOf.FindStringSubmatch(sql))
	case word[0] == "GRANT" && len(names) == 2: // a whole database
		a.real(fmt.Sprintf("INSERT INTO kept_grants (user_name, access_type, database) SELECT '%s', 'SELECT', '%s'", names[1][1], names[0][1]))
	case word[0] == "GRANT":
		a.real(fmt.Sprintf("INSERT INTO kept_grants (user_name, access_type, database, table) SELECT '%s', 'SELECT', '%s', '%s'", names[2][1], names[0][1], names[1][1]))
	case word[0] == "REVOKE":
		a.delete("kept_grants", fmt.Sprintf("user_name = '%s' AND database = '%s'", names[1][1], names[0][1]))
	case word[1] == "USER":
		name := names[0][1]
		a.delete("kept_users", "name = '"+name+"'")
		a.delete("kept_settings_profile_elements", "user_name = '"+name+"'")
		if word[0] == "DROP" {
			a.delete("kept_grants", "user_name = '"+name+"'")
			break
		}
		a.real("INSERT INTO kept_users (name) VALUES ('" + name + "')")
		for _, m := range constant.FindAllStringSubmatch(sql, -1) {
			a.real(fmt.Sprintf("INSERT INTO kept_settings_profile_elements (user_name, setting_name, value, writability) VALUES ('%s', '%s', '%s', 'CONST')", name, m[1], m[2]))
		}
	case word[0] == "DROP" && word[1] == "ROW":
		a.delete("kept_row_policies", "short_name = '"+names[0][1]+"'")
	}
	return nil
}

var constant = regexp.MustCompile(`(\w+) = (\d+) CONST`)

// policy keeps a policy for each of its tables.
func (a *account) policy(m []string) {
	a.t.Helper()
	var tables, to []string
	for _, table := range tableOf.FindAllStringSubmatch(m[2], -1) {
		tables = append(tables, "'"+table[1]+"'")
	}
	for _, user := range named.FindAllStringSubmatch(m[5], -1) {
		to = append(to, "'"+user[1]+"'")
	}
	a.delete("kept_row_policies", "short_name = '"+m[1]+"'")
	a.real(fmt.Sprintf("INSERT INTO kept_row_policies (short_name, database, table, select_filter, is_restrictive, apply_to_all, apply_to_list) SELECT '%s', currentDatabase(), arrayJoin([%s]), '%s', %d, %d, [%s]",
		m[1], strings.Join(tables, ", "), strings.ReplaceAll(m[3], "'", "''"), map[string]int{"RESTRICTIVE": 1}[m[4]], map[string]int{"ALL": 1}[m[5]], strings.Join(to, ", ")))
}

func (a *account) delete(table, where string) {
	a.t.Helper()
	a.real("ALTER TABLE " + table + " DELETE WHERE " + where + " SETTINGS mutations_sync = 1")
}

// administrator is a configuration whose user may make users and policies. There is no
// storage for them all the same, so it has the users that define the views of analysts.
const administrator = `<clickhouse><profiles><default/></profiles><quotas><default/></quotas>
	<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota><access_management>1</access_management></default>
	<analyst_jeanne><password/></analyst_jeanne><analyst_paul><password/></analyst_paul><analyst_marie><password/></analyst_marie></users></clickhouse>`

// installation returns a database with two agencies, impots and douanes, and a migrated
// ClickHouse whose user is an administrator.
func installation(t *testing.T) (*pgxpool.Pool, driver.Conn) {
	t.Helper()
	dir := t.TempDir()
	s, err := chdb.Start(t.Context(), chdb.Config{Dir: dir, Users: administrator, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
	return databaseOf(t), migrated(t, "http://"+s.Addr()+"/default")
}

func databaseOf(t *testing.T) *pgxpool.Pool {
	t.Helper()
	_, pool := servers.Database(t)
	if _, err := registryfile.Apply(t.Context(), pool, actor, []byte(agencies), registryfile.Options{Keys: secret.GenerateKeys(), Now: func() time.Time { return now }}); err != nil {
		t.Fatal(err)
	}
	return pool
}

func migrated(t *testing.T, address string) driver.Conn {
	t.Helper()
	conn, err := chouse.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	migrate(t, conn)
	return conn
}

func migrate(t *testing.T, conn driver.Conn) {
	t.Helper()
	if err := reconciliation.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, code string) {
	t.Helper()
	var r *operation.Error
	if !errors.As(err, &r) || r.Code != code {
		t.Errorf("%v, want the refusal %s", err, code)
	}
}

// audited returns the actions in the audit table with their subjects, after what was there.
func audited(t *testing.T, pool *pgxpool.Pool) (out []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT action || ' ' || subject || ' ' || detail::text FROM audit WHERE action LIKE 'analyst.%' ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// An analyst gets the right to read last, after all policies. The same name again changes
// nothing, or repairs what is wrong. Revoking removes user and policies.
func TestAddAndRevoke(t *testing.T) {
	t.Parallel()
	pool, engine := installation(t)
	conn := store(t, engine)
	made, err := analysts.Add(t.Context(), pool, conn, actor, "impots", "jeanne", now)
	if err != nil {
		t.Fatal(err)
	}
	if !made.Changed || made.Agency != "impots" || len(made.Password.Reveal()) < 26 || made.SQL != nil {
		t.Errorf("made %+v", made)
	}
	if first := conn.ran[0]; !strings.HasPrefix(first, "CREATE ROW POLICY OR REPLACE quittance_all ON ") || !strings.HasSuffix(first, "USING 1 AS PERMISSIVE TO ALL") {
		t.Errorf("the first statement is %s", first)
	}
	if i := slices.IndexFunc(conn.ran, func(s string) bool { return strings.HasPrefix(s, "GRANT") }); slices.ContainsFunc(conn.ran[i:], policyOf.MatchString) {
		t.Errorf("the first right is statement %d of %d", i, len(conn.ran))
	}
	password := regexp.MustCompile(`sha256_hash BY '([0-9a-f]{64})' SALT '(\w+)'`).FindStringSubmatch(strings.Join(conn.ran, "\n"))
	if password == nil || hex.EncodeToString(sum(made.Password.Reveal()+password[2])) != password[1] {
		t.Errorf("the hash is not that of the password with the salt: %q", password)
	}
	if strings.Contains(strings.Join(append(conn.ran, audited(t, pool)...), "\n")+fmt.Sprint(made), made.Password.Reveal()) {
		t.Error("a statement, the audit table or a log has the password")
	}

	again, err := analysts.Add(t.Context(), pool, conn, actor, made.AgencyID, "jeanne", now)
	if err != nil || again.Changed || !again.Password.Empty() {
		t.Errorf("again: %+v, %v", again, err)
	}
	_, err = analysts.Add(t.Context(), pool, conn, actor, "douanes", "jeanne", now)
	refused(t, err, analysts.CodeOtherAgency)
	_, err = analysts.Add(t.Context(), pool, conn, actor, "impots", "default", now)
	refused(t, err, analysts.CodeNameTaken)
	_, err = analysts.Add(t.Context(), pool, conn, actor, "impots", "Jeanne`", now)
	refused(t, err, analysts.CodeName)
	_, err = analysts.Add(t.Context(), pool, conn, actor, "nobody", "paul", now)
	refused(t, err, "agency.unknown")
	if other, err := analysts.Add(t.Context(), pool, conn, actor, "douanes", "paul", now); err != nil || !other.Changed {
		t.Errorf("another: %+v, %v", other, err)
	}

	// Somebody drops a policy.
	conn.real("ALTER TABLE kept_row_policies DELETE WHERE short_name = 'analyst_jeanne' AND table = 'journal' SETTINGS mutations_sync = 1")
	// Somebody drops a view, replaces another, frees a setting and gives a right to a table.
	conn.real("DROP VIEW analyst_jeanne.receipts")
	conn.real("CREATE OR REPLACE VIEW analyst_jeanne.agencies DEFINER = default SQL SECURITY DEFINER AS SELECT * FROM default.agencies")
	conn.delete("kept_settings_profile_elements", "user_name = 'jeanne' AND setting_name = 'use_skip_indexes'")
	conn.real("INSERT INTO kept_grants (user_name, access_type, database, table) SELECT 'jeanne', 'SELECT', 'default', 'names'")
	list, stores, err := analysts.List(t.Context(), pool, conn)
	if err != nil || !stores || len(list) != 2 || list[0].Agency != "impots" || !slices.Equal(list[0].Unprotected, []string{"journal", "names"}) || !slices.Equal(list[0].Lacking, []string{"agencies", "receipts"}) || !slices.Equal(list[0].Loose, []string{"use_skip_indexes"}) || !list[1].Complete() {
		t.Errorf("list: %+v, %t, %v", list, stores, err)
	}
	repaired, err := analysts.Add(t.Context(), pool, conn, actor, "impots", "jeanne", now)
	if err != nil || !repaired.Changed || !repaired.Password.Empty() {
		t.Errorf("repaired: %+v, %v", repaired, err)
	}
	if list, _, err = analysts.List(t.Context(), pool, conn); err != nil || !list[0].Complete() {
		t.Errorf("after the repair: %+v, %v", list, err)
	}

	if ended, err := analysts.Revoke(t.Context(), pool, conn, actor, "jeanne", now); err != nil || !ended.Changed || ended.Agency != "impots" {
		t.Errorf("revoked: %+v, %v", ended, err)
	}
	_, err = analysts.Revoke(t.Context(), pool, conn, actor, "jeanne", now)
	refused(t, err, analysts.CodeUnknown)
	_, err = analysts.Revoke(t.Context(), pool, conn, actor, "default", now)
	refused(t, err, analysts.CodeUnknown)
	if list, _, err = analysts.List(t.Context(), pool, conn); err != nil || len(list) != 1 {
		t.Errorf("after the end: %+v, %v", list, err)
	}
	want := []string{`analyst.add jeanne {"agency": "impots"}`, `analyst.add paul {"agency": "douanes"}`, `analyst.repair jeanne {"agency": "impots"}`, `analyst.revoke jeanne {"agency": "impots"}`}
	if got := audited(t, pool); !slices.Equal(got, want) {
		t.Errorf("audit: %q", got)
	}
}

// Without the right to make users the operation is refused. An analyst whose making was
// interrupted reads nothing, is listed, and can be made again.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	pool, engine := installation(t)
	conn := store(t, engine)
	conn.fail = "CREATE USER"
	_, err := analysts.Add(t.Context(), pool, conn, actor, "impots", "jeanne", now)
	refused(t, err, analysts.CodeNotAdministrator)
	list, _, err := analysts.List(t.Context(), pool, conn)
	if err != nil || len(list) != 1 || len(list[0].Lacking) != len(analysts.Tables())+len(analysts.Views()) {
		t.Errorf("list: %+v, %v", list, err)
	}
	if got := audited(t, pool); len(got) != 0 {
		t.Errorf("audit: %q", got)
	}
	conn.fail = ""
	if made, err := analysts.Add(t.Context(), pool, conn, actor, "impots", "jeanne", now); err != nil || made.Password.Empty() {
		t.Errorf("%+v, %v", made, err)
	}
	// A view that reads with the rights of its maker would show all rows.
	conn.real("CREATE OR REPLACE VIEW agencies SQL SECURITY NONE AS SELECT id AS tenant_id FROM names")
	_, err = analysts.Add(t.Context(), pool, conn, actor, "impots", "marie", now)
	refused(t, err, analysts.CodeSchema)
}

// The embedded engine stores no users: nothing is done, and the SQL is what the engine
// accepts except for that.
func TestWithoutStorage(t *testing.T) {
	t.Parallel()
	pool, administrator := installation(t)
	addr, name := servers.ClickHouse(t)
	conn := migrated(t, "http://"+addr+"/"+name)
	made, err := analysts.Add(t.Context(), pool, conn, actor, "impots", "jeanne", now)
	if err != nil || made.Changed || made.Password.Empty() {
		t.Fatalf("%+v, %v", made, err)
	}
	ended, err := analysts.Revoke(t.Context(), pool, conn, actor, "jeanne", now)
	if err != nil || ended.Changed {
		t.Fatalf("%+v, %v", ended, err)
	}
	for _, sql := range slices.Concat(made.SQL, ended.SQL) {
		if c := code(administrator.Exec(t.Context(), strings.ReplaceAll(sql, name, "default"))); c != codeNoStorage && c != codeUnknownRole && c != codeReadOnly && c != 0 {
			t.Errorf("%s: code %d", sql, c)
		}
	}
	if list, stores, err := analysts.List(t.Context(), pool, conn); err != nil || stores || len(list) != 0 {
		t.Errorf("%+v, %t, %v", list, stores, err)
	}
	if got := audited(t, pool); len(got) != 0 {
		t.Errorf("audit: %q", got)
	}
}

func sum(text string) []byte {
	s := sha256.Sum256([]byte(text))
	return s[:]
}
