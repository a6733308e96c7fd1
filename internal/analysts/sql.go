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

// policyPrefix begins the names of the row policies of analysts. The name of the analyst
// follows.
const policyPrefix = "analyst_"

// Tables returns the tables with rows of agencies, by name. Each has the column tenant_id.
// schema_migrations and rewrites have none and are not among them.
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

// restrict creates the policies of an analyst. to is the user, or NONE before it exists.
func (s statements) restrict(analyst, agencyID, to string) string {
	return fmt.Sprintf("CREATE ROW POLICY OR REPLACE %s ON %s USING %s AS RESTRICTIVE TO %s",
		clickhouse.Quote(policyPrefix+analyst), s.names(Tables()), Filter(agencyID), to)
}

// createUser creates a user without any right.
func (s statements) createUser(analyst string, p password) string {
	settings := []string{fmt.Sprintf("readonly = %d", ReadOnly)}
	for _, l := range Limits() {
		settings = append(settings, fmt.Sprintf("%s = %d MIN 1 MAX %d", l.Setting, l.Default, l.Most))
	}
	return fmt.Sprintf("CREATE USER %s IDENTIFIED WITH sha256_hash BY %s SALT %s DEFAULT DATABASE %s GRANTEES NONE SETTINGS %s",
		clickhouse.Quote(analyst), literal(p.hash), literal(p.salt), clickhouse.Quote(s.database), strings.Join(settings, ", "))
}

// grants gives the right to read, object by object: a new table is in none of them.
func (s statements) grants(analyst string) (out []string) {
	for _, object := range slices.Concat(Tables(), Views()) {
		out = append(out, fmt.Sprintf("GRANT SELECT ON %s TO %s", s.name(object), clickhouse.Quote(analyst)))
	}
	return out
}

// add returns the statements that make an analyst, in order. The policies come before the
// user, which has no right until the last of them holds.
func (s statements) add(analyst, agencyID string, p password) []string {
	return append(s.protect(analyst, agencyID, &p), s.grants(analyst)...)
}

// protect returns the statements of add before the rights. Without a password the user
// exists.
func (s statements) protect(analyst, agencyID string, p *password) []string {
	out := []string{s.showAll()}
	if p != nil {
		out = append(out, s.restrict(analyst, agencyID, "NONE"), s.createUser(analyst, *p))
	}
	return append(out, s.restrict(analyst, agencyID, clickhouse.Quote(analyst)))
}

// revoke returns the statements that remove an analyst. The user comes first: without the
// policies it would see all rows.
func (s statements) revoke(analyst string) []string {
	return []string{
		"DROP USER IF EXISTS " + clickhouse.Quote(analyst),
		fmt.Sprintf("DROP ROW POLICY IF EXISTS %s ON %s", clickhouse.Quote(policyPrefix+analyst), s.names(Tables())),
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
