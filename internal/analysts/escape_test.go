package analysts_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/dev/stack/chdb"
	"quittance/internal/analysts"
	chouse "quittance/internal/clickhouse"
	"quittance/test/httpclient"
	"quittance/test/servers"
)

// The agencies of the tests: the analyst's own, and one whose rows nobody may see.
const (
	own   = "018f0000-0000-7000-8000-000000000001"
	other = "018f0000-0000-7000-8000-000000000002"
)

const database = "quittance"

// outside is the text of a file beside the data, which no query may show.
const outside = "a file of the machine"

// rows are rows of an agency for each table, in which {} is the agency, {s} its session and {o}
// the order. A session stands also in texts.
var rows = []string{
	"journal (entry_id, entry_type, occurred_at, event, event_id, tenant_id, livemode, session_id, sequence, order_id, payment_ref, status, amount, total_amount, currency, reason, detail) VALUES ('event {}', 'event', '2026-11-02 10:00:00', 'checkout.completed', 'evt', '{}', true, '{s}', 2, '{o}', '{p}', 'completed', 5000, 5075, 'XAF', 'of {s}', {'case_id': 'case {}', 'reason': 'like {s}'})",
	"journal (entry_id, entry_type, occurred_at, event, event_id, tenant_id, livemode, session_id, delivery_id, destination_kind, outcome, attempt, reason) VALUES ('delivery {}', 'delivery', '2026-11-02 10:00:01', 'checkout.completed', 'evt {}', '{}', true, '{s}', 'del {}', 'erp', 'failed', 1, 'of {s}')",
	"case_rows (case_id, entry_id, occurred_at, event, tenant_id, livemode, session_id, order_id, total_amount, detail) VALUES ('case {}', 'event {}', '2026-11-02 10:00:00', 'case.opened', '{}', true, '{s}', '{o}', 5075, {'case_kind': 'refund_request', 'reason': 'like {s}'}), ('case {}', 'end {}', '2026-11-02 10:00:09', 'case.resolved', '{}', true, '{s}', '{o}', 5075, {'case_kind': 'refund_request', 'reason': 'like {s}', 'reference': 'like {s}'})",
	"receipt_rows (row_id, movement, occurred_at, local_date, tenant_id, livemode, session_id, order_id, payment_ref, currency, amount, total_amount, reference) VALUES (generateUUIDv4(), 'completed', '2026-11-02 10:00:00', '2026-11-02', '{}', true, '{s}', '{o}', '{p}', 'XAF', 5000, 5075, 'like {s}')",
	"names (kind, id, tenant_id, name) VALUES ('agency', '{}', '{}', 'name of {}'), ('slug', '{}', '{}', 'slug-{}')",
	"expected_money (tenant_id, livemode, local_date, entry_id, kind, session_id, order_id, payment_ref) VALUES ('{}', true, '2026-11-02', '{}', 'received', '{s}', '{o}', '{p}')",
	"statement_lines (tenant_id, line_id) VALUES ('{}', '{}')",
	"matches (tenant_id, finding_id) VALUES ('{}', '{}')",
	"breaks (tenant_id, finding_id, type, state, reason) VALUES ('{}', '{}', 'break', 'open', 'of {s}')",
	"day_totals (tenant_id, account) VALUES ('{}', 'account of {}')",
	"match_runs (tenant_id, run_id) VALUES ('{}', '{}')",
	"closes (tenant_id, close_id) VALUES ('{}', '{}')",
}

func fill(t *testing.T, conn driver.Conn, agency, session, order, ref string) {
	t.Helper()
	for _, sql := range rows {
		sql = strings.NewReplacer("{}", agency, "{s}", session, "{o}", order, "{p}", ref).Replace(sql)
		if err := conn.Exec(t.Context(), "INSERT INTO "+sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// user is a user in ClickHouse's configuration.
type user struct{ settings, grants, filters string }

var (
	granted  = regexp.MustCompile("^GRANT (.*) TO `([^`]+)`$")
	filtered = regexp.MustCompile("(?s)^CREATE ROW POLICY OR REPLACE `[^`]+` ON (.*) USING (.*) AS RESTRICTIVE TO (`.*)$")
	created  = regexp.MustCompile("(?s)^CREATE USER (?:IF NOT EXISTS )?`([^`]+)`(.*)$")
)

// configuration makes of the statements that make analysts a configuration with the same users,
// rights, policies and settings: the embedded engine stores none, and applies those of its
// configuration. Its queries run as the user default, which is the one that is named as.
func configuration(statements []string, as string) string {
	users := map[string]*user{}
	of := func(name string) *user {
		if users[name] == nil {
			users[name] = &user{}
		}
		return users[name]
	}
	for _, sql := range statements {
		switch {
		case granted.MatchString(sql):
			m := granted.FindStringSubmatch(sql)
			of(m[2]).grants += "<query>GRANT " + m[1] + "</query>"
		case filtered.MatchString(sql):
			m := filtered.FindStringSubmatch(sql)
			for _, name := range named.FindAllStringSubmatch(m[3], -1) {
				for _, table := range tableOf.FindAllStringSubmatch(m[1], -1) {
					of(name[1]).filters += fmt.Sprintf("<%s><filter>%s</filter></%s>", table[1], m[2], table[1])
				}
			}
		case created.MatchString(sql):
			m := created.FindStringSubmatch(sql)
			_, of(m[1]).settings, _ = strings.Cut(m[2], " SETTINGS ")
		}
	}
	var profiles, accounts strings.Builder
	for name, u := range users {
		values, limits := "", ""
		for _, s := range strings.Split(u.settings, ", ") {
			if w := strings.Fields(s); len(w) > 3 { // name = value CONST, or name = value MIN a MAX b
				values += fmt.Sprintf("<%s>%s</%s>", w[0], w[2], w[0])
				limit := "<const/>"
				if w[3] == "MIN" {
					limit = "<min>" + w[4] + "</min><max>" + w[6] + "</max>"
				}
				limits += fmt.Sprintf("<%s>%s</%s>", w[0], limit, w[0])
			}
		}
		fmt.Fprintf(&profiles, "<p_%s>%s<constraints>%s</constraints></p_%s>", name, values, limits, name)
		tag := name
		if name == as {
			tag = "default"
		}
		grants := u.grants
		if grants == "" {
			grants = "<query>GRANT NONE ON *.*</query>"
		}
		fmt.Fprintf(&accounts, "<%s><password/><networks><ip>::/0</ip></networks><quota>default</quota><profile>p_%s</profile><grants>%s</grants><databases><%s>%s</%s></databases></%s>",
			tag, name, grants, database, u.filters, database, tag)
	}
	if as == "" {
		accounts.WriteString("<default><password/><networks><ip>::/0</ip></networks><quota>default</quota><profile>default</profile><access_management>1</access_management></default>")
	}
	return "<clickhouse><access_control_improvements><select_from_system_db_requires_grant>true</select_from_system_db_requires_grant></access_control_improvements><profiles><default/>" +
		profiles.String() + "</profiles><quotas><default/></quotas><users>" + accounts.String() + "</users></clickhouse>"
}

// engine starts an engine of its own on a folder, with a configuration of users.
func engine(t *testing.T, dir, config, database string) (conn driver.Conn, address string, stop func()) {
	t.Helper()
	s, err := chdb.Start(t.Context(), chdb.Config{Dir: dir, Users: config, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
	if conn, err = chouse.Open(t.Context(), "http://"+s.Addr()+"/"+database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, "http://" + s.Addr() + "/?database=" + database, func() {
		_ = conn.Close()
		_ = s.Stop(t.Context())
	}
}

// installed makes a database with rows of both agencies and the analysts jeanne of the one and
// paul of the other. It returns the folder and the statements of both analysts.
func installed(t *testing.T) (dir string, statements []string) {
	t.Helper()
	pool := databaseOf(t)
	dir = t.TempDir()
	conn, _, stop := engine(t, dir, "", "default")
	if err := conn.Exec(t.Context(), "CREATE DATABASE "+database); err != nil {
		t.Fatal(err)
	}
	stop()
	conn, _, stop = engine(t, dir, "", database)
	migrate(t, conn)
	fill(t, conn, own, "chs_own", "ORDER-OWN", "1111222233334444")
	fill(t, conn, other, "chs_other", "ORDER-OTHER", "5555666677778888")
	// Rows of both agencies share a granule, as those of small agencies do.
	for _, table := range analysts.Tables() {
		if err := conn.Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
			t.Fatal(err)
		}
	}
	for name, agency := range map[string]string{"jeanne": "impots", "paul": "douanes"} {
		made, err := analysts.Add(t.Context(), pool, conn, actor, agency, name, now)
		if err != nil {
			t.Fatal(err)
		}
		statements = append(statements, made.SQL...)
	}
	stop()
	conn, _, stop = engine(t, dir, configuration(statements, ""), database)
	for _, sql := range statements {
		if strings.HasPrefix(sql, "CREATE DATABASE") || strings.HasPrefix(sql, "CREATE OR REPLACE VIEW") {
			if err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	stop()
	if err := os.WriteFile(filepath.Join(dir, "outside.txt"), []byte(outside), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, statements
}

// before returns the statements of an analyst as releases before 2026-11-29 made them: rights to
// the tables and views themselves, and policies.
func before() (statements []string) {
	var names []string
	for _, object := range slices.Concat(analysts.Tables(), analysts.Views()) {
		name := "`" + database + "`.`" + object + "`"
		statements = append(statements, "GRANT SELECT ON "+name+" TO `jeanne`")
		if slices.Contains(analysts.Tables(), object) {
			names = append(names, name)
		}
	}
	return append(statements, "CREATE USER `jeanne` SETTINGS readonly = 2 CONST",
		"CREATE ROW POLICY OR REPLACE `analyst_jeanne` ON "+strings.Join(names, ", ")+" USING "+analysts.Filter(own)+" AS RESTRICTIVE TO `jeanne`")
}

// answer returns what a query answers, the text of an error included, and the code of the error.
func answer(t *testing.T, address, sql string) (text string, refusal int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"&default_format=TSV", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	refusal, _ = strconv.Atoi(resp.Header.Get("X-ClickHouse-Exception-Code"))
	if m := regexp.MustCompile(`(?i)code: (\d+)`).FindSubmatch(body); refusal == 0 && resp.StatusCode != http.StatusOK && m != nil {
		refusal, _ = strconv.Atoi(string(m[1]))
	}
	return string(body), refusal
}

// escape is a query by which an analyst could see more than the rows of its agency. {ref} is the
// order of the other agency, and in a second run one that nobody has: different answers tell
// whether an order exists.
type escape struct {
	sql string
	// shows matches the answer if the escape succeeds. Without it the escape succeeds when the
	// answer has something of the other agency, an id of a session or a file of the machine,
	// or when the two answers differ.
	shows string
	// before says that it succeeds with the rights that releases before 2026-11-29 gave.
	before bool
}

const everything = `(?i)OTHER|` + other + `|5555666677778888|chs_[0-9a-z]|` + outside

// escapes are the ways out that were found or thought of.
var escapes = []escape{
	// Ids that open pages.
	{sql: "SELECT session_id FROM sessions", before: true},
	{sql: "SELECT session_id FROM quittance.receipts", before: true},
	{sql: "SELECT * FROM journal", before: true},
	{sql: "SELECT * FROM cases", before: true},
	{sql: "SELECT * FROM breaks", before: true},
	{sql: "SELECT detail FROM case_rows", before: true},
	{sql: "SELECT j.session_id FROM journal AS j WHERE j.session_id > ''", before: true},
	{sql: "SELECT COLUMNS('session_id') FROM receipts", before: true},

	// The tables below the views, and their indexes.
	{sql: "SELECT count() FROM quittance.journal", shows: "^[1-9]", before: true},
	{sql: "SELECT * FROM quittance.names WHERE tenant_id = '" + other + "'"},
	{sql: "SELECT * FROM mergeTreeIndex(quittance, receipt_rows)", before: true},
	{sql: "SELECT * FROM mergeTreeIndex(quittance, journal, with_marks = true)", before: true},
	{sql: "SELECT * FROM mergeTreeAnalyzeIndexes(quittance, receipt_rows, order_id = '{ref}')", before: true},
	{sql: "SELECT * FROM mergeTreeAnalyzeIndexes(analyst_jeanne, receipts, order_id = '{ref}')"},
	{sql: "SELECT * FROM mergeTreeProjection(quittance, receipt_rows, any)"},
	{sql: "SELECT * FROM mergeTreeTextIndex(quittance, receipt_rows, by_order)"},
	{sql: "SELECT * FROM merge('quittance', 'journal|receipt_rows')", before: true},
	{sql: "SELECT * FROM merge(REGEXP('.*'), '.*')"},
	{sql: "SELECT * FROM loop(quittance, names) LIMIT 9 SETTINGS max_execution_time = 5", shows: "name of"},
	{sql: "SELECT * FROM view(SELECT session_id FROM quittance.receipt_rows)", before: true},
	{sql: "SELECT * FROM viewIfPermitted(SELECT session_id FROM quittance.receipt_rows ELSE null('session_id String'))", before: true},
	{sql: "SELECT _part, _partition_id FROM receipt_rows", shows: "(?m)^2026", before: true},
	{sql: "SELECT * FROM quittance.receipt_rows SAMPLE 1 / 2"},
	{sql: "SELECT hasColumnInTable('quittance', 'receipt_rows', 'session_id')", shows: "^1", before: true},
	{sql: "DESCRIBE TABLE quittance.receipt_rows", shows: "session_id", before: true},
	{sql: "SHOW CREATE TABLE quittance.receipt_rows", shows: "session_id", before: true},
	{sql: "SHOW TABLES FROM quittance", shows: "journal", before: true},
	{sql: "CHECK TABLE quittance.receipt_rows", shows: "^1"},

	// Whether an order exists that is not the agency's.
	{sql: "EXPLAIN indexes = 1 SELECT * FROM receipts WHERE order_id = '{ref}'", before: true},
	{sql: "EXPLAIN ESTIMATE SELECT * FROM receipts WHERE order_id = '{ref}'", before: true},
	{sql: "EXPLAIN indexes = 1 SELECT * FROM receipts WHERE order_id = '{ref}' SETTINGS use_skip_indexes = 1", before: true},
	{sql: "EXPLAIN indexes = 1 SELECT * FROM receipt_rows WHERE order_id = '{ref}'", before: true},
	{sql: "SELECT count() FROM receipts WHERE order_id = '{ref}' SETTINGS use_skip_indexes = 1, force_data_skipping_indices = 'by_order'"},
	{sql: "SELECT throwIf(order_id = '{ref}') FROM receipts"},
	{sql: "SELECT count() FROM receipts WHERE throwIf(order_id = '{ref}')"},
	{sql: "SELECT count() FROM receipt_rows WHERE throwIf(order_id = '{ref}') SETTINGS apply_row_policy_after_final = 0"},
	{sql: "SELECT count() FROM receipt_rows WHERE throwIf(order_id = '{ref}') SETTINGS apply_row_policy_after_final = 1, apply_prewhere_after_final = 1"},
	{sql: "SELECT count() FROM receipt_rows WHERE throwIf(order_id = '{ref}') SETTINGS apply_prewhere_after_final = 0, optimize_move_to_prewhere_if_final = 1"},
	{sql: "SELECT count() FROM receipt_rows PREWHERE throwIf(order_id = '{ref}')"},
	{sql: "SELECT count() FROM journal WHERE intDiv(1, order_id != '{ref}') SETTINGS enable_analyzer = 0"},
	{sql: "SELECT count() FROM journal WHERE intDiv(1, order_id != '{ref}') SETTINGS enable_multiple_prewhere_read_steps = 0, short_circuit_function_evaluation = 'disable'"},
	{sql: "SELECT toUInt64(order_id) FROM receipts"},
	{sql: "SELECT toDate(order_id), toUUID(payment_ref) FROM receipts WHERE toUInt8(order_id) = 1"},
	{sql: "SELECT CAST(order_id, 'Enum8(\\'a\\' = 1)') FROM journal"},
	{sql: "SELECT count() FROM receipts", shows: "^2"},
	{sql: "SELECT count() FROM names SETTINGS optimize_trivial_count_query = 1, optimize_use_implicit_projections = 1", shows: "^[3-9]"},
	{sql: "SELECT min(tenant_id), max(tenant_id) FROM receipt_rows SETTINGS optimize_use_implicit_projections = 1"},
	{sql: "SELECT uniqExact(tenant_id), groupUniqArray(order_id) FROM journal"},
	{sql: "SELECT * FROM receipts ORDER BY order_id DESC LIMIT 1 WITH TIES"},
	{sql: "SELECT * FROM receipts LIMIT 1 OFFSET 1"},
	{sql: "SELECT * FROM receipts SETTINGS additional_table_filters = {'quittance.receipt_rows': '1'}"},
	{sql: "SELECT * FROM receipts SETTINGS additional_result_filter = 'throwIf(order_id = \\'{ref}\\')'"},
	{sql: "SELECT * FROM sessions WHERE tenant_id = '" + other + "' OR 1"},
	{sql: "SELECT order_id FROM chain(from = '1970-01-01', until = '2100-01-01')", shows: "OTHER"},
	{sql: "SELECT name FROM agencies"},
	{sql: "WITH r AS (SELECT * FROM receipts UNION ALL SELECT * FROM receipts) SELECT * FROM r"},

	// What ClickHouse tells of itself.
	{sql: "SELECT sum(rows) FROM system.parts WHERE database = 'quittance'", shows: "^[1-9]", before: true},
	{sql: "SELECT count() FROM system.parts_columns WHERE database = 'quittance'", shows: "^[1-9]", before: true},
	{sql: "SELECT sum(data_compressed_bytes) FROM system.columns WHERE database = 'quittance'", shows: "^[1-9]"},
	{sql: "SELECT sum(total_rows) FROM system.tables WHERE database = 'quittance'", shows: "^[1-9]", before: true},
	{sql: "SELECT count() FROM system.data_skipping_indices WHERE database = 'quittance'", shows: "^[1-9]", before: true},
	{sql: "SELECT command FROM system.mutations WHERE database = 'quittance'", shows: "by_session_key", before: true},
	{sql: "SELECT name FROM system.databases", shows: "quittance|paul", before: true},
	{sql: "SELECT name, create_table_query FROM system.tables", shows: "analyst_paul"},
	{sql: "SELECT query FROM system.query_log"},
	{sql: "SELECT message FROM system.text_log"},
	{sql: "SELECT query FROM system.processes WHERE query NOT LIKE '%system.processes%'", shows: "."},
	{sql: "SELECT * FROM system.part_log"},
	{sql: "SELECT * FROM system.users"},
	{sql: "SELECT * FROM system.row_policies"},
	{sql: "SELECT * FROM system.query_cache", shows: "."},
	{sql: "SELECT * FROM system.dictionaries", shows: "."},
	{sql: "SHOW GRANTS FOR analyst_jeanne", shows: "GRANT"},
	{sql: "SHOW CREATE USER analyst_jeanne", shows: "IDENTIFIED"},
	{sql: "SHOW CREATE ROW POLICY analyst_jeanne ON quittance.names", shows: "tenant_id"},
	{sql: "SELECT addressToSymbol(1) SETTINGS allow_introspection_functions = 1", shows: "^$|^\\s"},

	// Another analyst's views, and other users.
	{sql: "SELECT * FROM analyst_paul.receipts"},
	{sql: "EXECUTE AS analyst_paul SELECT * FROM quittance.names"},
	{sql: "CREATE USER eve", shows: "^$"},
	{sql: "GRANT SELECT ON quittance.* TO jeanne", shows: "^$"},
	{sql: "CREATE ROW POLICY eve ON quittance.names USING 1 TO ALL", shows: "^$"},
	{sql: "DROP ROW POLICY analyst_jeanne ON quittance.names", shows: "^$"},
	{sql: "ALTER USER jeanne SETTINGS readonly = 0", shows: "^$"},

	// Writing.
	{sql: "CREATE OR REPLACE VIEW analyst_jeanne.receipts DEFINER = analyst_paul SQL SECURITY DEFINER AS SELECT * FROM quittance.receipts", shows: "^$"},
	{sql: "CREATE VIEW analyst_jeanne.eve SQL SECURITY NONE AS SELECT * FROM quittance.names", shows: "^$"},
	{sql: "CREATE TEMPORARY TABLE eve (a String)", shows: "^$"},
	{sql: "INSERT INTO quittance.names (id) VALUES ('a')", shows: "^$"},
	{sql: "ALTER TABLE quittance.names DELETE WHERE 1", shows: "^$"},
	{sql: "DROP VIEW analyst_jeanne.receipts", shows: "^$"},
	{sql: "OPTIMIZE TABLE quittance.names", shows: "^$"},
	{sql: "SYSTEM RELOAD CONFIG", shows: "^$"},
	{sql: "KILL QUERY WHERE 1", shows: "^$"},
	{sql: "BACKUP DATABASE quittance TO File('/tmp/eve')", shows: "BACKUP_CREATED"},

	// Off the machine, and its files.
	{sql: "SELECT * FROM file('outside.txt', 'LineAsString')"},
	{sql: "SELECT * FROM filesystem('.')", shows: "outside"},
	{sql: "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')", shows: "(?i)refused|POCO"},
	{sql: "INSERT INTO FUNCTION url('http://127.0.0.1:1/', 'CSV', 'a String') SELECT order_id FROM receipts", shows: "(?i)connection refused|POCO"},
	{sql: "SELECT * FROM remote('127.0.0.1:1', quittance, names)", shows: "(?i)connection refused|NETWORK"},
	{sql: "SELECT * FROM remoteSecure('127.0.0.1:1', quittance, names)", shows: "(?i)connection refused|NETWORK"},
	{sql: "SELECT * FROM cluster('default', quittance, names)", shows: "(?i)connection refused|NETWORK"},
	{sql: "SELECT * FROM s3('http://127.0.0.1:1/b/k', 'CSV')", shows: "(?i)refused|S3_ERROR"},
	{sql: "SELECT * FROM postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')", shows: "(?i)connection refused|POSTGRESQL"},
	{sql: "SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')", shows: "(?i)connect to|refused"},
	{sql: "SELECT * FROM mongodb('127.0.0.1:1', 'd', 't', 'u', 'p', 'a String')", shows: "(?i)connect to|refused"},
	{sql: "SELECT * FROM jdbc('dsn', 's', 't')", shows: "(?i)bridge"},
	{sql: "SELECT * FROM executable('x', 'TSV', 'a String')", shows: "(?i)UNSUPPORTED|not exist"},
	{sql: "SELECT * FROM dictionary('any')", shows: "(?i)not found"},
	{sql: "SELECT dictGet('any', 'a', 1)", shows: "^[^C]"},
	{sql: "SELECT * FROM icebergLocal('/')", shows: "(?i)metadata"},

	// Limits and settings.
	{sql: "SELECT 1 SETTINGS readonly = 0", shows: "^1"},
	{sql: "SET readonly = 0", shows: "^$"},
	{sql: "SELECT 1 SETTINGS use_query_condition_cache = 1", shows: "^1", before: true},
	{sql: "SELECT 1 SETTINGS log_queries = 0", shows: "^1", before: true},
	{sql: "SELECT 1 SETTINGS max_execution_time = 601", shows: "^1", before: true},
	{sql: "SELECT 1 SETTINGS max_execution_time = 0", shows: "^1", before: true},
	{sql: "SELECT 1 SETTINGS max_result_rows = 0", shows: "^1", before: true},
	{sql: "SELECT 1 SETTINGS max_threads = 64", shows: "^1", before: true},
}

// succeeds reports whether the escape shows what it must not, and what it answered.
func (e escape) succeeds(t *testing.T, address string) (bool, string) {
	t.Helper()
	text, _ := answer(t, address, strings.ReplaceAll(e.sql, "{ref}", "ORDER-OTHER"))
	if e.shows != "" {
		return regexp.MustCompile(e.shows).MatchString(text), text
	}
	if strings.Contains(e.sql, "{ref}") {
		absent, _ := answer(t, address, strings.ReplaceAll(e.sql, "{ref}", "ORDER-OTHES"))
		return ids.ReplaceAllString(strings.ReplaceAll(text, "ORDER-OTHER", "ORDER-OTHES"), "") != ids.ReplaceAllString(absent, ""), text + "\n" + absent
	}
	// An error repeats the query. It is no answer.
	return regexp.MustCompile(everything).MatchString(strings.ReplaceAll(text, e.sql, "")), text
}

// ids are names in a plan that differ from query to query.
var ids = regexp.MustCompile(`__set_\w+|\d{5,}_\d{5,}\w*`)

// work is what an analyst must be able to do.
var work = []string{
	"SELECT count() FROM receipts WHERE livemode AND local_date >= '2026-11-01'",
	"SELECT uniqExact(session_key) FROM receipts AS r JOIN sessions AS s USING (session_key)",
	"SELECT 1 SETTINGS max_execution_time = 600, max_threads = 2",
	"SELECT * FROM sessions SETTINGS use_query_cache = 0",
	"SELECT count() FROM expected_money AS e FINAL",
	"DESCRIBE TABLE receipts",
	"SHOW TABLES",
	"EXPLAIN SELECT * FROM receipts",
}

// An analyst sees a row of its agency in each view, nothing of another, no id that opens a page,
// and finds no way round its views. The escapes of the list that the rights of earlier releases
// allowed succeed with those rights, so that the list finds what it is for.
func TestEscapes(t *testing.T) {
	t.Parallel()
	dir, statements := installed(t)
	_, address, stop := engine(t, dir, configuration(before(), "jeanne"), database)
	for _, e := range escapes {
		if out, text := e.succeeds(t, address); e.before && !out {
			t.Errorf("with rights to the tables, %s does not escape: %s", e.sql, text)
		}
	}
	stop()

	_, address, stop = engine(t, dir, configuration(statements, "jeanne"), analysts.Database("jeanne"))
	defer stop()
	for _, e := range escapes {
		if out, text := e.succeeds(t, address); out {
			t.Errorf("%s escapes: %s", e.sql, text)
		}
	}
	objects := slices.Concat(analysts.Tables(), analysts.Views())
	objects[slices.Index(objects, "chain")] = "chain(from = '1970-01-01', until = '2100-01-01')"
	for _, object := range objects {
		if text, _ := answer(t, address, "SELECT * FROM "+object); !strings.Contains(text, own) || regexp.MustCompile(everything).MatchString(text) {
			t.Errorf("the view %s shows %s", object, text)
		}
	}
	for _, sql := range work {
		if text, refusal := answer(t, address, sql); refusal != 0 {
			t.Errorf("%s: %s", sql, text)
		}
	}
	if text, _ := answer(t, address, "SELECT count(), uniqExact(session_key), any(length(session_key)) FROM receipts AS r JOIN sessions AS s USING (session_key)"); text != "1\t1\t32\n" {
		t.Errorf("views joined by the key of the session: %s", text)
	}
}
