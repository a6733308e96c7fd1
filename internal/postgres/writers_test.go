package postgres_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// severalWriters are the tables that several packages write, and why.
var severalWriters = map[string]string{}

// writersOfAny are the packages that write tables whose names they are given, by nouns that
// write the other columns themselves.
var writersOfAny = map[string]string{
	"internal/kafka/consume": "the positions of a sink, in the transaction of its noun",
	"internal/signed":        "the signatures of rows that other packages write, in their transactions",
	"internal/personal":      "seals a column again with another master key, for the nouns that name their tables in Sealed",
	"internal/citizens":      "two tables of its own in a loop",
	"internal/journal":       "tables of ClickHouse",
	"internal/sessions":      "the tables of the read model, which it describes once for the sink and for the comparison",
	"reconciliation":         "tables of ClickHouse",
}

var (
	created = regexp.MustCompile(`CREATE TABLE(?: IF NOT EXISTS)? ([a-z_]+)`)
	// written finds the statement, the word before it, and the table; no table where the text
	// goes on with a name from elsewhere.
	written = regexp.MustCompile(`(\w*)\s*\b(INSERT INTO|DELETE FROM|TRUNCATE(?: TABLE)?|UPDATE(?: ONLY)?)(?:\s+([a-z_]+)\b|\s+%|\s+$)`)
)

// A table has one package that writes it. A second one calls a function of the first.
func TestTablesHaveOneWriter(t *testing.T) {
	t.Parallel()
	tables := tablesOfMigrations(t)
	writers, anyTable := map[string]map[string]bool{}, map[string]bool{}
	note := func(pkg, table string) {
		switch {
		case table == "":
			anyTable[pkg] = true
		case tables[table]:
			if writers[table] == nil {
				writers[table] = map[string]bool{}
			}
			writers[table][pkg] = true
		}
	}
	sourcesOfProduction(t, note)
	if len(writers) < len(tables)/2 {
		t.Fatalf("only %d of %d tables are written", len(writers), len(tables))
	}
	for table, packages := range writers {
		got := strings.Join(slices.Sorted(maps.Keys(packages)), " ")
		switch want, several := severalWriters[table]; {
		case several && got != want:
			t.Errorf("%s is written by %s; the list says %s", table, got, want)
		case !several && len(packages) > 1:
			t.Errorf("%s is written by %s: let one package write it", table, got)
		}
	}
	for pkg := range anyTable {
		if writersOfAny[pkg] == "" && !strings.HasPrefix(pkg, "reconciliation/") {
			t.Errorf("%s writes a table whose name it composes", pkg)
		}
	}
}

// tablesOfMigrations returns the names of all tables.
func tablesOfMigrations(t *testing.T) map[string]bool {
	t.Helper()
	tables := map[string]bool{}
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range created.FindAllStringSubmatch(string(text), -1) {
			tables[m[1]] = true
		}
	}
	return tables
}

// sourcesOfProduction notes each table that a package of the service writes, an empty name for
// one that the text does not tell. Generated code is in queries.sql.
func sourcesOfProduction(t *testing.T, note func(pkg, table string)) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		pkg := filepath.ToSlash(filepath.Dir(name))
		switch {
		case entry.IsDir() && (name == "dev" || name == "test" || len(name) > 2 && name[0] == '.'):
			return fs.SkipDir
		case entry.IsDir(), strings.HasSuffix(name, "_test.go"), filepath.Base(pkg) == "db":
			return nil
		case filepath.Base(name) == "queries.sql":
			text, err := os.ReadFile(path)
			noteText(string(text), pkg, note)
			return err
		case strings.HasSuffix(name, ".go"):
			return noteFile(path, pkg, note)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// noteFile notes the tables that the texts of a file write, and those that it copies rows into.
func noteFile(path, pkg string, note func(pkg, table string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				noteText(text, pkg, note)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "CopyFrom" && len(n.Args) > 1 {
				note(pkg, copiedInto(n.Args[1]))
			}
		}
		return true
	})
	return nil
}

// copiedInto returns the table of pgx.Identifier{"table"}.
func copiedInto(arg ast.Expr) (table string) {
	if lit, ok := arg.(*ast.CompositeLit); ok && len(lit.Elts) == 1 {
		if name, ok := lit.Elts[0].(*ast.BasicLit); ok {
			table, _ = strconv.Unquote(name.Value)
		}
	}
	return table
}

func noteText(text, pkg string, note func(pkg, table string)) {
	for _, m := range written.FindAllStringSubmatch(text, -1) {
		if !slices.Contains([]string{"FOR", "KEY", "DO", "ON"}, m[1]) { // SELECT … FOR UPDATE
			note(pkg, m[3])
		}
	}
}
