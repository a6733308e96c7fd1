package grant

import (
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/clickhouse"
	"quittance/internal/postgres"
	"quittance/test/servers"
)

var update = flag.Bool("update", false, "write the tables of deploy/postgres/grants.md and deploy/clickhouse/grants.md anew")

const begin = "<!-- The rest is made by `go test ./cmd/internal/cli/grant -run TestGrantsDocuments -update`. -->\n"

// The documents have the rights that the roles check at start.
func TestGrantsDocuments(t *testing.T) {
	t.Parallel()
	for server, table := range map[string]func() string{serverPostgres: postgresDocument, serverClickHouse: clickhouseDocument} {
		file := "../../../../deploy/" + server + "/grants.md"
		clitest.Generated(t, file, begin, table(), *update, "go test ./cmd/internal/cli/grant -run TestGrantsDocuments -update")
	}
}

func quoted(names []string) string {
	return strings.Join(render.Mapped(names, func(name string) string { return "`" + name + "`" }), ", ")
}

func postgresDocument() string {
	var p render.Page
	for _, c := range roles.DatabaseClients(roles.Options{}) {
		switch {
		case c.Owner:
			p.Say("## %s\n\n%s.\n", c.Name, c.Short)
		case len(c.Rows) > 0:
			p.Say("## %s\n\n%s.\n\n| Tables, functions | Rights |\n|---|---|", c.Name, c.Short)
			for _, g := range postgres.Grouped(c.Rows) {
				p.Say("| %s | %s |", quoted(g.On), strings.Join(g.Verbs, ", "))
			}
			p.Say("")
		}
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}

func clickhouseDocument() string {
	var p render.Page
	for _, c := range roles.DatabaseClients(roles.Options{}) {
		switch {
		case c.Owner:
			p.Say("## %s\n\n%s.\n", c.Name, c.Short)
		case len(c.Journal) > 0:
			p.Say("## %s\n\n%s.\n\n| Tables | Rights |\n|---|---|", c.Name, c.Short)
			verbs := map[string][]string{}
			for _, r := range slices.SortedFunc(slices.Values(c.Journal), func(a, b clickhouse.Right) int { return strings.Compare(b.Verb, a.Verb) }) {
				if !slices.Contains(verbs[r.On], r.Verb) {
					verbs[r.On] = append(verbs[r.On], r.Verb)
				}
			}
			for _, of := range []string{"SELECT", "SELECT, INSERT", "INSERT"} {
				var names []string
				for on, v := range verbs {
					if strings.Join(v, ", ") == of {
						names = append(names, on)
					}
				}
				if slices.Sort(names); len(names) > 0 {
					p.Say("| %s | %s |", quoted(names), of)
				}
			}
			p.Say("")
		}
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}

// What the command prints can be run by psql on an empty database, before and after the migrations, and again. It takes
// away what is not listed, unless it keeps it. The owner owns all tables then, and migrates.
func TestGrantsRun(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	printed := func(args ...string) string {
		t.Helper()
		code, out, stderr := clitest.Run(t, Command(), append([]string{"grants"}, args...)...)
		if code != 0 {
			t.Fatalf("grants %v ends with %d: %s", args, code, stderr)
		}
		return out
	}
	servers.Grant(t, dsn, printed("migrate"))
	if err := postgres.Migrate(t.Context(), servers.Login(t, dsn, "migrate")); err != nil {
		t.Fatalf("migrations of the owner: %v", err)
	}
	servers.Grant(t, dsn, printed())
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	has := func(verb, table string) (is bool) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT has_table_privilege('quittance_tidy', $1, $2)`, table, verb).Scan(&is); err != nil {
			t.Fatal(err)
		}
		return is
	}
	if _, err := conn.Exec(t.Context(), `GRANT INSERT ON citizens TO quittance_tidy`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want bool
	}{{[]string{"--keep"}, true}, {nil, false}, {[]string{"tidy"}, false}} {
		servers.Grant(t, dsn, printed(c.args...))
		if !has("DELETE", "citizen_sessions") || has("INSERT", "citizens") != c.want {
			t.Errorf("after grants %v: the role may delete sessions: %t, may insert citizens: %t", c.args, has("DELETE", "citizen_sessions"), has("INSERT", "citizens"))
		}
	}
	var others int
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner <> 'quittance_migrate')
		+ (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner <> 'quittance_migrate'::regrole)`).Scan(&others); err != nil || others != 0 {
		t.Errorf("%d tables and functions have another owner, %v", others, err)
	}
	// An installation of before, whose tables belong to the user that migrated.
	if _, err := conn.Exec(t.Context(), `REASSIGN OWNED BY quittance_migrate TO CURRENT_USER`); err != nil {
		t.Fatal(err)
	}
	servers.Grant(t, dsn, printed())
	if err := postgres.Migrate(t.Context(), servers.Login(t, dsn, "migrate")); err != nil {
		t.Errorf("migrations of the owner of tables that it was given: %v", err)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	code, out, _ := clitest.Run(t, Command(), "grants", "ingress", "--prefix", "pay_", "--schema", "money")
	for _, want := range []string{
		"CREATE ROLE pay_ingress NOLOGIN;", "REVOKE ALL ON ALL TABLES IN SCHEMA money FROM pay_ingress;",
		"GRANT SELECT, UPDATE (last_used_at) ON money.api_keys TO pay_ingress;", "GRANT INSERT, SELECT ON money.audit",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("grants ends with %d and prints\n%s\nwithout %s", code, out, want)
		}
	}
	code, out, _ = clitest.Run(t, Command(), "grants", "journal", "--server", "clickhouse", "--database", "money")
	for _, want := range []string{"CREATE ROLE IF NOT EXISTS `quittance_journal`;", "SELECT, INSERT ON `money`.`journal`", " TO `quittance_journal` WITH REPLACE OPTION;"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("grants ends with %d and prints\n%s\nwithout %s", code, out, want)
		}
	}
	code, out, _ = clitest.Run(t, Command(), "grants", "cases", "--json")
	var rights []map[string]string
	if err := json.Unmarshal([]byte(out), &rights); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	if !slices.ContainsFunc(rights, func(r map[string]string) bool {
		return r["group"] == "quittance_cases" && r["verb"] == "UPDATE" && r["of"] == "public.case_proposals" && r["column"] == "finished_at"
	}) {
		t.Errorf("grants --json prints\n%s", out)
	}
	for args, want := range map[string]string{
		"grants erpp":                      `no role is called "erpp"; there are ingress,`,
		"grants --prefix Quittance":        "--prefix \"Quittance\": must be lower-case letters",
		"grants --schema a;DROP":           "--schema",
		"grants --server oracle":           "--server: must be postgres or clickhouse",
		"grants checkout":                  "",
		"grants migrate --server postgres": "",
	} {
		if code, _, stderr := clitest.Run(t, Command(), strings.Fields(args)...); (code == 2) != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("%s ends with %d and says %s", args, code, stderr)
		}
	}
}

// Who writes the tables that decide where money and secrets go, whom we believe, and what is known of payments. A new
// writer is a decision.
func TestFewWriteWhatDecides(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"agencies": "operator", "connector_accounts": "operator", "payout_modes": "operator", "replaced_accounts": "operator", "erp_settings": "operator",
		"webhook_endpoints": "operator", "webhook_secrets": "operator", "statement_accounts": "operator", "applications": "operator",
		"staff": "cases operator", "staff_contacts": "cases operator", "clerks": "operator", "receipt_keys": "operator", "cashin_pairs": "operator",
		"staff_issuers": "operator", "api_keys": "ingress(last_used_at) operator", "staff_requests": "cases(args) cases(code) cases(done_at) cases(signature) cases(state) office office(signature) operator",
		"staff_roles": "cases operator", "staff_changes": "cases operator", "staff_passkeys": "cases office(last_used_at) office(sign_count) operator",
		"sessions": "operator readmodel", "session_events": "operator readmodel", "readmodel_positions": "operator readmodel",
		"delivery_positions": "schedule", "case_positions": "cases", "cases": "cases office(opened_by) operator",
		"audit": "cases ingress notify office operator schedule", "tills": "ingress", "registry_revision": "",
	}
	for table, writers := range want {
		var got []string
		for _, c := range roles.DatabaseClients(roles.Options{}) {
			for _, r := range c.Rows {
				name := c.Name
				if r.Column != "" {
					name += "(" + r.Column + ")"
				}
				if r.On == table && r.Verb != "SELECT" && !slices.Contains(got, name) {
					got = append(got, name)
				}
				if table == "audit" && r.On == table && r.Verb != "SELECT" && r.Verb != "INSERT" {
					t.Errorf("%s may %v", c.Name, r)
				}
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != writers {
			t.Errorf("%s is written by %q, want %q", table, got, writers)
		}
	}
	for _, r := range roles.Table() {
		if r.Name != "tidy" {
			continue
		}
		for _, right := range r.Rows {
			if right.Verb != "SELECT" && right.Verb != "DELETE" {
				t.Errorf("tidy may %v", right)
			}
		}
	}
}
