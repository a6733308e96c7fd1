package program

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/internal/statements"
	"quittance/test/backoffice"
	"quittance/test/servers"
)

// shell is the pages of staff beside the commands of the program, on the same databases.
type shell struct {
	*backoffice.World
	t *testing.T
}

// beside makes the pages, and sets the environment of commands that run beside them.
func beside(t *testing.T) *shell {
	t.Helper()
	w := backoffice.New(t)
	t.Setenv("QUITTANCE_POSTGRES", w.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", w.Keys.Reveal())
	t.Setenv("QUITTANCE_KAFKA", strings.Join(w.Kafka.Brokers, ","))
	t.Setenv("QUITTANCE_TOPIC_PREFIX", w.Kafka.Prefix)
	t.Setenv("QUITTANCE_SCHEMA_REGISTRY", servers.SchemaRegistry(t))
	t.Setenv("QUITTANCE_TEST_SERVERS", "") // of `make test`: the program refuses what is no setting
	t.Setenv("QUITTANCE_KAFKA_JVM", "")
	return &shell{w, t}
}

// split splits a command line as a shell does, as far as the pages quote.
func split(line string) (out []string) {
	for _, word := range regexp.MustCompile(`'(?:[^']|'\\'')*'|[^\s']+`).FindAllString(line, -1) {
		if strings.HasPrefix(word, "'") {
			word = strings.ReplaceAll(word[1:len(word)-1], `'\''`, "'")
		}
		out = append(out, word)
	}
	return out
}

// shown matches a command that a page shows.
var shown = regexp.MustCompile(`<code[^>]*>(quittance [^<]+)</code>`)

// commands returns the commands that a page shows.
func (s *shell) commands(b *backoffice.Browser, path string) (out []string) {
	s.t.Helper()
	a := b.Get(path)
	if a.Code != http.StatusOK {
		s.t.Errorf("%s: %d %s", path, a.Code, a.Header().Get("Location"))
	}
	for _, found := range shown.FindAllStringSubmatch(a.Body.String(), -1) {
		out = append(out, html.UnescapeString(found[1]))
	}
	return out
}

// runs runs a command line that a page has shown.
func (s *shell) runs(line string, fill ...string) (code int, said string) {
	args := split(strings.NewReplacer(fill...).Replace(line))[1:]
	code, out, errs := run(s.t, args...)
	return code, out + errs
}

// people adds people with the roles that see the pages, and returns their browsers.
func (s *shell) people() (lead, accountant *backoffice.Browser) {
	s.Add(s.t, "", []identity.Role{identity.RoleLead}, "Paul")
	s.Add(s.t, "impots", []identity.Role{identity.RoleAccountant}, "Anne")
	return s.Enter(s.t, "Paul"), s.Enter(s.t, "Anne")
}

// Every command that a page shows is one of the program: it runs as it is copied, and what only reads succeeds. Those with a word in
// capitals have one to fill in.
func TestShownCommandsRun(t *testing.T) {
	s := beside(t)
	lead, accountant := s.people()
	s.Add(t, "", []identity.Role{identity.RoleSecurityOfficer}, "Sara")
	officer := s.Enter(t, "Sara")
	imported := s.Import(t, backoffice.Statement(1, 0, 300, 200), statements.VerdictAccepted)
	record := "payments/" + sessions.Place(s.Paid.ID)
	seen := map[string]string{}
	for _, of := range []struct {
		browser *backoffice.Browser
		paths   []string
	}{
		{lead, []string{
			"/work", "/ops/payments", "/ops/payments?mode=test&order=ESSAI-1", "/ops/" + record, "/ops/cases", "/ops/cases?state=open", "/ops/cases/" + backoffice.LateCase, "/ops/endpoints", "/ops/endpoints/webhook/" + s.Endpoint,
			"/ops/deliveries", "/ops/deliveries?state=needs_operator", "/ops/jobs", "/ops/health", "/ops/imports", "/ops/imports/" + imported, "/ops/reports",
		}},
		{accountant, []string{
			"/agency/payments", "/agency/" + record, "/agency/cases", "/agency/deliveries", "/agency/jobs", "/agency/imports", "/agency/imports/" + imported, "/agency/reports", "/agency/batches",
		}},
		{officer, []string{"/people", "/people/" + s.IDs["Paul"], "/people/" + s.IDs["Paul"] + "/suspend", "/people/" + s.IDs["Paul"] + "/roles", "/admin/audit", "/passkeys"}},
	} {
		for _, path := range of.paths {
			for _, line := range s.commands(of.browser, path) {
				seen[line] = path
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(seen)) {
		if regexp.MustCompile(`\b[A-Z]{4,}\b`).MatchString(line) || !reads(line) {
			// It would change something: its help says that it exists, with these flags.
			line += " --help"
		}
		if code, said := s.runs(line); code == 2 || code != 0 && !tells(line) {
			t.Errorf("%s shows %q, which ends with %d: %s", seen[strings.TrimSuffix(line, " --help")], line, code, said)
		}
	}
	t.Logf("commands=%d", len(seen))
	if len(seen) < 20 {
		t.Errorf("the pages show %d commands: %q", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}

// reads reports whether a command changes nothing.
func reads(line string) bool {
	return slices.Contains([]string{"list", "show", "find", "passkeys", "invitations", "doctor", "report", "lines"}, nth(split(line), 2)) || slices.Contains([]string{"doctor", "report"}, nth(split(line), 1))
}

// tells reports whether a command ends with 1 when something is wrong or away, as ClickHouse is here.
func tells(line string) bool {
	return strings.HasPrefix(line, "quittance doctor") || strings.HasPrefix(line, "quittance report") || strings.HasPrefix(line, "quittance sessions find")
}

// nth returns a word of a line; empty if it has fewer.
func nth(of []string, n int) string {
	if n < len(of) {
		return of[n]
	}
	return ""
}

// A button and the command that is shown beside it leave the same row of the audit table, but for who did it from where.
func TestButtonsAndCommandsAreRecordedAlike(t *testing.T) {
	s := beside(t)
	lead, _ := s.people()
	endpoint, record := "/ops/endpoints/webhook/"+s.Endpoint, "/ops/payments/"+sessions.Place(s.Paid.ID)
	parked := func() {
		s.Exec(t, `UPDATE deliveries SET state = 'needs_operator', next_attempt_at = NULL WHERE delivery_id = $1`, s.Parked)
	}
	press := func(path string, fields url.Values) string {
		t.Helper()
		a := lead.Post(path, fields)
		if a.Code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
		at, _, _ := strings.Cut(a.Header().Get("Location"), "?")
		return at
	}
	prepared := func() string {
		return press("/ops/jobs", url.Values{"id": {uuid.NewString()}, "kind": {"webhook"}, "endpoint": {s.Endpoint}, "state": {"needs_operator"}})
	}
	job := ""
	for _, c := range []struct {
		action  string
		before  func()
		button  func()
		command func() string // as a page shows it
	}{
		{"delivery.retry", parked, func() { press(record+"/deliveries/"+s.Parked+"/retry", nil) }, func() string { return "quittance deliveries retry " + s.Parked }},
		{"destination.suspend", nil, func() { press(endpoint+"/suspend", nil) }, func() string { return s.of(lead, endpoint, "quittance endpoints suspend") }},
		{"destination.resume", func() { press(endpoint+"/suspend", nil) }, func() { press(endpoint+"/resume", nil) }, func() string { return s.of(lead, endpoint, "quittance endpoints resume") }},
		{"job.start", parked, func() { job = prepared(); press(job+"/start", nil) }, func() string { return s.of(lead, endpoint, "quittance jobs start") }},
		{"job.stop", func() { parked(); job = prepared(); press(job+"/start", nil) }, func() { press(job+"/stop", nil) }, func() string { return s.of(lead, job, "quittance jobs stop") }},
	} {
		t.Run(c.action, func(t *testing.T) {
			s.t = t
			var rows [2]string
			for n, do := range []func(){c.button, func() {
				line := c.command()
				if code, said := s.runs(line); code != 0 {
					t.Errorf("%q ends with %d: %s", line, code, said)
				}
			}} {
				if c.before != nil {
					c.before()
				}
				last := s.last()
				do()
				rows[n] = s.recorded(c.action, last)
				s.Exec(t, `UPDATE jobs SET state = 'stopped' WHERE state IN ('prepared', 'running')`)
				s.Exec(t, `UPDATE delivery_destinations SET suspended_at = NULL`)
			}
			if rows[0] != rows[1] || rows[0] == "" {
				t.Errorf("the button leaves\n%s\nthe command\n%s", rows[0], rows[1])
			}
		})
	}
}

// of returns the command that a page shows and that begins so.
func (s *shell) of(b *backoffice.Browser, path, begin string) string {
	s.t.Helper()
	all := s.commands(b, path)
	n := slices.IndexFunc(all, func(line string) bool { return strings.HasPrefix(line, begin) })
	if n < 0 {
		s.t.Fatalf("%s shows no command that begins with %q: %q", path, begin, all)
	}
	return all[n]
}

// last returns the number of the last row of the audit table.
func (s *shell) last() (n int64) {
	s.t.Helper()
	if err := s.Pool.QueryRow(s.t.Context(), `SELECT coalesce(max(id), 0) FROM audit`).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// recorded returns the rows of an action since a row, without who did it, when and from where, and without ids and times that
// differ each time.
func (s *shell) recorded(action string, since int64) string {
	s.t.Helper()
	rows, err := s.Pool.Query(s.t.Context(), `SELECT coalesce(agency_id::text, ''), subject, detail FROM audit WHERE action = $1 AND id > $2 ORDER BY id`, action, since)
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var agency, subject string
		var detail map[string]any
		if err := row.Scan(&agency, &subject, &detail); err != nil {
			return "", err
		}
		if _, err := uuid.Parse(subject); err == nil && subject != s.Endpoint {
			subject = "a job"
		}
		delete(detail, "ends_at") // the time at which it was prepared
		text, err := json.Marshal(detail)
		return fmt.Sprintf("agency %s subject %s %s", agency, subject, text), err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(found, "\n")
}
