package job

import (
	"encoding/json"
	"strings"
	"testing"

	"quittance/cmd/internal/cli/clitest"
	"quittance/test/registries"
)

// A command starts a job, which asks for the number of deliveries above a hundred, shows it, stops it, and starts another one of
// what is left. The audit table has the same rows as of a page.
func TestJobsByCommand(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	h.Exec(t, `SELECT make_delivery_day('2026-02-28')`)
	h.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT '2026-02-28', 'dlv_' || n, 'webhook', 'own', 'evt_' || n, 'checkout.failed', $1, $2, 'chs_' || n, true, '2026-02-28T12:00Z', 'needs_operator', 4, 0, '2026-02-28T18:00Z', 503, 'body' FROM generate_series(1, 101) n`, registries.AppA, registries.AgencyA)
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, Command(), append([]string{"jobs"}, args...)...)
		if code != want {
			t.Fatalf("%v ends with %d:\n%s%s", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
	if _, said := run(2, "start", "--state", "needs_operator", "--agency", "impots", "--count", "12"); !strings.Contains(said, "101 deliveries") {
		t.Errorf("another number: %s", said)
	}
	if _, said := run(1, "start", "--state", "exhausted"); !strings.Contains(said, "no delivery is like that") {
		t.Errorf("nothing: %s", said)
	}
	var made struct {
		ID, State, Agency string
		Total             int
	}
	read := func(text string) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := run(0, "start", "--state", "needs_operator", "--agency", "impots", "--count", "101", "--json")
	if read(out); made.State != "running" || made.Total != 101 || made.Agency != "impots" {
		t.Errorf("%+v", made)
	}
	first := made.ID
	if _, said := run(1, "start", "--state", "needs_operator", "--agency", "impots", "--count", "101"); !strings.Contains(said, "`quittance jobs stop "+first+"`") {
		t.Errorf("the same once more: %s", said)
	}
	if out, _ := run(0, "list"); !strings.Contains(out, first) || !strings.Contains(out, "running") {
		t.Errorf("the list:\n%s", out)
	}
	if _, said := run(1, "retry", first, "--yes"); !strings.Contains(said, "runs still") {
		t.Errorf("retrying one that runs: %s", said)
	}
	if out, _ := run(0, "stop", first); !strings.Contains(out, "stopped") || !strings.Contains(out, "`quittance jobs retry "+first+"`") {
		t.Errorf("stopped:\n%s", out)
	}
	out, _ = run(0, "retry", first, "--count", "101", "--json")
	if read(out); made.State != "running" || made.ID == first {
		t.Errorf("%+v", made)
	}
	if out, _ := run(0, "show", made.ID); !strings.Contains(out, "101, 0 done, 0 refused") {
		t.Errorf("shown:\n%s", out)
	}
	if _, said := run(1, "show", "none"); !strings.Contains(said, "no job has this id") {
		t.Errorf("an unknown one: %s", said)
	}
	if got := strings.Join(h.Audited(t), " "); !strings.HasSuffix(got, "job.start job.stop job.start") {
		t.Errorf("audit table: %s", got)
	}
}
