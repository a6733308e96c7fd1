package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/cmd/internal/cli/clitest"
	"quittance/internal/audit"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/test/registries"
	"quittance/test/servers"
	"quittance/test/topics"
)

// The row of an approval was edited by SQL. The command names it and ends with code 1, until a member of operations has
// accepted it; the staff of an agency may not.
func TestAuditVerify(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	on := topics.Make(t, 1)
	relay, err := audit.NewRelay(audit.RelayConfig{
		Kafka: on.Kafka, Topology: on.Topology, Codec: on.Codec, Client: on.Client, Pool: h.Pool, Verify: h.Keys.VerifySignature, Now: (&registries.Watch{}).Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for name, agency := range map[string]string{"One": "impots", "Ops": ""} {
		m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: agency}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = m.Secret.Reveal()
	}
	if err := operation.Record(t.Context(), h.Pool, registries.Actor, registries.Epoch, operation.Entry{Action: "case.approve", Subject: "case_1"}); err != nil {
		t.Fatal(err)
	}
	if err := relay.Relay(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	t.Setenv("QUITTANCE_KAFKA", on.Kafka.Brokers[0])
	t.Setenv("QUITTANCE_SCHEMA_REGISTRY", servers.SchemaRegistry(t))
	t.Setenv("QUITTANCE_TOPIC_PREFIX", on.Kafka.Prefix)
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, Command(), append([]string{"audit"}, args...)...)
		if code != want {
			t.Fatalf("%v: %d %s%s", args, code, stdout, stderr)
		}
		return stdout + stderr
	}
	run(0, "verify")
	h.Exec(t, `ALTER TABLE audit DISABLE TRIGGER audit_stays`)
	h.Exec(t, `UPDATE audit SET actor = 'somebody' WHERE action = 'case.approve'`)
	if said := run(1, "verify", "--since", "2020-01-01"); !strings.Contains(said, "actor somebody, Kafka "+registries.Actor.Name) || !strings.Contains(said, "0 missing, 1 changed, 0 added, 0 late") {
		t.Errorf("%s", said)
	}
	var got struct {
		Holds    bool
		Findings []struct {
			Record   int
			Fault    string
			Accepted bool
		}
	}
	said := run(1, "verify", "--json")
	if err := json.Unmarshal([]byte(said[:strings.LastIndex(said, "}")+1]), &got); err != nil || got.Holds || len(got.Findings) != 1 || got.Findings[0].Fault != "changed" {
		t.Fatalf("%s, %v", said, err)
	}
	number := fmt.Sprint(got.Findings[0].Record)
	if said := run(1, "accept", number, "--reason", "r"); !strings.Contains(said, "staff.key_missing") {
		t.Errorf("without a key: %s", said)
	}
	t.Setenv("QUITTANCE_STAFF_KEY", keys["One"])
	if said := run(1, "accept", number, "--reason", "r"); !strings.Contains(said, "of an agency") {
		t.Errorf("the staff of an agency: %s", said)
	}
	t.Setenv("QUITTANCE_STAFF_KEY", keys["Ops"])
	if said := run(2, "accept", "9-3", "--reason", "r"); !strings.Contains(said, "1203-1288") {
		t.Errorf("%s", said)
	}
	if said := run(1, "accept", "900-901", "--reason", "r"); !strings.Contains(said, "no record from 900 to 901") {
		t.Errorf("%s", said)
	}
	run(0, "accept", number, "--reason", "a test")
	if err := relay.Relay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said := run(0, "verify"); !strings.Contains(said, "changed, accepted") {
		t.Errorf("%s", said)
	}
}
