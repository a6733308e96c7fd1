package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quittance/internal/citizens"
	"quittance/internal/personal"
	"quittance/internal/postgres"
	"quittance/test/servers"
)

// granted is a database with the groups and rights of all clients.
func granted(t *testing.T) string {
	t.Helper()
	dsn := servers.Migrated(t)
	servers.Grant(t, dsn, strings.Join(Statements(Options{}, "public"), "\n"))
	return dsn
}

func open(t *testing.T, dsn string) *postgres.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// A client with its rights passes the check at start. Without any of them it is refused, by an error that names the
// user, the right and the command that mends it.
func TestMissingRightInPostgresIsNamed(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	owner := open(t, dsn)
	for _, c := range DatabaseClients(Options{}) {
		if len(c.Rows) == 0 {
			continue
		}
		s := Settings{Program: "quittance"}
		pool := open(t, servers.Login(t, dsn, c.Name))
		if err := s.CheckDatabase(t.Context(), pool, c.Name); err != nil {
			t.Fatalf("%s with its rights: %v", c.Name, err)
		}
		change := func(sql string) {
			t.Helper()
			if _, err := owner.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		for _, r := range c.Rows {
			verb, on := r.Verb, r.On
			if r.Column != "" {
				verb += " (" + r.Column + ")"
			}
			if r.Verb == "EXECUTE" {
				on = "FUNCTION " + on
			}
			change(fmt.Sprintf("REVOKE %s ON %s FROM quittance_%s", verb, on, c.Name))
			err := s.CheckDatabase(t.Context(), pool, c.Name)
			if !errors.Is(err, postgres.ErrRights) || !strings.Contains(err.Error(), "the user test_"+c.Name+" lacks "+r.String()) ||
				!strings.Contains(err.Error(), "`quittance grants "+c.Name+"`") || comes(err) {
				t.Errorf("%s without %v: %v", c.Name, r, err)
			}
			change(fmt.Sprintf("GRANT %s ON %s TO quittance_%s", verb, on, c.Name))
		}
	}
}

// In production a user that may do more than its role needs is refused, also when it has set another role for its
// session. Developers may have it.
func TestMoreRightsThanNeededAreRefused(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	admin := open(t, dsn)
	s := Settings{Program: "quittance"}
	refused := func(what string, pool *postgres.Pool, want string) {
		t.Helper()
		err := s.CheckDatabase(t.Context(), pool, "ingress")
		if !errors.Is(err, postgres.ErrExcess) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "`quittance grants ingress`") || comes(err) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		developer := Settings{Program: "quittance-dev", Options: Options{Loopback: true}}
		if err := developer.CheckDatabase(t.Context(), pool, "ingress"); err != nil {
			t.Errorf("%s of a developer: %v", what, err)
		}
	}
	refused("a superuser", admin, "is a superuser")
	refused("a superuser as its group", open(t, dsn+"&options=-c%20role%3Dquittance_ingress"), "is a superuser")

	pool := open(t, servers.Login(t, dsn, "ingress"))
	for sql, want := range map[string]string{
		"INSERT ON staff":                       "INSERT of staff",
		"UPDATE ON sessions":                    "UPDATE of sessions",
		"UPDATE (hash) ON api_keys":             "UPDATE of api_keys (hash)",
		"TRUNCATE ON tills":                     "TRUNCATE of tills",
		"DELETE ON audit":                       "DELETE of audit",
		"EXECUTE ON FUNCTION empty_readmodel()": "EXECUTE of empty_readmodel()",
		"CREATE ON SCHEMA public":               "may create in the schema public",
		"TRIGGER ON statements":                 "TRIGGER of statements",
	} {
		if _, err := admin.Exec(t.Context(), "GRANT "+sql+" TO quittance_ingress"); err != nil {
			t.Fatal(err)
		}
		refused(sql, pool, want)
		servers.Grant(t, dsn, strings.Join(postgres.Grants("public", "quittance_ingress", databaseClient(Options{}, "ingress").Rows, true), "\n"))
		if err := s.CheckDatabase(t.Context(), pool, "ingress"); err != nil {
			t.Errorf("after the rights were given anew: %v", err)
		}
	}
	// The owner is no role, also while it acts as one.
	servers.Login(t, dsn, "ingress")
	refused("the owner", open(t, ownerOf(t, dsn)), "owns the table")
}

// ownerOf returns the address of a login that is a member of the owner and of ingress.
func ownerOf(t *testing.T, dsn string) string {
	t.Helper()
	as := servers.Login(t, dsn, "migrate")
	servers.Grant(t, dsn, `DO $$ BEGIN GRANT quittance_ingress TO test_migrate; EXCEPTION WHEN unique_violation THEN NULL; END $$`)
	return as + "&options=-c%20role%3Dquittance_ingress"
}

// What whoever takes over a role, or the login of a person, may not do.
func TestAttacksOnPostgres(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	every := slices.DeleteFunc(DatabaseClients(Options{}), func(c DatabaseClient) bool { return len(c.Rows) == 0 })
	all := make([]string, len(every))
	for i, c := range every {
		all[i] = c.Name
	}
	but := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
	}
	attacks := map[string][]string{
		// nobody but the owner
		`DELETE FROM audit`:                        all,
		`UPDATE audit SET actor = 'somebody else'`: all,
		`TRUNCATE audit`:                           all,
		`TRUNCATE sessions`:                        all,
		`DELETE FROM sessions`:                     all,
		`DROP TABLE statements`:                    all,
		`ALTER TABLE staff DISABLE TRIGGER ALL`:    all,
		`CREATE TABLE mine (a int)`:                all,
		`CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'`: all,
		`UPDATE registry_revision SET revision = 0`:                     all,
		`DELETE FROM goose_db_version`:                                  all,
		`DELETE FROM statement_ledgers`:                                 all,
		`SELECT * FROM pg_authid`:                                       all,
		`SET ROLE quittance_migrate`:                                    all,
		`COPY staff TO PROGRAM 'true'`:                                  all,
		// the registry, keys and staff
		`UPDATE connector_accounts SET base_url = 'https://attacker.example'`: but("operator"),
		`UPDATE payout_modes SET account = 'airtel_payout'`:                   but("operator"),
		`UPDATE webhook_endpoints SET removed_at = now()`:                     but("operator"),
		`INSERT INTO api_keys (id) VALUES (gen_random_uuid())`:                but("operator"),
		`UPDATE api_keys SET revoked_at = NULL`:                               but("operator"),
		// cases writes people who verify with its key alone
		`UPDATE staff SET approved_at = now()`:                     but("operator", "cases"),
		`INSERT INTO staff_roles (staff_id) VALUES (NULL)`:         but("operator", "cases"),
		`INSERT INTO staff_requests (id) VALUES (NULL)`:            but("operator", "office"),
		`UPDATE staff_requests SET body = '{}'`:                    but("operator"),
		`UPDATE staff_issuers SET outage_until = 'infinity'`:       but("operator"),
		`DELETE FROM staff_issuers`:                                but("operator"),
		`INSERT INTO receipt_keys (id) VALUES (gen_random_uuid())`: but("operator"),
		`UPDATE statement_accounts SET iban = NULL`:                but("operator"),
		// what is known of payments
		`INSERT INTO sessions (id) VALUES ('x')`:               but("readmodel", "operator"),
		`UPDATE sessions SET status = 'completed'`:             but("readmodel", "operator"),
		`UPDATE readmodel_positions SET next = 0`:              but("readmodel", "operator"),
		`UPDATE delivery_positions SET next_offset = 0`:        but("schedule"),
		`UPDATE case_positions SET next = 0`:                   but("cases"),
		`SELECT empty_readmodel()`:                             but("operator"),
		`SELECT drop_delivery_day('2026-01-01')`:               but("schedule"),
		`UPDATE case_proposals SET decision = 'approve'`:       but("operator", "office"),
		`INSERT INTO case_proposals (case_id) VALUES ('x')`:    but("operator", "office"),
		`UPDATE cases SET resolution = 'refund'`:               but("cases", "operator"),
		`INSERT INTO statement_withdrawals (id) VALUES (NULL)`: but("operator", "office"),
		`INSERT INTO statement_exits (id) VALUES (NULL)`:       but("operator", "office"),
		// the pages decide about files, and write no import, no ledger and no key of a file
		`UPDATE statement_imports SET state = 'accepted'`:                                                       but("operator"),
		`UPDATE statement_ledgers SET mark = NULL`:                                                              but("operator"),
		`INSERT INTO statements DEFAULT VALUES`:                                                                 but("operator"),
		`UPDATE statement_exits SET reason = 'x'`:                                                               but("operator"),
		`UPDATE statement_withdrawals SET from_offset = 0`:                                                      but("operator"),
		`INSERT INTO statement_withdrawals (id, state, partition, from_offset) VALUES (NULL, 'approved', 0, 0)`: but("operator"),
		`INSERT INTO statement_withdrawals (id, actor) VALUES (NULL, '{}')`:                                     but("operator"),
		`INSERT INTO statement_exits (id, verdict, decided_signature) VALUES (NULL, 'released', '')`:            but("operator"),
		`INSERT INTO statement_original_requests (id, reading) VALUES (NULL, '')`:                               but("operator"),
		`UPDATE statement_original_requests SET reading = NULL`:                                                 but("operator", "cases"),
		`UPDATE statement_originals SET sealed = NULL`:                                                          but("operator"),
		`SELECT lock_statement_import(gen_random_uuid())`:                                                       but("operator", "office"),
		`SELECT decide_statement_import(NULL, NULL, '', '', now())`:                                             but("operator", "office"),
		// jobs: whoever asks for one does not say how far it is, and whoever carries it out does not say what it is
		`UPDATE jobs SET conditions = '{}'`:                              but("operator"),
		`UPDATE jobs SET done = 0`:                                       but("operator", "schedule"),
		`INSERT INTO jobs (id, state) VALUES (NULL, 'running')`:          all,
		`DELETE FROM jobs`:                                               but("schedule"),
		`INSERT INTO job_rows (job_id, n, subject) VALUES (NULL, 1, '')`: but("operator", "office"),
		`UPDATE job_rows SET subject = 'x'`:                              all,
		`UPDATE job_rows SET state = 'waiting'`:                          but("schedule"),
		`DELETE FROM job_rows`:                                           all,
		`DELETE FROM till_movements`:                                     all,
		`UPDATE till_movements SET amount = 0`:                           all,
		// the clean-up adds nothing
		`INSERT INTO citizen_sessions DEFAULT VALUES`: but("ingress"),
		`INSERT INTO clerk_sessions DEFAULT VALUES`:   but("ingress"),
		`INSERT INTO citizen_links DEFAULT VALUES`:    but("ingress"),
	}
	for _, name := range all {
		pool := open(t, servers.Login(t, dsn, name))
		for _, sql := range slices.Sorted(maps.Keys(attacks)) {
			if !slices.Contains(attacks[sql], name) {
				continue
			}
			_, err := pool.Exec(t.Context(), sql)
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code != "42501" { // insufficient_privilege
				t.Errorf("%s: %s: %v", name, sql, err)
			}
		}
	}
}

// A login that is in no group is told so when it first reads something.
func TestLoginWithoutGroupIsTold(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	servers.Grant(t, dsn, "DO $$ BEGIN CREATE ROLE quittance_nobody NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	s := Settings{Program: "quittance", Postgres: servers.Login(t, dsn, "nobody")}
	if _, err := s.OpenPostgres(t.Context()); !errors.Is(err, postgres.ErrRights) || !strings.Contains(err.Error(), "`quittance grants`") || comes(err) {
		t.Errorf("it is told %v", err)
	}
}

// The clean-up has the rights that all its deletions need, and deletes what is old enough alone.
func TestTidyWithItsRights(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	admin := open(t, dsn)
	now := time.Now().UTC()
	for _, at := range []time.Time{now.Add(-personal.KeptAtMost - time.Hour), now} {
		if _, err := admin.Exec(t.Context(), `INSERT INTO personal_keys (id, session_id, sealed, created_at) VALUES (gen_random_uuid(), 'cs', 'sealed', $1)`, at); err != nil {
			t.Fatal(err)
		}
	}
	// Of two lines of batches, both older than any session, the time of one is over.
	for _, until := range []time.Time{now.Add(-time.Hour), now.Add(personal.LineKept)} {
		if _, err := admin.Exec(t.Context(), `INSERT INTO personal_keys (id, session_id, sealed, created_at, keep_until) VALUES (gen_random_uuid(), 'dsb', 'sealed', $1, $2)`, now.Add(-2*personal.KeptAtMost), until); err != nil {
			t.Fatal(err)
		}
	}
	b := &Base{Pool: open(t, servers.Login(t, dsn, "tidy"))}
	for _, step := range b.tidySteps() {
		if err := step.do(t.Context(), now); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
	}
	if _, err := citizens.ReadState(t.Context(), b.Pool, now, 100, 100); err != nil {
		t.Errorf("what alerts watch: %v", err)
	}
	var kept int
	if err := admin.QueryRow(t.Context(), `SELECT count(*) FROM personal_keys`).Scan(&kept); err != nil || kept != 2 {
		t.Errorf("%d keys of personal data are left, %v", kept, err)
	}
}

// The owner of an `up` lost its rights on its own tables: developers' rights were listed for it too, and all others
// were taken away.
func TestOwnerHasNoList(t *testing.T) {
	t.Parallel()
	clock := func(context.Context, *postgres.Pool, *slog.Logger) (Clock, error) { return nil, nil }
	for _, o := range []Options{{}, {Clock: clock}} {
		if c := databaseClient(o, ClientMigrate); !c.Owner || len(c.Rows) > 0 || len(c.Journal) > 0 {
			t.Errorf("the owner has a list of %d rights", len(c.Rows)+len(c.Journal))
		}
	}
}

// A job that has ended does not begin again, and a row that was carried out is not carried out once more, by whoever has the rights of
// the pages, of commands or of the runner: their states are not signed.
func TestJobsDoNotGoBack(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	admin := open(t, dsn)
	const job = "018f0000-0000-7000-8000-0000000000b1"
	for _, c := range []struct{ role, is, attack string }{
		{"schedule", "done", `UPDATE jobs SET state = 'running'`},
		{"office", "stopped", `UPDATE jobs SET state = 'running'`},
		{"operator", "refused", `UPDATE jobs SET state = 'running'`},
		{"schedule", "running", `UPDATE jobs SET state = 'proposed'`},
		{"office", "proposed", `UPDATE jobs SET state = 'prepared'`},
		{"operator", "running", `UPDATE jobs SET id = gen_random_uuid()`},
		{"schedule", "running", `UPDATE job_rows SET state = 'waiting'`},
		{"schedule", "running", `UPDATE job_rows SET code = 'x'`},
	} {
		for _, sql := range []string{
			`DELETE FROM jobs`,
			`INSERT INTO jobs (id, kind, conditions, ends_at, total, rows_digest, maker_kind, maker, maker_name, maker_group, maker_origin, made_at, state) VALUES ('` + job + `', 'k', '{}', now(), 1, '', 'person', 'm', 'M', '', '', now(), '` + c.is + `')`,
			`INSERT INTO job_rows (job_id, n, subject, state) VALUES ('` + job + `', 1, 's', 'done')`,
		} {
			if _, err := admin.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		_, err := open(t, servers.Login(t, dsn, c.role)).Exec(t.Context(), c.attack)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: %s of one that is %s: %v", c.role, c.attack, c.is, err)
		}
	}
}

// A decision about a file that was carried out, rejected or taken back was set back by whoever has the rights of the pages, and its
// signatures, which hold for a day, had it carried out again. The state goes forward only, and no row takes the place of another one.
func TestDecisionsAboutFilesDoNotGoBack(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	admin := open(t, dsn)
	const file, one, two = "018f0000-0000-7000-8000-0000000000f1", "018f0000-0000-7000-8000-0000000000a1", "018f0000-0000-7000-8000-0000000000a2"
	for _, sql := range []string{
		`ALTER TABLE statement_imports DROP CONSTRAINT statement_imports_agency_id_live_code_fkey`, // the account is none of this test
		`INSERT INTO staff (id, name, folded, created_at) VALUES ('` + one + `', 'One', 'one', now()), ('` + two + `', 'Two', 'two', now())`,
		`INSERT INTO statement_imports (id, agency_id, live, code, state, digest, size, profile, lines, partition, from_offset, plan, actor, imported_at)
			VALUES ('` + file + `', '` + file + `', true, 'bank', 'accepted', 'd', 1, 'p', 1, 0, 0, '{}', 'a', now())`,
		`INSERT INTO statement_originals (id, sealed) VALUES ('` + file + `', '')`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exits := `INSERT INTO statement_exits (id, import_id, verdict, state, reason, requested_by, requested_at, decided_by, decided_at) VALUES (gen_random_uuid(), '` + file + `', '%s', '%s', 'r', '` + one + `', now(), '` + two + `', now()) RETURNING id::text`
	withdrawals := `INSERT INTO statement_withdrawals (id, import_id, state, reason, requested_by, requested_at, decided_by, decided_at, partition, from_offset, actor) VALUES (gen_random_uuid(), '` + file + `', '%[2]s', 'r', '` + one + `', now(), '` + two + `', now(), 0, 0, '{}') RETURNING id::text`
	requests := `INSERT INTO statement_original_requests (id, import_id, reason, requested_by, requested_at, approved_by, approved_at) VALUES (gen_random_uuid(), '` + file + `', 'r', '` + one + `', now(), '` + two + `', now()) RETURNING id::text -- %s %s`
	for _, role := range []string{"office", "operator"} {
		pool := open(t, servers.Login(t, dsn, role))
		for _, c := range []struct {
			insert, verdict, state, attack string
			refused                        bool
		}{
			{exits, "released", "agreed", `UPDATE statement_exits SET state = 'approved' WHERE id = $1`, false}, // carried out
			{exits, "released", "approved", `UPDATE statement_exits SET state = 'agreed' WHERE id = $1`, true},  // and again
			{exits, "released", "rejected", `UPDATE statement_exits SET state = 'approved' WHERE id = $1`, true},
			{exits, "released", "approved", `UPDATE statement_exits SET id = gen_random_uuid() WHERE id = $1`, true},
			{exits, "dismissed", "approved", `UPDATE statement_exits SET state = 'rejected' WHERE id = $1`, false}, // taken back
			{exits, "dismissed", "rejected", `UPDATE statement_exits SET state = 'approved' WHERE id = $1`, true},  // dismissed after all
			{exits, "dismissed", "approved", `UPDATE statement_exits SET verdict = 'released' WHERE id = $1`, true},
			{exits, "released", "approved", `INSERT INTO statement_exits (id, import_id, verdict, state, reason, requested_by, requested_at, decided_by, decided_at)
				SELECT gen_random_uuid(), import_id, verdict, 'agreed', reason, requested_by, requested_at, decided_by, decided_at FROM statement_exits WHERE id = $1`, true},
			{withdrawals, "", "approved", `UPDATE statement_withdrawals SET state = 'agreed' WHERE id = $1`, false}, // interrupted
			{withdrawals, "", "rejected", `UPDATE statement_withdrawals SET state = 'agreed' WHERE id = $1`, true},
			{withdrawals, "", "done", `UPDATE statement_withdrawals SET state = 'agreed' WHERE id = $1`, true},
			{requests, "", "", `UPDATE statement_original_requests SET approved_at = approved_at + interval '1 day' WHERE id = $1`, true},
		} {
			var id string
			if err := admin.QueryRow(t.Context(), fmt.Sprintf(c.insert, c.verdict, c.state)).Scan(&id); err != nil {
				t.Fatalf("%s %s: %v", c.verdict, c.state, err)
			}
			_, err := pool.Exec(t.Context(), c.attack, id)
			var pg *pgconn.PgError
			switch refused := errors.As(err, &pg) && pg.Code == "42501"; { // by the trigger, or since the role has no right on the column
			case c.refused && !refused:
				t.Errorf("%s: %s of %s %s: %v", role, c.attack, c.verdict, c.state, err)
			case !c.refused && err != nil:
				t.Errorf("%s: %s of %s %s: %v", role, c.attack, c.verdict, c.state, err)
			}
			for _, table := range []string{"statement_exits", "statement_withdrawals", "statement_original_requests"} {
				if _, err := admin.Exec(t.Context(), `DELETE FROM `+table); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
