package doctor_test

import (
	"strings"
	"testing"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/doctor"
	"quittance/test/servers"
)

// Commands failed now and then with "prepared statement already exists", because PgBouncer was
// between them and Postgres, and doctor found the database well.
func TestDoctorNamesAPooler(t *testing.T) {
	t.Parallel()
	at := servers.TransactionPooler(t, servers.Postgres(t), servers.PoolerUsedLast)
	code, out, _ := clitest.Run(t, doctor.Command(nil), "doctor", "readmodel", "--kafka", "127.0.0.1:1", "--schema-registry", "http://127.0.0.1:1", "--postgres", at)
	if want := "FAIL  postgres         a pooler in transaction mode is between here and Postgres"; code == 0 || !strings.Contains(out, want) {
		t.Errorf("it ends with %d and says\n%s\nwant %q", code, out, want)
	}
}
