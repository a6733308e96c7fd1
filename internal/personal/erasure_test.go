package personal_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/clickhouse"
	"quittance/internal/commands"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	processor "quittance/processors/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	sinkjournal "quittance/sinks/journal"
	"quittance/sinks/readmodel"
	deliverytest "quittance/test/deliveries"
	journaltest "quittance/test/journal"
	"quittance/test/registries"
	"quittance/test/servers"
)

const (
	patience = 30 * time.Second
	agency   = "018f0000-0000-7000-8000-000000000001"
	masked   = "+242 06 ••• •• 77"
)

var citizen = checkout.Customer{Name: "Mireille Tsimba-Okoko", Email: "mireille.tsimba@example.cg", Phone: "+242 06 699 88 77"}

// plain are the texts that no place may hold.
var plain = []string{"Tsimba", "mireille.tsimba", "06 699 88 77", "6998877"}

// installation has a processor, the sinks of the read model and the journal, and a vault.
type installation struct {
	*vault
	t        *testing.T
	kafka    kafka.Config
	topology *kafka.Topology
	codec    *schemas.Codec
	client   *kgo.Client
	journal  driver.Conn
	stores   string // folder of the processor
	ask      *commands.Checkout
	keys     *secret.Keys // of commands
}

func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{
		vault: newVault(t), t: t, stores: t.TempDir(), keys: secret.GenerateKeys(),
		kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 1},
	}
	i.now = time.Now().UTC().Truncate(time.Millisecond)
	var err error
	if i.client, err = i.kafka.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.client.Close)
	if _, err := kafka.Migrate(t.Context(), i.kafka, i.client); err != nil {
		t.Fatal(err)
	}
	if i.topology, err = kafka.Load(t.Context(), i.kafka, i.client); err != nil {
		t.Fatal(err)
	}
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if i.codec, err = schemas.NewCodec(t.Context(), registry, true); err != nil {
		t.Fatal(err)
	}
	addr, database := journaltest.Migrated(t)
	if i.journal, err = clickhouse.Open(t.Context(), "http://"+addr+"/"+database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.journal.Close() })
	if i.ask, err = commands.New(t.Context(), commands.Config[checkout.Command, checkout.Answer]{
		Kafka: i.kafka, Topology: i.topology, Family: schemas.Checkout, Signer: i.signer(processor.SenderIngress), Protocol: commands.CheckoutProtocol(i.codec, i.topology), Timeout: patience,
		Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	}); err != nil {
		t.Fatal(err)
	}
	i.run(i.ask.Run)
	return i
}

func (i *installation) signer(sender string) *origin.Signer {
	i.t.Helper()
	s, err := commands.NewSigner(i.keys, sender)
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}

// run runs a part until the returned function is called, or the test ends.
func (i *installation) run(part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				i.t.Error(err)
			}
		}
	}
	i.t.Cleanup(stop)
	return stop
}

func (i *installation) process() (stop func()) {
	i.t.Helper()
	senders, err := commands.NewVerifier(i.keys, processor.Senders())
	if err != nil {
		i.t.Fatal(err)
	}
	bodies, err := i.keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		i.t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	p, err := processor.New(processor.Config{Codec: i.codec, Topology: i.topology, Senders: senders, Bodies: bodies, Verify: func(_, _ []byte) bool { return false }, Metrics: metrics})
	if err != nil {
		i.t.Fatal(err)
	}
	r, err := runtime.New(runtime.Config{
		Name: "checkout", Brokers: i.kafka.Brokers, Group: i.kafka.Prefix + "processor", TransactionalID: i.kafka.Prefix + "checkout-0",
		InputTopic: i.topology.Name(schemas.TopicCommands), StateTopic: i.topology.Name(schemas.TopicState), PoisonTopic: i.topology.Name(schemas.TopicPoisonCommands),
		Processor: p, StoreDir: i.stores, Now: func() time.Time { return i.now }, Log: servers.Logger(i.t), Metrics: metrics,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return i.run(r.Run)
}

func (i *installation) readmodel() *readmodel.ReadModel {
	i.t.Helper()
	sink, err := readmodel.New(readmodel.Config{Kafka: i.kafka, Codec: i.codec, Store: sessions.NewStore(i.pool), Log: servers.Logger(i.t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		i.t.Fatal(err)
	}
	return sink
}

func (i *installation) do(id string, action checkout.Action) checkout.Answer {
	i.t.Helper()
	ask := i.ask
	if _, ok := action.(checkout.Erase); ok {
		ask = ask.As(i.signer(processor.SenderOperator))
	}
	a, err := ask.Ask(i.t.Context(), checkout.Command{At: i.now, TenantID: agency, SessionID: id, Do: action})
	if err != nil || a.Code != checkout.CodeOK {
		i.t.Fatalf("%T: %s, %v", action, a.Code, err)
	}
	return a
}

// pays lets a citizen pay a session with contact data. One command of it is poison.
func (i *installation) pays() (id string) {
	i.t.Helper()
	id = checkout.NewSessionID(i.now, i.topology.Partition(schemas.TopicCommands, agency), [16]byte{7})
	s := checkout.Session{
		ID: id, ApplicationID: "app", TenantID: agency, OrderID: "order", Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, PaymentRef: "0000000000000001",
		TransactionID: "018f0000-0000-7000-8000-0000000000ff", CustomerID: "NIU-7", Description: "Patente", Metadata: map[string]string{checkout.MetadataERPDueRef: "DUE-1"},
		CustomerSealed: i.seal(i.t, id, citizen), Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney}}, ExpiresAt: i.now.Add(time.Hour),
	}
	create := checkout.Create{Session: s, IdempotencyKey: "k", BodyHash: []byte("h"), CreationsPerMinute: 10}
	i.do(id, create)
	payer, err := i.SealPayer(i.t.Context(), id, "242066998877")
	if err != nil {
		i.t.Fatal(err)
	}
	i.do(id, checkout.Collect{CollectionID: "c", OfferID: checkout.OfferMomo, PayerSealed: payer, PayerMasked: masked, Total: 5000, ApprovalWindow: time.Minute, SendWithin: time.Minute})
	i.do(id, checkout.Outcome{CollectionID: "c", Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 5000, Currency: "XAF", OperatorRef: "op-1"})

	poison, err := mapping.FromCommand(checkout.Command{At: i.now, SessionID: id, Do: create})
	if err != nil {
		i.t.Fatal(err)
	}
	poison.Type = "session.of_another_version"
	value, err := i.codec.Encode(poison)
	if err != nil {
		i.t.Fatal(err)
	}
	r := &kgo.Record{Topic: i.topology.Name(schemas.TopicCommands), Value: value}
	i.signer(processor.SenderIngress).Sign(r)
	if err := i.client.ProduceSync(i.t.Context(), r).FirstErr(); err != nil {
		i.t.Fatal(err)
	}
	return id
}

// readable reads every record of every topic. It returns, by topic, how many values of
// personal data can be opened. A text of plain anywhere is an error.
func (i *installation) readable() map[string]int {
	i.t.Helper()
	out := map[string]int{}
	for _, topic := range schemas.Topics() {
		name := i.topology.Name(topic.Name)
		spans, err := kafka.Bounds(i.t.Context(), kadm.NewClient(i.client), name)
		if err != nil {
			i.t.Fatal(err)
		}
		err = i.kafka.Read(i.t.Context(), name, spans, nil, func(r *kgo.Record) (bool, error) {
			i.lacks(topic.Name, append(append([]byte{}, r.Key...), r.Value...))
			out[topic.Name] += i.opens(topic.Name, r)
			return true, nil
		})
		if err != nil {
			i.t.Fatal(err)
		}
	}
	return out
}

// opens returns how many values of a record can be opened.
func (i *installation) opens(topic string, r *kgo.Record) (n int) {
	i.t.Helper()
	var found []record.Session
	var payers [][]byte
	var err error
	switch topic {
	case schemas.TopicCommands, schemas.TopicPoisonCommands:
		var c record.Command
		if err = i.codec.Decode(r.Value, &c); c.Create != nil {
			found = append(found, c.Create.Session)
		}
		if c.Collect != nil {
			payers = append(payers, c.Collect.PayerSealed)
		}
	case schemas.TopicEvents:
		var e record.Event
		if err = i.codec.Decode(r.Value, &e); e.Session != nil {
			found = append(found, *e.Session)
		}
	case schemas.TopicReplies:
		var a record.Reply
		if err = i.codec.Decode(r.Value, &a); a.Session != nil {
			found = append(found, *a.Session)
		}
	case schemas.TopicState:
		var s record.Session
		if r.Value != nil && i.codec.Decode(r.Value, &s) == nil { // other entries are no sessions
			found = append(found, s)
		}
	case schemas.TopicCollections:
		var q record.CollectionRequest
		err = i.codec.Decode(r.Value, &q)
		payers = append(payers, q.PayerSealed)
		found = append(found, record.Session{ID: q.SessionID})
	}
	if err != nil {
		i.t.Fatalf("a record of %s: %v", topic, err)
	}
	for _, s := range found {
		if c, err := i.Customer(i.t.Context(), s.ID, s.CustomerSealed); err == nil && c == citizen {
			n++
		}
	}
	for _, sealed := range payers {
		for _, id := range i.ids() {
			if payer, err := i.Payer(i.t.Context(), id, sealed); err == nil && payer == "242066998877" {
				n++
			}
		}
	}
	return n
}

// ids returns the sessions of the read model.
func (i *installation) ids() (ids []string) {
	i.t.Helper()
	if err := i.pool.QueryRow(i.t.Context(), `SELECT coalesce(array_agg(id), '{}') FROM sessions`).Scan(&ids); err != nil {
		i.t.Fatal(err)
	}
	return ids
}

// lacks fails if bytes hold a text of plain.
func (i *installation) lacks(where string, b []byte) {
	i.t.Helper()
	for _, text := range plain {
		if bytes.Contains(b, []byte(text)) || bytes.Contains(b, []byte(hex.EncodeToString([]byte(text)))) {
			i.t.Errorf("%s holds %q", where, text)
		}
	}
}

// inPostgres returns all rows of all tables as text.
func (i *installation) inPostgres() string {
	i.t.Helper()
	var tables []string
	if err := i.pool.QueryRow(i.t.Context(), `SELECT array_agg(format('%I.%I', schemaname, tablename)) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`).Scan(&tables); err != nil {
		i.t.Fatal(err)
	}
	if len(tables) < 20 {
		i.t.Fatalf("only %d tables", len(tables))
	}
	var b strings.Builder
	for _, table := range tables {
		var rows string
		if err := i.pool.QueryRow(i.t.Context(), `SELECT coalesce(string_agg(r::text, E'\n'), '') FROM `+table+` AS r`).Scan(&rows); err != nil {
			i.t.Fatal(err)
		}
		b.WriteString(rows)
	}
	return b.String()
}

// inClickHouse returns all rows of the journal as text.
func (i *installation) inClickHouse() string {
	i.t.Helper()
	var text string
	if err := i.journal.QueryRow(i.t.Context(), `SELECT arrayStringConcat(groupArray(toString(tuple(*))), '\n') FROM journal`).Scan(&text); err != nil {
		i.t.Fatal(err)
	}
	return text
}

// inStores returns all bytes of the processor's local stores. The running store deletes
// files at any time; a deleted file holds nothing any more.
func (i *installation) inStores() (all []byte) {
	i.t.Helper()
	err := filepath.WalkDir(i.stores, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = os.ReadFile(path)
			all = append(all, b...)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return all
}

// everywhere looks into every place and returns what can be opened.
func (i *installation) everywhere() map[string]int {
	i.t.Helper()
	i.lacks("Postgres", []byte(i.inPostgres()))
	i.lacks("ClickHouse", []byte(i.inClickHouse()))
	i.lacks("the local stores", i.inStores())
	return i.readable()
}

func (i *installation) journalled(event string) bool {
	i.t.Helper()
	var n uint64
	if err := i.journal.QueryRow(i.t.Context(), `SELECT count() FROM journal FINAL WHERE event = ?`, event).Scan(&n); err != nil {
		i.t.Fatal(err)
	}
	return n > 0
}

// A citizen paid and asks for erasure. Kafka keeps every record, but nobody can open what
// it has: not in the present places, not after a rebuild, a restart without a local store,
// or the restore of an older database.
func TestErasureReachesEveryPlace(t *testing.T) {
	t.Parallel()
	i := install(t)
	stopProcessor := i.process()
	stopSink := i.run(i.readmodel().Run)
	j, err := sinkjournal.New(sinkjournal.Config{Kafka: i.kafka, Codec: i.codec, Store: journal.NewStore(i.journal), Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(i.kafka), Log: servers.Logger(t), Metrics: prometheus.NewRegistry(), BatchWait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	i.run(j.Run)
	id := i.pays()
	has := func() bool {
		return i.count(t, `SELECT count(*) FROM sessions WHERE id = $1 AND status = 'completed'`, id) == 1
	}
	registries.Within(t, patience, "the read model has the payment", has)
	registries.Within(t, patience, "the journal has the payment", func() bool { return i.journalled("checkout.completed") })
	registries.Within(t, patience, "the poison topic has the command", func() bool { return i.readable()[schemas.TopicPoisonCommands] > 0 })

	settings, err := kadm.NewClient(i.client).DescribeTopicConfigs(t.Context(), i.topology.Name(schemas.TopicState))
	if err != nil || !slices.ContainsFunc(settings[0].Configs, func(c kadm.Config) bool {
		return c.Key == "max.compaction.lag.ms" && c.MaybeValue() == strconv.FormatInt((7*24*time.Hour).Milliseconds(), 10)
	}) {
		t.Errorf("replaced states may stay for ever: %v", err)
	}
	before := i.everywhere()
	for _, topic := range []string{schemas.TopicCommands, schemas.TopicState, schemas.TopicEvents, schemas.TopicReplies, schemas.TopicCollections, schemas.TopicPoisonCommands} {
		if before[topic] == 0 {
			t.Errorf("before the erasure nothing of %s can be opened: the test sees nothing", topic)
		}
	}
	hexMasked := hex.EncodeToString([]byte(masked))
	if !strings.Contains(i.inPostgres(), hexMasked) || !strings.Contains(i.inClickHouse(), masked) {
		t.Error("before the erasure the masked number is not where the test looks for it")
	}
	if _, err := i.pool.Exec(t.Context(), `CREATE TABLE dump_keys AS TABLE personal_keys; CREATE TABLE dump_positions AS TABLE readmodel_positions`); err != nil {
		t.Fatal(err)
	}

	ids, err := i.Find(t.Context(), "06 699 88 77")
	if err != nil || len(ids) != 1 || ids[0] != id {
		t.Fatalf("found %v, %v", ids, err)
	}
	got, err := i.Erase(t.Context(), i.ask.As(i.signer(processor.SenderOperator)), id, personal.Request{Actor: actor, At: i.now, By: "phone"})
	if err != nil || got != personal.ResultErased {
		t.Fatalf("%s, %v", got, err)
	}
	registries.Within(t, patience, "the journal has the erasure", func() bool { return i.journalled("checkout.erased") })
	gone := func(when string) {
		t.Helper()
		registries.Within(t, patience, when+": the read model is erased", func() bool {
			return has() && !strings.Contains(i.inPostgres(), hexMasked) && i.count(t, countKeys) == 0
		})
		for topic, n := range i.everywhere() {
			if n > 0 {
				t.Errorf("%s: %d values of %s can be opened", when, n, topic)
			}
		}
		if a := i.do(id, checkout.Erase{By: "officer"}); !a.Replayed || a.Session.HoldsPersonalData() || !a.Session.Paid() || a.Session.OrderID != "order" {
			t.Errorf("%s: the state has %+v", when, a.Session)
		}
	}
	gone("at once")
	if !strings.Contains(i.inClickHouse(), masked) {
		t.Error("the masked number must stay in the journal")
	}
	if ids, err := i.Find(t.Context(), "06 699 88 77"); err != nil || len(ids) != 0 {
		t.Errorf("found %v, %v", ids, err)
	}
	if n := i.count(t, `SELECT count(*) FROM audit WHERE action = 'personal.erase' AND subject = $1`, id); n != 1 {
		t.Errorf("%d records of the erasure", n)
	}

	stopProcessor()
	if err := os.RemoveAll(i.stores); err != nil {
		t.Fatal(err)
	}
	i.process()
	gone("after a restore of the state")

	if rebuilt, err := i.readmodel().Rebuild(t.Context(), actor, i.now, nil); err != nil || rebuilt.Unreadable != 0 {
		t.Fatalf("%+v, %v", rebuilt, err)
	}
	gone("after a rebuild of the read model")

	stopSink()
	if _, err := i.pool.Exec(t.Context(), `INSERT INTO personal_keys TABLE dump_keys; DROP TABLE dump_keys;
		DELETE FROM readmodel_positions; INSERT INTO readmodel_positions TABLE dump_positions; DROP TABLE dump_positions`); err != nil {
		t.Fatal(err)
	}
	if i.readable()[schemas.TopicCommands] == 0 {
		t.Error("the restored keys open nothing: the test sees nothing")
	}
	i.run(i.readmodel().Run)
	gone("after the restore of an older database")
}
