package doctor_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/doctor"
	"quittance/cmd/internal/roles"
	"quittance/internal/secret"
	"quittance/test/registries"
	"quittance/test/servers"
	"quittance/test/topics"
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

// Somebody writes into Postgres where an ERP's token goes. doctor names the row.
func TestDoctorNamesForgedRows(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	kafka := servers.Kafka(t) // one that does not answer is waited for
	said := func() string {
		_, out, _ := clitest.Run(t, doctor.Command(nil), "doctor", "webhook", "--kafka", kafka, "--schema-registry", "http://127.0.0.1:1", "--postgres", h.DSN)
		return out
	}
	if out := said(); !strings.Contains(out, "ok    rows             all that decide are as they were signed") {
		t.Errorf("before:\n%s", out)
	}
	h.Exec(t, `UPDATE erp_settings SET base_url = 'https://thief.example.org' WHERE NOT live`)
	h.Exec(t, `DELETE FROM fees`)
	out := said()
	for _, want := range []string{"FAIL  rows ", "erp_settings " + registries.AgencyA + "/false", "put back: fees", "rows list"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// Outages of collections were named, those of payouts were not: an operator that paid nobody for an hour, and an account without
// money, showed only on the pages of their batches.
func TestDoctorNamesPayoutsThatWait(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	on := topics.Make(t, 2)
	said := func(role string) string {
		_, out, _ := clitest.Run(t, doctor.Command(nil), "doctor", role, "--kafka", on.Kafka.Brokers[0], "--topic-prefix", on.Kafka.Prefix, "--schema-registry", servers.SchemaRegistry(t), "--postgres", h.DSN)
		return out
	}
	has := func(role string, all ...string) {
		t.Helper()
		out := said(role)
		for _, want := range all {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
	}
	has("disburse", "ok    payouts          none is away", "ok    payout accounts  none is paused or closed")
	h.Exec(t, `INSERT INTO operator_answers (operator, live, payouts, failing_since, failed_at) VALUES ('mtn', true, true, now() - interval '50 minutes', now() - interval '1 minute')`)
	h.Exec(t, `INSERT INTO disbursement_batches (id, tenant_id, livemode, batch_ref, revision, status, held, opened_at, sequence, snapshot) VALUES ('dsb_1', $1, true, 'r', 1, 'releasing', false, now(), 1, '')`, registries.AgencyA)
	h.Exec(t, `INSERT INTO disbursement_steps (batch, sequence, type, at, lines, detail, partition, "offset") VALUES
		('dsb_1', 1, 'account.paused', '2026-11-20T08:00:00Z', 0, '{"account": "mtn_payout", "reason": "NOT_ENOUGH_FUNDS"}', 0, 1), ('dsb_1', 2, 'account.paused', '2026-11-20T09:00:00Z', 0, '{"account": "airtel_payout", "reason": "PIN", "closed": "true"}', 0, 2)`)
	has("disburse", "WARNING: without an answer: mtn/live/payouts since ", "payout accounts (`payouts`", "WARNING: nobody is paid from mtn_payout of impots/live, paused since 2026-11-20 08:00:00 UTC (NOT_ENOUGH_FUNDS); airtel_payout of impots/live, closed since", "batches try-account")
	has("collect", "ok    operators        none is away", "notices          none")
}

// The connector of the switch is certified by nobody, and the switch knows an account by a certificate that ends: doctor says both.
func TestDoctorSaysNotices(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	const account = "{base_url: https://switch.example.org, client_id: a, client_secret: switch-private, api_key: switch-key, alias: b, "
	h.Seed(t, "agencies: [{id: "+registries.AgencyA+", slug: impots, name: X, payouts: {test: {switch_payout: "+account+"modes: [alias], certificate: none, private_key: none}}}, connectors: {test: {switch: "+account+
		"certificate: "+strings.TrimSpace(demoField(t, "certificate"))+", private_key: "+demoField(t, "private_key")+"}}}}]")
	on := topics.Make(t, 2)
	_, out, _ := clitest.Run(t, doctor.Command(nil), "doctor", "disburse", "--kafka", on.Kafka.Brokers[0], "--topic-prefix", on.Kafka.Prefix, "--schema-registry", servers.SchemaRegistry(t), "--postgres", h.DSN)
	for _, want := range []string{
		"switch of impots/test: profile pi; not certified by GIMAC; its certificate ends on 2126-",
		"switch_payout of impots/test: profile pi; not certified by GIMAC; WARNING: the account's certificate and private_key do not belong together",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// demoField returns a field of the demo agency's account at the switch.
func demoField(t *testing.T, name string) string {
	t.Helper()
	file, err := os.ReadFile("../../../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(file), " "+name+": ")
	if !found {
		t.Fatalf("the demo registry has no %s", name)
	}
	value, _, _ := strings.Cut(after, "\n")
	return value
}

// It says which rights of its role the user of Postgres lacks, and which it has beside them.
func TestDoctorNamesRights(t *testing.T) {
	t.Parallel()
	dsn := servers.Migrated(t)
	servers.Grant(t, dsn, strings.Join(roles.Statements(roles.Options{}, "public"), "\n"))
	own := servers.Login(t, dsn, "tidy")
	change := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ change, at, want string }{
		{"SELECT 1", own, "ok    postgres rights  the user has those of the role tidy"},
		{"SELECT 1", dsn, "postgres rights  WARNING: not those of the role tidy: the user of Postgres may do more than it needs: "},
		{"GRANT INSERT ON citizens TO quittance_tidy", own, "INSERT of citizens"},
		{"REVOKE DELETE ON citizen_links FROM quittance_tidy", own, "the user test_tidy lacks DELETE of citizen_links; `quittance grants tidy`"},
	} {
		change(c.change)
		_, out, _ := clitest.Run(t, doctor.Command(nil), "doctor", "tidy", "--kafka", "127.0.0.1:1", "--schema-registry", "http://127.0.0.1:1", "--postgres", c.at)
		if !strings.Contains(out, c.want) || strings.Contains(out, "login-of-a-test") {
			t.Errorf("after %s it says\n%s\nwant %q", c.change, out, c.want)
		}
	}
}

// A role was given the key file of another one: it would not start.
func TestDoctorNamesKeysOfAnotherRole(t *testing.T) {
	t.Setenv("QUITTANCE_MASTER_KEYS", secret.GenerateKeys().Subset("schedule", nil).Reveal())
	_, out, _ := clitest.Run(t, doctor.Command(nil), "doctor", "webhook", "--kafka", servers.Kafka(t), "--schema-registry", "http://127.0.0.1:1", "--postgres", "postgres://127.0.0.1:1/none")
	if want := `FAIL  master keys      QUITTANCE_MASTER_KEYS holds the keys of "schedule", which lack seal "webhook secrets"`; !strings.Contains(out, want) || !strings.Contains(out, "secrets derive webhook") {
		t.Errorf("it says\n%s\nwant %q", out, want)
	}
}
