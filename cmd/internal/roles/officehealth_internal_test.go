package roles

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/ingress/oversight"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/report"
	"quittance/reconciliation"
	"quittance/schemas"
	"quittance/test/registries"
	"quittance/test/servers"
	made "quittance/test/topics"
)

// The page of health knows how far each group and each read model is, and says what it does not know while Kafka or
// ClickHouse is away.
func TestOfficeHealth(t *testing.T) {
	t.Parallel()
	on := made.Make(t, 2)
	group := groupsOf(Table())[slices.IndexFunc(groupsOf(Table()), func(g Group) bool { return slices.Contains(g.Topics, schemas.TopicEvents) })]
	topic := on.Topology.Name(schemas.TopicEvents)
	for _, p := range []int32{0, 0, 0, 1} {
		if err := on.Client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: p, Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	adm := kadm.NewClient(on.Client)
	var read kadm.Offsets
	read.Add(kadm.Offset{Topic: topic, Partition: 0, At: 1, LeaderEpoch: -1})
	if _, err := adm.CommitOffsets(t.Context(), on.Kafka.Prefix+group.Name, read); err != nil {
		t.Fatal(err)
	}
	stored := func(context.Context, string) (map[int32]int64, error) { return map[int32]int64{0: 2, 1: 1}, nil }
	broken := func(context.Context, string) (map[int32]int64, error) { return nil, errors.New("no table") }
	open := func(brokers ...string) *officeHealth {
		h := &officeHealth{kafka: on.Kafka, log: servers.Logger(t), models: []storedModel{{"readmodel", schemas.TopicEvents, stored}, {"cases", schemas.TopicCases, broken}}}
		if len(brokers) > 0 {
			h.kafka.Brokers = brokers
		}
		h.journal = &lateJournal{log: servers.Logger(t), open: func(context.Context) (clickhouse.Conn, error) { return nil, errors.New("ClickHouse is away") }}
		t.Cleanup(h.close)
		return h
	}

	h := open()
	list, err := h.lags(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(list, func(l oversight.Lag) bool { return l.Group == group.Name && l.Topic == schemas.TopicEvents }); i < 0 || list[i].Records != 3 || list[i].Never {
		t.Errorf("the lag of %s is %+v", group.Name, list)
	}
	if i := slices.IndexFunc(list, func(l oversight.Lag) bool { return l.Group != group.Name && l.Topic == schemas.TopicEvents }); i >= 0 && (!list[i].Never || list[i].Records != 4) {
		t.Errorf("a group that has never read is %+v", list[i])
	}
	want := []oversight.Model{
		{Name: "readmodel", Topic: schemas.TopicEvents, Position: 3, PositionKnown: true, Behind: 1, BehindKnown: true},
		{Name: "cases", Topic: schemas.TopicCases},
		{Name: "journal"},
	}
	if got := h.positions(t.Context()); !slices.Equal(got, want) {
		t.Errorf("the read models are %+v, want %+v", got, want)
	}

	away := open("127.0.0.1:1")
	if list, err := away.lags(t.Context()); err == nil || len(list) != 0 {
		t.Errorf("without Kafka: %+v, %v", list, err)
	}
	want[0].Behind, want[0].BehindKnown = 0, false
	if got := away.positions(t.Context()); !slices.Equal(got, want) {
		t.Errorf("without Kafka the read models are %+v, want %+v", got, want)
	}
}

// The role makes each report with its rights in ClickHouse, passes their check, and can neither write nor read more than it needs.
func TestOfficeReportsWithItsRights(t *testing.T) {
	t.Parallel()
	as := journalWithRights(t)
	conn, stop := as("office")
	defer stop()
	desk := report.Desk{
		Open:      func(context.Context) (clickhouse.Conn, error) { return conn, nil },
		Committed: func(context.Context) (kadm.OffsetResponses, error) { return nil, nil },
		Program:   "quittance", Version: "test", Now: time.Now,
	}
	for _, r := range report.All() {
		if table, more, err := desk.Run(t.Context(), report.Request{Report: r, Month: time.Now(), Live: true}); err != nil || more || len(table.Columns) == 0 || !table.Stamp.Compared {
			t.Errorf("%s: %+v, %v", r.Name, table, err)
		}
	}
	if _, _, err := desk.Run(t.Context(), report.Request{Report: report.All()[0], Month: time.Now(), AgencyID: "unknown"}); !errors.Is(err, report.ErrUnknownAgency) {
		t.Errorf("a report of an unknown agency: %v", err)
	}
	if err := conn.Exec(t.Context(), "INSERT INTO journal SELECT * FROM journal"); err == nil {
		t.Error("the pages write the journal")
	}
	if err := conn.Exec(t.Context(), "SELECT * FROM deliveries LIMIT 1"); err == nil {
		t.Error("the pages read a view that no report has")
	}
}

// journalWithRights migrates a ClickHouse. It returns what connects to it with exactly the rights of a role; stop comes before the
// next connection.
func journalWithRights(t *testing.T) (as func(role string) (conn clickhouse.Conn, stop func())) {
	t.Helper()
	dir := t.TempDir()
	conn, stop := engine(t, dir, rightsOf(databaseClient(Options{}, ClientMigrate), "x"))
	if err := reconciliation.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	stop()
	return func(role string) (clickhouse.Conn, func()) {
		conn, stop := engine(t, dir, rightsOf(databaseClient(Options{}, role), "x"))
		if err := (&Settings{Program: "quittance"}).CheckJournal(t.Context(), conn, role); err != nil {
			t.Error(err)
		}
		return conn, stop
	}
}

// A close states what the report of its days says (report.Closing), with the rights of match alone.
func TestMatchReportsWithItsRights(t *testing.T) {
	t.Parallel()
	as := journalWithRights(t)
	conn, stop := as("journal")
	if _, err := journal.NewStore(conn).PutNames(t.Context(), []journal.Name{
		{Kind: journal.NameAgency, ID: registries.AgencyA, TenantID: registries.AgencyA, Name: "Impôts"}, {Kind: journal.NameSlug, ID: registries.AgencyA, TenantID: registries.AgencyA, Name: "impots"},
	}); err != nil {
		t.Fatal(err)
	}
	stop()
	conn, stop = as("match")
	defer stop()
	if totals, err := (report.Closing{TenantID: registries.AgencyA, Live: true, Account: "mtn", From: time.Now().UTC(), To: time.Now().UTC()}).Totals(t.Context(), conn); err != nil || len(totals) == 0 {
		t.Errorf("a close states %q of the report, %v", totals, err)
	}
}
