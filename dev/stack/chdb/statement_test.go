package chdb

import (
	"strings"
	"testing"
)

func TestParseStatementFindsAnInsertsData(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ sql, text, format, data string }{
		{"INSERT INTO t VALUES (1,'a\n\nb')", "INSERT INTO t ", "Values", " (1,'a\n\nb')"},
		{"insert into db.t (a, `values`) format JSONEachRow\n{\"a\":1}\n", "insert into db.t (a, `values`) ", "JSONEachRow", "{\"a\":1}\n"},
		{"INSERT INTO t FORMAT Native", "INSERT INTO t ", "Native", ""},
		{"INSERT INTO t FORMAT TSV \r\nx\ty", "INSERT INTO t ", "TSV", "x\ty"},
		{"INSERT INTO t FORMAT CSV 1,2", "INSERT INTO t ", "CSV", "1,2"},
		{"/* FORMAT x */ INSERT INTO t -- VALUES\n SETTINGS a='VALUES' VALUES (1)", "/* FORMAT x */ INSERT INTO t -- VALUES\n SETTINGS a='VALUES' ", "Values", " (1)"},
		{"INSERT INTO format.values VALUES (1)", "INSERT INTO format.values ", "Values", " (1)"},
		{"INSERT INTO FUNCTION file('VALUES', 'TSV') VALUES (1)", "INSERT INTO FUNCTION file('VALUES', 'TSV') ", "Values", " (1)"},
		{"INSERT INTO t SELECT 'FORMAT', values FROM u;", "INSERT INTO t SELECT 'FORMAT', values FROM u", "", ""},
	} {
		st, err := parseStatement(tc.sql)
		if err != nil {
			t.Errorf("%q: %v", tc.sql, err)
			continue
		}
		data := ""
		if st.insertFormat != "" {
			data = tc.sql[st.data:]
		}
		if st.text != tc.text || st.insertFormat != tc.format || data != tc.data {
			t.Errorf("%q: text %q, format %q, data %q", tc.sql, st.text, st.insertFormat, data)
		}
	}
}

func TestParseStatementFindsTheAnswersFormat(t *testing.T) {
	t.Parallel()
	for sql, format := range map[string]string{
		"SELECT 1":                               "",
		"SELECT 1 FORMAT JSON":                   "JSON",
		"SELECT 1 format JSON ;":                 "JSON",
		"SELECT 1 FORMAT JSON SETTINGS x = 1":    "JSON",
		"SELECT 'x FORMAT JSON'":                 "",
		"SELECT 1 -- FORMAT JSON":                "",
		"SELECT format FROM t":                   "",
		"SELECT $$ FORMAT JSON $$":               "",
		"SELECT 'it\\'s ''so''' FORMAT CSV":      "CSV",
		"SELECT * FROM (SELECT 1 AS x) FORMAT T": "T",
	} {
		st, err := parseStatement(sql)
		if err != nil || st.format != format || !st.selects {
			t.Errorf("%q: %+v, %v", sql, st, err)
		}
	}
}

func TestParseStatementRefusesASecondStatement(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"SELECT 1; DROP TABLE t", "SELECT 1;;", "INSERT INTO t SELECT 1; SELECT 2"} {
		if _, err := parseStatement(sql); err == nil || !strings.Contains(err.Error(), "Multi-statements") {
			t.Errorf("%q: %v", sql, err)
		}
	}
	for _, sql := range []string{"SELECT 1;", "SELECT ';'", "SELECT 1; -- ; that was all", "SELECT `a;b` /* ; */"} {
		if _, err := parseStatement(sql); err != nil {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, seed := range []string{"INSERT INTO t FORMAT CSV\n1", "SELECT $a$ ; $a$", "'", "/*", "`", "INSERT", "$x$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		st, err := parseStatement(sql)
		if err == nil && st.data > len(sql) {
			t.Errorf("%q: data at %d of %d", sql, st.data, len(sql))
		}
	})
}
