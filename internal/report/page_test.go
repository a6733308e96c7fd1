package report_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/docs"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/report"
	journaltest "quittance/test/journal"
)

var update = flag.Bool("update", false, "write the reports of docs/analysts*.md and the tables of docs/views*.md anew")

// guide is a guide for analysts in a language.
type guide struct {
	path, title string
	// about is what its parts are of: sql or columns.
	about string
	// heads are the titles of a table of columns.
	heads string
	// translated returns a comment of ClickHouse in the language.
	translated func(string) string
}

// The guides.
const (
	page        = "../../docs/analysts.md"
	frenchPage  = "../../docs/analysts.fr.md"
	viewsPage   = "../../docs/views.md"
	frenchViews = "../../docs/views.fr.md"
)

// migrated returns a migrated database.
func migrated(t *testing.T) driver.Conn {
	t.Helper()
	addr, database := journaltest.Migrated(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// part is a part of the page that the test writes.
var part = regexp.MustCompile(`(?s)<!-- (sql|columns): (\S+) -->\n(.*?)<!-- end -->\n`)

// The pages show the reports as they are and every column of every view as ClickHouse
// describes it; the French one in French.
func TestPage(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	text, err := os.ReadFile("../../docs/columns.fr.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts, err := docs.ReadPhrases(text)
	if err != nil {
		t.Fatal(err)
	}
	const heads, frenchHeads = "Column | Type | Meaning", "Colonne | Type | Signification"
	same := func(s string) string { return s }
	for _, g := range []guide{
		{page, "Reports and analysis", "sql", heads, same},
		{frenchPage, "États et analyse", "sql", frenchHeads, texts.French},
		{viewsPage, "Columns of the views", "columns", heads, same},
		{frenchViews, "Colonnes des vues", "columns", frenchHeads, texts.French},
	} {
		g.check(t, conn)
	}
	if err := texts.Check(); err != nil {
		t.Errorf("docs/columns.fr.yaml: %v", err)
	}
}

// check compares the page with the reports and with the views, or writes it.
func (g guide) check(t *testing.T, conn driver.Conn) {
	t.Helper()
	text, err := os.ReadFile(g.path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# "+g.title+"\n") {
		t.Errorf("%s has not the title %q", g.path, g.title)
	}
	shown := map[string]bool{}
	want := part.ReplaceAllStringFunc(string(text), func(found string) string {
		m := part.FindStringSubmatch(found)
		kind, name := m[1], m[2]
		shown[kind+" "+name] = true
		body := ""
		if kind == "sql" {
			body = sql(t, name)
		} else {
			body = g.columns(t, conn, name)
		}
		return fmt.Sprintf("<!-- %s: %s -->\n%s<!-- end -->\n", kind, name, body)
	})
	wanted := views(t, conn)
	if g.about == "sql" {
		wanted = nil
		for _, r := range report.All() {
			wanted = append(wanted, r.Name)
		}
	}
	for _, name := range wanted {
		if !shown[g.about+" "+name] {
			t.Errorf("%s does not have the %s of %s", g.path, g.about, name)
		}
	}
	if string(text) == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the reports or from ClickHouse's schema: run `go test ./internal/report -run TestPage -update`", g.path)
	}
	if err := os.WriteFile(g.path, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sql returns a report as a block of Markdown.
func sql(t *testing.T, name string) string {
	t.Helper()
	for _, r := range report.All() {
		if r.Name == name {
			return "```sql\n" + strings.TrimSuffix(r.SQL, "\n") + "\n```\n"
		}
	}
	t.Fatalf("%s shows the report %s, which does not exist", page, name)
	return ""
}

// declared is a column in the statement that creates a view.
var declared = regexp.MustCompile("`(\\w+)` ([^`]+?) COMMENT '((?:[^'\\\\]|\\\\.)*)'")

// columns returns the description of a view as Markdown. ClickHouse has no list of the columns of a view
// with parameters.
func (g guide) columns(t *testing.T, conn driver.Conn, view string) string {
	t.Helper()
	var about string
	if err := conn.QueryRow(t.Context(), "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = ?", view).Scan(&about); err != nil {
		t.Fatalf("the view %s: %v", view, err)
	}
	type column struct {
		Name    string `ch:"name"`
		Type    string `ch:"type"`
		Comment string `ch:"comment"`
	}
	var list []column
	if err := conn.Select(t.Context(), &list, "SELECT name, type, comment FROM system.columns WHERE database = currentDatabase() AND table = ? ORDER BY position", view); err != nil {
		t.Fatalf("the columns of %s: %v", view, err)
	}
	if list == nil { // it has parameters
		var statement string
		if err := conn.QueryRow(t.Context(), "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = ?", view).Scan(&statement); err != nil {
			t.Fatalf("the view %s: %v", view, err)
		}
		for _, m := range declared.FindAllStringSubmatch(statement, -1) {
			list = append(list, column{m[1], m[2], strings.ReplaceAll(m[3], `\'`, "'")})
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| %s |\n|---|---|---|\n", strings.TrimSuffix(g.translated(strings.TrimSuffix(about, ".")+"."), "."), g.heads)
	for _, c := range list {
		kind := strings.ReplaceAll(c.Type, "LowCardinality(String)", "String") // for readers they are the same
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", c.Name, kind, g.translated(c.Comment))
	}
	return b.String()
}

// views returns the names of all views.
func views(t *testing.T, conn driver.Conn) (names []string) {
	t.Helper()
	var list []struct {
		Name string `ch:"name"`
	}
	if err := conn.Select(t.Context(), &list, "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View' ORDER BY name"); err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		names = append(names, v.Name)
	}
	return names
}

// A report of an agency reads the rows of that agency, and of money those of the month.
func TestReportsReadLittle(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	fill(t, conn)
	for _, r := range report.All() {
		plan := explain(t, conn, r, report.Params{Month: november, Agency: "impots", Live: true})
		if !regexp.MustCompile(`PrimaryKey\s+Keys:\s+tenant_id\s`).MatchString(plan) {
			t.Errorf("%s of an agency is planned as\n%s", r.Name, plan)
		}
		if r.Name == "open-cases" && strings.Contains(plan, ".journal)") {
			t.Errorf("%s reads the journal:\n%s", r.Name, plan)
		}
		month := map[string]string{"undelivered": "occurred_at", "open-cases": "", "reconciliation": "day", "breaks": "", "operator-fees": "local_day"}
		column, other := month[r.Name]
		if !other {
			column = "local_date"
		}
		for _, agency := range []string{"impots", ""} {
			plan := explain(t, conn, r, report.Params{Month: november, Agency: agency, Live: true})
			if column != "" && !regexp.MustCompile(`Min-?Max\s+Keys:\s+`+column+`\s`).MatchString(plan) {
				t.Errorf("%s of the agency %q is planned as\n%s", r.Name, agency, plan)
			}
		}
	}
}

var november = time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC) // the last minute: only the month counts

// explain returns ClickHouse's plan of a report.
func explain(t *testing.T, conn driver.Conn, r report.Report, p report.Params) string {
	t.Helper()
	r.SQL = "SELECT explain FROM (EXPLAIN indexes = 1, projections = 0 " + r.SQL + ")"
	table, err := r.Run(t.Context(), conn, p)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, row := range table.Rows {
		fmt.Fprintln(&b, strings.NewReplacer("│", " ", "├", " ", "└", " ", "─", " ").Replace(fmt.Sprint(row[0]))) // without the lines of the tree
	}
	return b.String()
}

// fill makes rows of two agencies in two months, so that there is something to leave out.
func fill(t *testing.T, conn driver.Conn) {
	t.Helper()
	var names []journal.Name
	var receipts []journal.Receipt
	var entries []journal.Entry
	for n, slug := range []string{"impots", "douanes"} {
		agency := fmt.Sprintf("018f0000-0000-7000-8000-00000000000%d", n)
		names = append(names, journal.Name{Kind: journal.NameAgency, ID: agency, TenantID: agency, Name: slug}, journal.Name{Kind: journal.NameSlug, ID: agency, TenantID: agency, Name: slug})
		for i := range 20_000 {
			at := november.AddDate(0, -(i % 2), -3)
			day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
			id := fmt.Sprint(agency, i)
			receipts = append(receipts, journal.Receipt{
				ID: journal.ReceiptID(id, 1), Movement: journal.MovementCompleted, OccurredAt: at, LocalDate: day, ApprovedOn: day, TenantID: agency, Livemode: true,
				SessionID: id, Currency: "XAF", Amount: 100, TotalAmount: 100,
			})
			entries = append(entries,
				journal.Entry{ID: "evt" + id, Type: journal.EntryTypeEvent, OccurredAt: at, TenantID: agency, Livemode: true, SessionID: id, Sequence: 1, Event: "checkout.created"},
				journal.Entry{ID: "cse" + id, Type: journal.EntryTypeEvent, OccurredAt: at, TenantID: agency, Livemode: true, SessionID: id, Sequence: 2, Event: "case.opened", Detail: map[string]string{"case_id": "case_" + id, "case_kind": "refund_request"}},
				journal.Entry{ID: "dlv" + id, Type: journal.EntryTypeDelivery, OccurredAt: at, TenantID: agency, Livemode: true, SessionID: id, DeliveryID: id, Outcome: "delivered"})
		}
	}
	store := journal.NewStore(conn)
	fillAccounts(t, store)
	_, err := store.PutNames(t.Context(), names)
	if err := errors.Join(err, store.Insert(t.Context(), entries), store.InsertReceipts(t.Context(), receipts)); err != nil {
		t.Fatal(err)
	}
}

// fillAccounts makes rows of the matcher of the same agencies and months.
func fillAccounts(t *testing.T, store *journal.Store) {
	t.Helper()
	var totals []journal.DayTotal
	var breaks []journal.Finding
	var lines []journal.Line
	var expected []journal.Expected
	for i := range 200 {
		agency := fmt.Sprintf("018f0000-0000-7000-8000-00000000000%d", i%2)
		day := time.Date(2026, time.November-time.Month(i/2%2), 1+i%28, 0, 0, 0, 0, time.UTC)
		totals = append(totals, journal.DayTotal{Day: day, TenantID: agency, Livemode: true, Account: "mtn", Currency: "XAF", At: day})
		breaks = append(breaks, journal.Finding{
			ID: fmt.Sprint(i), State: journal.FindingOpen, Type: journal.FindingBreak, Day: day, TenantID: agency, Livemode: true, Account: "mtn", Currency: "XAF", Part: 1, Parts: 1, At: day, SourceOffset: int64(i),
		})
		lines = append(lines, journal.Line{ID: fmt.Sprint("mtn/", i), LocalDay: day, TenantID: agency, Livemode: true, Account: "mtn", ImportedAt: day, Occurrence: 1, Kind: "payment", Currency: "XAF"})
		expected = append(expected, journal.Expected{
			ID: journal.ExpectedID(journal.ExpectedReceived, fmt.Sprint(i)), Kind: journal.ExpectedReceived, State: journal.ExpectedCompleted, ApprovedAt: day, LocalDate: day, OccurredAt: day,
			TenantID: agency, Livemode: true, OfferID: "momo", Account: "a", Currency: "XAF", SourceTopic: "checkout.events", Version: journal.ExpectedVersion(0),
		})
	}
	err := errors.Join(store.InsertDayTotals(t.Context(), totals), store.InsertFindings(t.Context(), breaks), store.InsertLines(t.Context(), lines), store.InsertExpected(t.Context(), expected))
	if err != nil {
		t.Fatal(err)
	}
}
