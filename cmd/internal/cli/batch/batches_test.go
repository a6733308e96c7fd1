package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/cmd/internal/cli/batch"
	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/replay"
	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	processor "quittance/processors/disbursement"
	"quittance/sinks/readmodel"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/registries"
	"quittance/test/servers"
)

// desk is an installation on which a person of the agency runs commands.
type desk struct {
	*payouts.Installation
	t      *testing.T
	office *backoffice.World
	pool   *pgxpool.Pool
	store  *disbursements.Store
	args   []string
	// person is the id of the person whose key is in the environment, foreign the key of a person of another agency.
	person, foreign string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	w := backoffice.New(t)
	d := &desk{Installation: payouts.InstallWith(t, w.Keys), t: t, office: w}
	d.Advance(-77 * time.Hour) // commands have the machine's time, and changes of people and policy work after a day
	d.Process()
	d.pool = w.Pool
	d.store = disbursements.NewStore(w.Pool, d.Codec)
	b, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: d.Kafka, Store: d.store, Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	m, err := identity.AddStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "", identity.StaffRequest{Name: "Mireille", Agency: "impots", Roles: []identity.Role{identity.RolePreparer}}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUITTANCE_STAFF_KEY", m.Secret.Reveal())
	w.Seed(t, "agencies: [{id: "+registries.AgencyB+", slug: douanes, name: Douanes}]")
	other, err := identity.AddStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "", identity.StaffRequest{Name: "Noel", Agency: "douanes"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	d.person, d.foreign = m.ID, other.Secret.Reveal()
	t.Setenv("QUITTANCE_MASTER_KEYS", w.Keys.Reveal())
	t.Setenv("QUITTANCE_POSTGRES", w.DSN)
	w.Seed(t, `agencies: [{id: `+registries.AgencyA+`, slug: impots, name: Impots, payouts: {test: {mtn_payout: {modes: [mobile_money],
		base_url: https://momo.example.org, target_environment: mtncongo, subscription_key: key-1, api_user: user-1, api_key: secret-1}}}}]`)
	d.args = []string{"--kafka", d.Kafka.Brokers[0], "--topic-prefix", d.Kafka.Prefix, "--schema-registry", servers.SchemaRegistry(t)}
	return d
}

// run runs a command of batches and returns what it printed.
func (d *desk) run(code int, args ...string) string {
	d.t.Helper()
	got, out, errs := clitest.Run(d.t, batch.Command(), append(append([]string{"batches"}, args...), d.args...)...)
	if got != code {
		d.t.Fatalf("%q ends with %d: %s%s", args, got, out, errs)
	}
	return out + errs
}

func (d *desk) exec(sql string) {
	d.t.Helper()
	if _, err := d.pool.Exec(d.t.Context(), sql); err != nil {
		d.t.Fatal(err)
	}
}

// says fails unless a text has all parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in\n%s", p, text)
		}
	}
}

// An agency's person sees its batches, holds, stops and cancels; what the processor refuses is said with field and mend.
func TestBatchesCommands(t *testing.T) {
	d := newDesk(t)
	says(t, d.run(0, "people", "--agency", "impots", "--mode", "test"), "No policy is in force", "nobody is enrolled")
	d.Agency()
	b := d.Released("dsb_1", payroll.Line("line-a", "mtn", "", 1000), payroll.Line("line-b", "mtn", "", 2000))
	await.Until(t, "both are sent", func() bool {
		got, _ := d.store.Batch(t.Context(), disbursements.Scope{}, b.ID)
		return got.Lines.Sent.Count == 2
	})
	says(t, d.run(0, "people", "--agency", "impots", "--mode", "test"), "1 × chief", "n-ama", "n-cleo")
	says(t, d.run(0, "list", "--mode", "test"), b.ID, "ref-dsb_1", "releasing", "3000 XAF")
	says(t, d.run(0, "list", "--mode", "live"), "there are no such batches")
	says(t, d.run(0, "show", b.ID), "ref-dsb_1, revision 1", "1 of 1", "ben", "lines.sent", "disbursement.events/", "sent")
	lines := d.run(0, "lines", b.ID)
	says(t, lines, "line-a", "line-b", disbursement.NewAttemptID(b.ID, 1, 1).PayoutRef())
	if strings.Contains(lines, payroll.Payee) || strings.Contains(lines, "PAYEE") {
		t.Errorf("the lines name payees:\n%s", lines)
	}
	says(t, d.run(0, "hold", b.ID, "--reason", "a doubt"), "is releasing, held")
	says(t, d.run(1, "recall", b.ID), "batch: ", "(batch.")
	says(t, d.run(1, "cancel", b.ID, "0"), "only a ready or refused line is cancelled")
	says(t, d.run(1, "show", "dsb_unknown"), "no batch that you may see")
	says(t, d.run(0, "stop", b.ID), "is releasing")
	var list []struct {
		Batch, Status string
		Held          bool
		Lines         map[string]struct{ Count int }
	}
	if err := json.Unmarshal([]byte(d.run(0, "list", "--mode", "test", "--held", "--json")), &list); err != nil || len(list) != 1 || !list[0].Held || list[0].Lines["sent"].Count != 2 {
		t.Errorf("%+v, %v", list, err)
	}

	// What was done is in the audit table, and nothing that was refused.
	var actions []string
	if err := d.pool.QueryRow(t.Context(), `SELECT array_agg(action || ' ' || actor ORDER BY id) FROM audit WHERE subject = $1`, b.ID).Scan(&actions); err != nil || !slices.Equal(actions, []string{"batch.hold " + d.person, "batch.stop " + d.person}) {
		t.Errorf("the audit table has %q, %v", actions, err)
	}

	// Rows that somebody has lost come again from Kafka.
	d.exec(`UPDATE disbursement_batches SET status = 'done'`)
	d.exec(`DELETE FROM disbursement_lines`)
	before, mine := d.run(0, "show", b.ID), os.Getenv("QUITTANCE_STAFF_KEY")
	t.Setenv("QUITTANCE_STAFF_KEY", "")
	if code, out, errs := clitest.Run(t, replay.Rebuild(), append([]string{"rebuild", "batches", "--yes"}, d.args...)...); code != 0 || !strings.Contains(out, "are empty") {
		t.Fatalf("%d: %s%s", code, out, errs)
	}
	t.Setenv("QUITTANCE_STAFF_KEY", mine)
	await.Until(t, "the rows are there again", func() bool {
		got, err := d.store.Lines(t.Context(), b.ID, disbursements.LineQuery{Size: 10})
		return err == nil && len(got) == 2
	})
	await.Until(t, "the batch is as before", func() bool { return strings.HasPrefix(d.run(0, "show", b.ID), strings.TrimSpace(before)) }) // it goes on meanwhile
	says(t, d.run(0, "list", "--mode", "test", "--status", "releasing"), b.ID)

	// Another agency's person sees nothing of it.
	t.Setenv("QUITTANCE_STAFF_KEY", d.foreign)
	says(t, d.run(0, "list", "--mode", "test"), "there are no such batches")
	says(t, d.run(1, "show", b.ID), "no batch that you may see")
	says(t, d.run(1, "stop", b.ID), "no batch that you may see")
	says(t, d.run(1, "people", "--agency", "impots", "--mode", "test"), "no agency that you may see")
}

// A file becomes a sealed batch, and a faulty one nothing.
func TestImportCommand(t *testing.T) {
	d := newDesk(t)
	d.Agency()
	enrol := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled(d.person, "maker")}}
	enrol.Confirmed = payroll.Confirm(4, enrol.Content(), "ama", "ben")
	d.OK(processor.SenderOffice, "", enrol)
	d.Advance(25 * time.Hour)
	file := filepath.Join(t.TempDir(), "salaries.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	importing := func(code int, more ...string) string {
		t.Helper()
		return d.run(code, append([]string{"import", file, "--agency", "impots", "--mode", "test", "--batch-ref", "salaries", "--date", d.Now().Format("2006-01-02")}, more...)...)
	}
	const header = "line_ref,name,amount,currency,payment_mode,msisdn\n"
	write(header + "a,Ngoma Jean,1500,XAF,mobile_money,06 600 00 01\nb,Éloïse Mabiala,2500,XAF,mobile_money,05 500 00 01\n")
	says(t, importing(1, "--try"), "Row 3, column F", "is refused: 1 fault; nothing was made")
	write(header + "a,Ngoma Jean,1500,XAF,mobile_money,06 600 00 01\nb,Éloïse Mabiala,2500,XAF,mobile_money,06 600 00 02\n")
	says(t, importing(0, "--try"), "2 lines, 4000 XAF", "nothing was made", "Eloise Mabiala")
	says(t, importing(0), "salaries, revision 1, with 2 lines, 4000 XAF", "is sealed")
	says(t, importing(1), "(batch.ref_live)")
	await.Until(t, "the batch is in the read model", func() bool { return strings.Contains(d.run(0, "list", "--mode", "test"), "sealed") })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}

	// Ben approves it. It is proven from Kafka, and exported for programs of others, which are told the same.
	batches, err := d.store.List(t.Context(), disbursements.Scope{}, disbursements.Query{BatchRef: "salaries", Size: 1})
	if err != nil || len(batches) != 1 {
		t.Fatalf("%+v, %v", batches, err)
	}
	b := batches[0]
	d.OK(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)})
	await.Until(t, "the approval is in the read model", func() bool { return strings.Contains(d.run(0, "show", b.ID), "approved") })
	says(t, d.run(0, "verify", b.ID), "2 lines, 4000 XAF", b.Digest.String(), "ben", "was not released", "Everything holds.")
	exported := filepath.Join(t.TempDir(), "salaries.json")
	says(t, d.run(2, "export", b.ID), "--out")
	says(t, d.run(0, "export", b.ID, "--out", exported), "2 lines and 1 approval of")
	says(t, d.run(1, "export", b.ID, "--out", exported), "exists")
	if out, err := exec.CommandContext(t.Context(), "node", "../../../../docs/operating/disbursements/verify.mjs", exported, fmt.Sprintf("ben=%x", payroll.Human("ben").Hash())).CombinedOutput(); err != nil || !strings.Contains(string(out), b.Digest.String()) {
		t.Errorf("%s, %v", out, err)
	}
	d.exec(`UPDATE disbursement_lines SET sealed = '' WHERE position = 1`)
	says(t, d.run(1, "export", b.ID, "--out", exported+"2"), "was erased")
	if _, err := os.Stat(exported + "2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	mine := os.Getenv("QUITTANCE_STAFF_KEY")
	t.Setenv("QUITTANCE_STAFF_KEY", d.foreign)
	says(t, d.run(1, "export", b.ID, "--out", exported+"3"), "no batch that you may see")
	d.exec(`DELETE FROM staff_roles`)
	t.Setenv("QUITTANCE_STAFF_KEY", mine)
	says(t, d.run(1, "export", b.ID, "--out", exported+"3"), "the role preparer or approver")
	says(t, d.run(0, "verify", b.ID), "Everything holds.")

	template := filepath.Join(t.TempDir(), "empty.xlsx")
	says(t, d.run(0, "template", template, "--agency", "impots", "--mode", "test"), "is written")
	if info, err := os.Stat(template); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
