package roles

import (
	"context"
	"errors"
	"strings"
	"testing"

	"quittance/dev/stack/chdb"
	"quittance/internal/clickhouse"
	"quittance/reconciliation"
	"quittance/test/servers"
)

// engine starts the ClickHouse engine on a folder with one user, who has what the statements give to nobody yet; all
// rights without statements.
func engine(t *testing.T, dir string, statements ...string) (conn clickhouse.Conn, stop func()) {
	t.Helper()
	users := ""
	if len(statements) > 0 {
		grants := ""
		for _, g := range statements {
			grants += "<query>" + g + "</query>"
		}
		users = `<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>
			<profile>default</profile><quota>default</quota><grants>` + grants + `</grants></default></users></clickhouse>`
	}
	s, err := chdb.Start(t.Context(), chdb.Config{Dir: dir, Users: users, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if conn, err = clickhouse.Open(t.Context(), "http://"+s.Addr()+"/default"); err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		_ = conn.Close()
		_ = s.Stop(context.WithoutCancel(t.Context()))
	}
}

// rightsOf returns the GRANT of a client without whom it is given to.
func rightsOf(c DatabaseClient, role string) string {
	statements := clickhouse.Grants("default", role, c.Journal, false)
	if c.Owner {
		statements = clickhouse.Owner("default", role)
	}
	grant, _, _ := strings.Cut(statements[1], " TO ")
	return grant
}

// Each client of ClickHouse passes the check with the rights that are printed for it, and no other client's: a right
// that is missing is named, and so is one that the client must not have.
func TestRightsInClickHouse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conn, stop := engine(t, dir, rightsOf(databaseClient(Options{}, ClientMigrate), "x"))
	if err := reconciliation.Migrate(t.Context(), conn); err != nil {
		t.Fatalf("the owner migrates: %v", err)
	}
	stop()
	s := Settings{Program: "quittance"}
	names := []string{"journal", "match", ClientOperator}
	for _, name := range names {
		conn, stop := engine(t, dir, rightsOf(databaseClient(Options{}, name), "x"))
		for _, other := range names {
			err := s.CheckJournal(t.Context(), conn, other)
			want := clickhouse.ErrRights
			if name == ClientOperator { // it has all that the others have
				want = clickhouse.ErrExcess
			}
			if name == ClientOperator && other == "journal" {
				want = nil // beside it only a note of what was written again
			}
			switch {
			case name == other && err != nil:
				t.Errorf("%s with its rights: %v", name, err)
			case name != other && !errors.Is(err, want):
				t.Errorf("%s with the rights of %s: %v", other, name, err)
			case err != nil && !strings.Contains(err.Error(), "`quittance grants "+other+" --server clickhouse`"):
				t.Errorf("%v does not say how to mend it", err)
			}
		}
		for _, attack := range []string{"TRUNCATE TABLE journal", "DROP TABLE journal", "ALTER TABLE journal DELETE WHERE 1", "CREATE USER mine", "ALTER TABLE journal ADD COLUMN mine String"} {
			if err := conn.Exec(t.Context(), attack); err == nil || !strings.Contains(err.Error(), "code: 497") {
				t.Errorf("%s: %s: %v", name, attack, err)
			}
		}
		err := conn.Exec(t.Context(), "INSERT INTO journal SELECT * FROM journal LIMIT 1")
		if (err == nil) != (name != "match") {
			t.Errorf("%s writes the journal: %v", name, err)
		}
		stop()
	}
	conn, stop = engine(t, dir) // all rights
	defer stop()
	if err := s.CheckJournal(t.Context(), conn, "journal"); !errors.Is(err, clickhouse.ErrExcess) || comes(err) {
		t.Errorf("a user with all rights: %v", err)
	}
	developer := Settings{Options: Options{Loopback: true}}
	if err := developer.CheckJournal(t.Context(), conn, "journal"); err != nil {
		t.Errorf("a developer with all rights: %v", err)
	}
}
