package analysts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"quittance/internal/clickhouse"
)

// object is a table or a view of the database.
type object struct {
	name       string
	engine     string // of a table, or View
	comment    string
	parameters []string // of a view with parameters, whose columns are unknown
	columns    []column
}

// column is a column of an object.
type column struct {
	Object  string `ch:"object"`
	Name    string `ch:"name"`
	Type    string `ch:"type"`
	Comment string `ch:"comment"`
}

// Hidden is the column that no analyst sees: whoever has the id of a session can open its page.
// Key stands in its place.
const (
	Hidden = "session_id"
	Key    = "session_key"
)

// keyOf is the key of a session, as the views and the journal derive it.
const keyOf = "if(empty(session_id), '', substring(lower(hex(SHA256(session_id))), 1, 32))"

// Texts returns the columns with words of people and machines, which may name a session. An
// analyst sees "chs_…" in its place.
func Texts() []string {
	return []string{"detail", "reason", "reference", "resolved_reason"}
}

// masked returns the text without ids of sessions.
func masked(text string) string {
	return "replaceRegexpAll(" + text + ", 'chs_[0-9A-Za-z_]+', 'chs_…')"
}

// expression returns what an analyst sees as the column, and false for nothing.
func (o object) expression(c column) (sql string, shown bool) {
	quoted := clickhouse.Quote(c.Name)
	switch {
	case c.Name == Hidden && o.keyed():
		return "", false
	case c.Name == Hidden:
		return keyOf + " AS " + Key, true
	case !slices.Contains(Texts(), c.Name):
		return quoted, true
	case strings.HasPrefix(c.Type, "Map"):
		return fmt.Sprintf("mapApply((k, v) -> (k, %s), %s) AS %s", masked("v"), quoted, quoted), true
	}
	return masked(quoted) + " AS " + quoted, true
}

// keyed reports whether the object has the key itself, as views have.
func (o object) keyed() bool {
	return slices.ContainsFunc(o.columns, func(c column) bool { return c.Name == Key })
}

// shown returns the columns as an analyst sees them.
func (o object) shown() (columns, expressions []string) {
	for _, c := range o.columns {
		sql, ok := o.expression(c)
		if !ok {
			continue
		}
		name, comment := c.Name, c.Comment
		if name == Hidden {
			name, comment = Key, "Key of the session, the same in all views; empty for none"
		}
		columns = append(columns, fmt.Sprintf("%s %s COMMENT %s", clickhouse.Quote(name), c.Type, literal(comment)))
		expressions = append(expressions, sql)
	}
	return columns, expressions
}

// view returns the statement that makes the analyst's view of an object. A table is read with
// FINAL: each row once. The comment ends with a fingerprint of the statement, so that a view of
// another release is known.
func (s statements) view(analyst string, o object) string {
	name, definer := clickhouse.Quote(Database(analyst))+"."+clickhouse.Quote(o.name), clickhouse.Quote(Database(analyst))
	columns, from := "", s.name(o.name)
	selected := "* EXCEPT " + Hidden
	if list, expressions := o.shown(); len(list) > 0 {
		columns, selected = " ("+strings.Join(list, ", ")+")", strings.Join(expressions, ", ")
	}
	switch {
	case len(o.parameters) > 0:
		given := make([]string, len(o.parameters))
		for i, p := range o.parameters {
			given[i] = fmt.Sprintf("%s = {%s:Date}", clickhouse.Quote(p), p)
		}
		from += "(" + strings.Join(given, ", ") + ")"
	case strings.Contains(o.engine, "Replacing"):
		from += " FINAL"
	}
	body := fmt.Sprintf("CREATE OR REPLACE VIEW %s%s DEFINER = %s SQL SECURITY DEFINER AS SELECT %s FROM %s", name, columns, definer, selected, from)
	return body + " COMMENT " + literal(o.comment+fingerprint(body))
}

// fingerprint returns the end of the comment of a view.
func fingerprint(statement string) string {
	sum := sha256.Sum256([]byte(statement))
	return " [" + hex.EncodeToString(sum[:4]) + "]"
}

// marked returns the end of the comment that the analyst's view of the object has in this
// release.
func (s statements) marked(analyst string, o object) string {
	statement := s.view(analyst, o)
	return statement[strings.LastIndex(statement, " [") : len(statement)-1]
}
