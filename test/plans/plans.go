// Package plans checks how Postgres carries out a query.
package plans

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// sortAtMost is the largest number of rows that a query of a list may sort.
const sortAtMost = 1000

// node is a node of a plan, in rows of one loop.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Method   string  `json:"Sort Method"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []node
}

// Check runs a query that pages a list, and fails the test if it reads a table row by row, sorts
// more than 1,000 rows or drops more than that of a table by a filter. A sort below a limit keeps the
// first rows only, and counts as these. Statements that are prepared once for all values are planned and
// checked for tables that are read whole, too. Tables must have rows and statistics (ANALYZE).
// tables are those that may be read whole because they are always small.
func Check(t testing.TB, pool *pgxpool.Pool, small []string, sql string, args ...any) {
	t.Helper()
	root := explain(t, pool, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+sql, args...)
	for _, root := range []node{root, generic(t, pool, sql)} {
		for _, fault := range root.faults("", small) {
			t.Errorf("%s\n%s\n%s", fault, sql, root)
		}
	}
}

// generic returns the plan for all values.
func generic(t testing.TB, pool *pgxpool.Pool, sql string) node {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	// The parameters have no values, which pgx itself would ask for.
	results, err := conn.Conn().PgConn().Exec(t.Context(), "EXPLAIN (GENERIC_PLAN, FORMAT JSON) "+sql).ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		t.Fatalf("%v\n%s", err, sql)
	}
	return parsed(t, results[0].Rows[0][0])
}

// explain returns the plan of a query.
func explain(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) node {
	t.Helper()
	var text []byte
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return parsed(t, text)
}

func parsed(t testing.TB, text []byte) node {
	t.Helper()
	var plan []struct{ Plan node }
	if err := json.Unmarshal(text, &plan); err != nil || len(plan) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return plan[0].Plan
}

// faults returns what is wrong with a node below another one.
func (n node) faults(below string, small []string) (out []string) {
	if n.Type == "Seq Scan" && !slices.Contains(small, n.Relation) {
		out = append(out, "Seq Scan on "+n.Relation)
	}
	if n.Type == "Sort" {
		sorted := n.Rows
		if below != "Limit" {
			sorted = n.Plans[0].Rows
		}
		if sorted > sortAtMost {
			out = append(out, fmt.Sprintf("%s of %.0f rows", n.Method, sorted))
		}
	}
	if n.Relation != "" && n.Removed*n.Loops > sortAtMost && !slices.Contains(small, n.Relation) {
		out = append(out, fmt.Sprintf("%s on %s drops %.0f rows by a filter", n.Type, n.Relation, n.Removed*n.Loops))
	}
	for _, child := range n.Plans {
		out = append(out, child.faults(n.Type, small)...)
	}
	return out
}

// String returns the plan as indented lines.
func (n node) String() string {
	line := fmt.Sprintf("%s %s %s %s rows %.0f × %.0f, dropped %.0f", n.Type, n.Relation, n.Index, n.Method, n.Rows, n.Loops, n.Removed)
	for _, child := range n.Plans {
		line += "\n" + "  " + strings.ReplaceAll(child.String(), "\n", "\n  ")
	}
	return line
}
