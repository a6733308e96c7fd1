package readmodel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/cmd/internal/cli/clitest"
	"quittance/internal/identity"
	"quittance/internal/kafka/consume"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/registries"
	"quittance/test/servers"
	"quittance/test/topics"
)

// Somebody makes an open session paid by SQL. The command names the row with its event and ends with code 1. A key of an
// agency does not open it.
func TestReadmodelVerify(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	on := topics.Make(t, 1)
	var states []sessions.Snapshot
	topic := on.Kafka.Prefix + schemas.TopicEvents
	for i, month := range []time.Month{time.October, time.November} {
		at := time.Date(2026, month, 7, 9, 0, 0, 0, time.UTC)
		s := checkout.Session{
			ID: checkout.NewSessionID(at, 0, [16]byte{byte(i)}), ApplicationID: "a", TenantID: "t", OrderID: "o", Amount: 1, Currency: "XAF", Mode: checkout.ModeHosted,
			CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: checkout.StatusOpen, Sequence: 1,
		}
		value, err := on.Codec.Encode(mapping.FromEvent(checkout.Event{ID: fmt.Sprint("evt_", i), Type: checkout.EventCreated, SessionID: s.ID, Sequence: 1, OccurredAt: at, Session: s}))
		if err != nil {
			t.Fatal(err)
		}
		_, snapshot, err := sessions.Read(on.Codec, value)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, *snapshot)
		if err := on.Client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := sessions.NewStore(h.Pool).Apply(t.Context(), states, []consume.Move{{Topic: topic, From: consume.None, To: 2}}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_KAFKA", on.Kafka.Brokers[0])
	t.Setenv("QUITTANCE_SCHEMA_REGISTRY", servers.SchemaRegistry(t))
	t.Setenv("QUITTANCE_TOPIC_PREFIX", on.Kafka.Prefix)
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, Command(), append([]string{"readmodel", "verify"}, args...)...)
		if code != want {
			t.Fatalf("%v: %d %s%s", args, code, stdout, stderr)
		}
		return stdout + stderr
	}
	if said := run(0); !strings.Contains(said, "Kafka has 2 records, for 2 sessions beside other rows. Postgres has 2 rows: missing 0, different 0, added 0.") {
		t.Errorf("%s", said)
	}
	h.Exec(t, `UPDATE sessions SET status = 'completed' WHERE id = '`+states[1].ID+`'`)
	if said := run(1); !strings.Contains(said, "status completed, Kafka open") || !strings.Contains(said, "checkout.events/0/1") || !strings.Contains(said, "rebuild readmodel") {
		t.Errorf("%s", said)
	}
	var got struct {
		Holds       bool
		Sessions    int
		Different   int
		Left        []string `json:"not_compared"`
		Differences []struct {
			Session_id, Event string //nolint:revive // as JSON has it
			Columns           []struct{ Name, Postgres, Kafka string }
		}
	}
	said := run(1, "--json")
	if err := json.Unmarshal([]byte(said[:strings.LastIndex(said, "}")+1]), &got); err != nil || len(got.Left) != 0 {
		t.Fatalf("with the master keys cases, deliveries and batches are compared: %s, %v", said, err)
	}
	got.Differences = nil
	said = run(1, "--month", "2026-11", "--json")
	if err := json.Unmarshal([]byte(said[:strings.LastIndex(said, "}")+1]), &got); err != nil || got.Holds || got.Sessions != 1 || got.Different != 1 || len(got.Differences) != 1 || got.Differences[0].Session_id != states[1].ID || len(got.Left) != 3 {
		t.Fatalf("%s, %v", said, err)
	}
	run(0, "--month", "2026-10")
	run(1, "--since", "2026-11-01")
	if said := run(2, "--month", "November"); !strings.Contains(said, "such as --month 2026-11") {
		t.Errorf("%s", said)
	}
	run(2, "--month", "2026-11", "--since", "2d")
	m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: "One", Agency: "impots"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUITTANCE_STAFF_KEY", m.Secret.Reveal())
	if said := run(1); !strings.Contains(said, "of an agency") {
		t.Errorf("%s", said)
	}
}
