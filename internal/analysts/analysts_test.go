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

var system = []string{"user_directories", "users", "row_policies", "grants"}

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
	if c := code(err); c != codeNoStorage && c != codeUnknownRole && !(err == nil && strings.HasPrefix(sql, "DROP")) {
		a.t.Errorf("%s: %v", sql, err)
	}
	a.ran = append(a.ran, sql)
	sync := " SETTINGS mutations_sync = 1"
	switch word := strings.Fields(sql); {
	case policyOf.MatchString(sql):
		m := policyOf.FindStringSubmatch(sql)
		var tables []string
		for _, table := range tableOf.FindAllStringSubmatch(m[2], -1) {
			tables = append(tables, "'"+table[1]+"'")
		}
		to := ""
		if m[5] != "ALL" && m[5] != "NONE" {
			to = "'" + strings.Trim(m[5], "`") + "'"
		}
		a.real("ALTER TABLE kept_row_policies DELETE WHERE short_name = '" + m[1] + "'" + sync)
		a.real(fmt.Sprintf("INSERT INTO kept_row_policies (short_name, database, table, select_filter, is_restrictive, apply_to_all, apply_to_list) SELECT '%s', currentDatabase(), arrayJoin([%s]), '%s', %d, %d, [%s]",
			m[1], strings.Join(tables, ", "), strings.ReplaceAll(m[3], "'", "''"), map[string]int{"RESTRICTIVE": 1}[m[4]], map[string]int{"ALL": 1}[m[5]], to))
	case word[0] == "GRANT":
		names := named.FindAllStringSubmatch(sql, -1)
		a.real(fmt.Sprintf("INSERT INTO kept_grants (user_name, access_type, database, table) SELECT '%s', 'SELECT', '%s', '%s'", names[2][1], names[0][1], names[1][1]))
	case word[0] == "CREATE":
		a.real("INSERT INTO kept_users (name) VALUES ('" + named.FindStringSubmatch(sql)[1] + "')")
	case word[1] == "USER":
		name := named.FindStringSubmatch(sql)[1]
		a.real("ALTER TABLE kept_users DELETE WHERE name = '" + name + "'" + sync)
		a.real("ALTER TABLE kept_grants DELETE WHERE user_name = '" + name + "'" + sync)
	default:
		a.real("ALTER TABLE kept_row_policies DELETE WHERE short_name = '" + named.FindStringSubmatch(sql)[1] + "'" + sync)
	}
	return nil
}

// administrator is a configuration whose user may make users and policies. There is no
// storage for them all the same.
const administrator = `<clickhouse><profiles><default/></profiles><quotas><default/></quotas>
	<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota><access_management>1</access_management></default></users></clickhouse>`

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
	return database(t), migrated(t, "http://"+s.Addr()+"/default")
}

func database(t *testing.T) *pgxpool.Pool {
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
	if err := reconciliation.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	return conn
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
	if i := slices.IndexFunc(conn.ran, func(s string) bool { return strings.HasPrefix(s, "GRANT") }); i != len(conn.ran)-len(analysts.Tables())-len(analysts.Views()) {
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

	// Somebody drops a policy and a right.
	conn.real("ALTER TABLE kept_row_policies DELETE WHERE short_name = 'analyst_jeanne' AND table = 'journal' SETTINGS mutations_sync = 1")
	conn.real("ALTER TABLE kept_grants DELETE WHERE user_name = 'jeanne' AND table = 'receipts' SETTINGS mutations_sync = 1")
	list, stores, err := analysts.List(t.Context(), pool, conn)
	if err != nil || !stores || len(list) != 2 || list[0].Agency != "impots" || !slices.Equal(list[0].Unprotected, []string{"journal"}) || !slices.Equal(list[0].Lacking, []string{"receipts"}) || !list[1].Complete() {
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
		if c := code(administrator.Exec(t.Context(), strings.ReplaceAll(sql, name, "default"))); c != codeNoStorage && c != codeUnknownRole && c != 0 {
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
