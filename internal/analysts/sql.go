package analysts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"quittance/internal/clickhouse"
	"quittance/internal/secret"
)

// PolicyOfAll is the name of the row policy that shows all rows to everybody for whom there
// is no other.
const PolicyOfAll = "quittance_all"

// prefix begins the names of what an analyst's database is made of: the database, the user
// that defines its views, and the row policies of that user. The name of the analyst follows.
const prefix = "analyst_"

// Database returns the name of the analyst's database, which is also the name of the user that
// defines its views.
func Database(analyst string) string { return prefix + analyst }

// Tables returns the tables with rows of agencies, by name. Each has the column tenant_id.
// schema_migrations, rewrites and journal_positions have none and are not among them.
func Tables() []string {
	return []string{
		"breaks", "case_rows", "closes", "day_totals", "expected_money", "journal", "match_runs", "matches", "names", "receipt_rows", "statement_lines",
	}
}

// Views returns the views, by name. They read Tables only.
func Views() []string {
	return []string{"agencies", "cases", "chain", "deliveries", "open_breaks", "payments", "receipts", "reconciliation_days", "sessions"}
}

// Filter returns the condition on the rows of an agency.
func Filter(agencyID string) string { return "tenant_id = " + literal(agencyID) }

// Limit is a setting that bounds the queries of an analyst. The analyst can change it from 1
// to Most. Zero would mean unlimited.
type Limit struct {
	Setting       string
	Default, Most int64
}

// Limits returns the limits of an analyst's queries: bytes of memory, seconds, rows, threads
// and queries at the same time.
func Limits() []Limit {
	return []Limit{
		{"max_memory_usage", 4_000_000_000, 4_000_000_000},
		{"max_memory_usage_for_user", 8_000_000_000, 8_000_000_000},
		{"max_execution_time", 60, 600},
		{"max_rows_to_read", 5_000_000_000, 5_000_000_000},
		{"max_result_rows", 10_000_000, 10_000_000},
		{"max_threads", 4, 4},
		{"max_concurrent_queries_for_user", 4, 4},
	}
}

// Fixed is a setting that an analyst cannot change.
type Fixed struct {
	Setting string
	Value   int64
}

// FixedSettings returns the settings that an analyst cannot change. An index of references, and
// what ClickHouse remembers of earlier conditions, are about the rows of all agencies that share
// a granule: EXPLAIN and the number of rows that a query reads would tell whether another agency
// has a reference. Queries are logged.
func FixedSettings() []Fixed {
	return []Fixed{{"use_skip_indexes", 0}, {"use_query_condition_cache", 0}, {"allow_introspection_functions", 0}, {"log_queries", 1}}
}

// ReadOnly is the setting readonly of an analyst: reads only. Clients such as Metabase may
// change settings, but not this one.
const ReadOnly = 2

// literal returns text as a string of SQL.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// statements makes the SQL for one database.
type statements struct{ database string }

func (s statements) name(of string) string {
	return clickhouse.Quote(s.database) + "." + clickhouse.Quote(of)
}

func (s statements) names(of []string) string {
	out := make([]string, len(of))
	for i, one := range of {
		out[i] = s.name(one)
	}
	return strings.Join(out, ", ")
}

// showAll creates the policy that shows all rows to everybody.
func (s statements) showAll() string {
	return fmt.Sprintf("CREATE ROW POLICY OR REPLACE %s ON %s USING 1 AS PERMISSIVE TO ALL", PolicyOfAll, s.names(Tables()))
}

// restrict creates the policies of an analyst. They bind the user that defines the views, and
// the analyst, should somebody give it a right to a table. Without users they bind nobody.
func (s statements) restrict(analyst, agencyID string, users ...string) string {
	to := "NONE"
	if len(users) > 0 {
		quoted := make([]string, len(users))
		for i, u := range users {
			quoted[i] = clickhouse.Quote(u)
		}
		to = strings.Join(quoted, ", ")
	}
	return fmt.Sprintf("CREATE ROW POLICY OR REPLACE %s ON %s USING %s AS RESTRICTIVE TO %s",
		clickhouse.Quote(prefix+analyst), s.names(Tables()), Filter(agencyID), to)
}

// settings returns the settings of an analyst as SQL.
func settings() string {
	list := []string{fmt.Sprintf("readonly = %d CONST", ReadOnly)}
	for _, f := range FixedSettings() {
		list = append(list, fmt.Sprintf("%s = %d CONST", f.Setting, f.Value))
	}
	for _, l := range Limits() {
		list = append(list, fmt.Sprintf("%s = %d MIN 1 MAX %d", l.Setting, l.Default, l.Most))
	}
	return strings.Join(list, ", ")
}

// createUser creates a user without any right.
func (s statements) createUser(analyst string, p password) string {
	return fmt.Sprintf("CREATE USER %s IDENTIFIED WITH sha256_hash BY %s SALT %s DEFAULT DATABASE %s GRANTEES NONE SETTINGS %s",
		clickhouse.Quote(analyst), literal(p.hash), literal(p.salt), clickhouse.Quote(Database(analyst)), settings())
}

// createDefiner creates the user that defines the views. Nobody can sign in as it: it has no
// host, and a password that nobody knows.
func createDefiner(analyst string) string {
	p := newPassword()
	return fmt.Sprintf("CREATE USER IF NOT EXISTS %s IDENTIFIED WITH sha256_hash BY %s SALT %s HOST NONE GRANTEES NONE",
		clickhouse.Quote(Database(analyst)), literal(p.hash), literal(p.salt))
}

// define gives the definer the right to read, object by object, and makes the database and its
// views: a new table is in none of them.
func (s statements) define(analyst string, objects []object) (out []string) {
	definer := clickhouse.Quote(Database(analyst))
	for _, o := range objects {
		out = append(out, fmt.Sprintf("GRANT SELECT ON %s TO %s", s.name(o.name), definer))
	}
	out = append(out, "CREATE DATABASE IF NOT EXISTS "+definer)
	for _, o := range objects {
		out = append(out, s.view(analyst, o))
	}
	return out
}

// open gives the analyst the right to read its database, and takes the rights to the tables
// that releases before 2026-11-29 gave.
func (s statements) open(analyst string) []string {
	user := clickhouse.Quote(analyst)
	return []string{
		fmt.Sprintf("REVOKE SELECT ON %s.* FROM %s", clickhouse.Quote(s.database), user),
		fmt.Sprintf("GRANT SELECT ON %s.* TO %s", clickhouse.Quote(Database(analyst)), user),
	}
}

// add returns the statements that make an analyst, in order. The policies come before the
// user, which has no right until the last of them holds.
func (s statements) add(analyst, agencyID string, p password, objects []object) []string {
	return slices.Concat(s.protect(analyst, agencyID, &p), s.define(analyst, objects), s.open(analyst))
}

// protect returns the statements of add before the first right. Without a password the user
// exists, and gets its settings again.
func (s statements) protect(analyst, agencyID string, p *password) []string {
	user := fmt.Sprintf("ALTER USER %s DEFAULT DATABASE %s SETTINGS %s", clickhouse.Quote(analyst), clickhouse.Quote(Database(analyst)), settings())
	if p != nil {
		user = s.createUser(analyst, *p)
	}
	out := []string{s.showAll()}
	if p != nil {
		out = append(out, s.restrict(analyst, agencyID))
	}
	return append(out, user, createDefiner(analyst), s.restrict(analyst, agencyID, Database(analyst), analyst))
}

// revoke returns the statements that remove an analyst. The policies come last: without them the
// users would see all rows. ClickHouse does not drop a user that defines views.
func (s statements) revoke(analyst string) []string {
	return []string{
		"DROP USER IF EXISTS " + clickhouse.Quote(analyst),
		"DROP DATABASE IF EXISTS " + clickhouse.Quote(Database(analyst)) + " SYNC",
		"DROP USER IF EXISTS " + clickhouse.Quote(Database(analyst)),
		fmt.Sprintf("DROP ROW POLICY IF EXISTS %s ON %s", clickhouse.Quote(prefix+analyst), s.names(Tables())),
	}
}

// password is a new password with what ClickHouse gets of it.
type password struct {
	text       secret.Text
	hash, salt string
}

// newPassword makes a password of 130 random bits. ClickHouse's sha256_hash is the SHA-256 of
// the password followed by the salt, in hexadecimal digits.
func newPassword() password {
	text, salt := rand.Text(), rand.Text()
	sum := sha256.Sum256([]byte(text + salt))
	return password{text: secret.NewText(text), hash: hex.EncodeToString(sum[:]), salt: salt}
}
