package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/decisions"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	processor "quittance/processors/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/servers"
)

const (
	application = "018f0000-0000-7000-8000-00000000000a"
	tenant      = "018f0000-0000-7000-8000-000000000001"
)

// installation has its own topics, on which it runs a processor.
type installation struct {
	t        *testing.T
	cfg      kafka.Config
	topology *kafka.Topology
	codec    *schemas.Codec
	producer *kgo.Client
	keys     *secret.Keys
	metrics  *prometheus.Registry // of the processor that runs
}

func install(t *testing.T) *installation {
	t.Helper()
	ctx := t.Context()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Partitions: 2}
	producer, err := cfg.Producer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	if _, err := kafka.Migrate(ctx, cfg, producer); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(ctx, cfg, producer)
	if err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(ctx, client, true)
	if err != nil {
		t.Fatal(err)
	}
	return &installation{t: t, cfg: cfg, topology: topology, codec: codec, producer: producer, keys: secret.GenerateKeys()}
}

// process runs a processor until the returned function is called.
func (i *installation) process(now func() time.Time) (stop func()) {
	i.t.Helper()
	return i.run(now, false)
}

// bodies proves and verifies bodies.
func (i *installation) bodies() *secret.MACs {
	i.t.Helper()
	macs, err := i.keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		i.t.Fatal(err)
	}
	return macs
}

func (i *installation) run(now func() time.Time, acceptUnsigned bool) (stop func()) {
	i.t.Helper()
	senders, err := commands.NewVerifier(i.keys, processor.Senders())
	if err != nil {
		i.t.Fatal(err)
	}
	i.metrics = prometheus.NewRegistry()
	p, err := processor.New(processor.Config{Codec: i.codec, Topology: i.topology, Senders: senders, AcceptUnsigned: acceptUnsigned, Bodies: i.bodies(), Verify: decisions.Verify(i.keys), Metrics: i.metrics})
	if err != nil {
		i.t.Fatal(err)
	}
	r, err := runtime.New(runtime.Config{
		Name: "checkout", Brokers: i.cfg.Brokers, Group: i.cfg.Prefix + "processor", TransactionalID: i.cfg.Prefix + "checkout-0",
		InputTopic: i.topology.Name(schemas.TopicCommands), StateTopic: i.topology.Name(schemas.TopicState), PoisonTopic: i.topology.Name(schemas.TopicPoisonCommands),
		Processor: p, Now: now, Log: servers.Logger(i.t), Metrics: i.metrics,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			i.t.Errorf("processor: %v", err)
		}
	}
}

func (i *installation) send(cmds ...checkout.Command) {
	i.t.Helper()
	for n, cmd := range cmds {
		if cmd.ReplyTo == nil {
			cmd.ReplyTo = &checkout.ReplyTo{CorrelationID: fmt.Sprintf("%s/%T/%d", cmd.SessionID, cmd.Do, n), Partition: 1}
		}
		r, err := mapping.FromCommand(cmd)
		if err != nil {
			i.t.Fatal(err)
		}
		value, err := i.codec.Encode(r)
		if err != nil {
			i.t.Fatal(err)
		}
		i.raw(senderOf(cmd.Do), value)
	}
}

// senderOf returns the part that sends a command in these tests.
func senderOf(do checkout.Action) string {
	switch do.(type) {
	case checkout.Confirmed:
		return processor.SenderERP
	case checkout.Resolve:
		return processor.SenderCases
	}
	return processor.SenderIngress
}

// raw sends a value as a sender, or without a signature if the sender is empty.
func (i *installation) raw(sender string, value []byte) {
	i.t.Helper()
	topic := schemas.TopicCommands
	rec := &kgo.Record{Topic: i.topology.Name(topic), Partition: i.topology.Partition(topic, tenant), Value: value}
	if sender != "" {
		signer, err := commands.NewSigner(i.keys, sender)
		if err != nil {
			i.t.Fatal(err)
		}
		signer.Sign(rec)
	}
	i.produce(rec)
}

func (i *installation) produce(rec *kgo.Record) {
	i.t.Helper()
	if err := i.producer.ProduceSync(i.t.Context(), rec).FirstErr(); err != nil {
		i.t.Fatal(err)
	}
}

// read waits for n committed records of a topic and returns them. More records are an
// error.
func (i *installation) read(topic string, n int) []*kgo.Record {
	i.t.Helper()
	cl, err := i.cfg.Client(kgo.ConsumeTopics(i.topology.Name(topic)), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		i.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(i.t.Context(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			i.t.Fatalf("%s has %d records, want %d", topic, len(out), n)
		}
		out = append(out, fetches.Records()...)
	}
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if out = append(out, cl.PollFetches(short).Records()...); len(out) != n {
		i.t.Errorf("%s has %d records, want %d", topic, len(out), n)
	}
	return out
}

func decode[T any, R interface {
	*T
	record.Record
}](i *installation, records []*kgo.Record) []T {
	i.t.Helper()
	out := make([]T, len(records))
	for n, rec := range records {
		if err := i.codec.Decode(rec.Value, R(&out[n])); err != nil {
			i.t.Fatal(err)
		}
	}
	return out
}

func create(id, order string, at time.Time) checkout.Command {
	return checkout.Command{At: at, SessionID: id, ApplicationID: application, Do: checkout.Create{
		Session: checkout.Session{
			ID: id, ApplicationID: application, TenantID: tenant, OrderID: order, Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted,
			Customer: &checkout.Customer{Phone: "+242066000001"}, ClientSecretHash: []byte("h"), ClientSecretSealed: []byte("sealed"),
			Metadata: map[string]string{checkout.MetadataERPDueRef: "DUE-1"}, PaymentRef: "0000000000000001", NoticeID: "n", NoticeRef: "AV20260000000001",
			TransactionID: "018f0000-0000-7000-8000-0000000000ff",
			Offers:        []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}}, ExpiresAt: at.Add(time.Hour),
		},
		IdempotencyKey: "key-" + id, BodyHash: []byte(order), CreationsPerMinute: 100,
	}}
}

func pay(id string, at time.Time) []checkout.Command {
	return []checkout.Command{
		{At: at, SessionID: id, Do: checkout.Collect{
			CollectionID: "c-" + id, OfferID: checkout.OfferMomo, Payer: "242066000001", PayerMasked: "+242 06 ••• •• 01", Total: 5075,
			ApprovalWindow: 5 * time.Minute, SendWithin: time.Minute,
		}},
		{At: at.Add(time.Second), SessionID: id, Do: checkout.Outcome{
			CollectionID: "c-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "op-1",
		}},
	}
}

func TestPaymentThroughKafka(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	stop := i.process(func() time.Time { return now })
	defer stop()
	i.send(create("chs_a", "o", now))
	i.send(pay("chs_a", now)...)
	i.send(create("chs_b", "o", now))

	written := i.read(schemas.TopicEvents, 3)
	events := decode[record.Event](i, written)
	for n, e := range events {
		if r := written[n]; string(r.Key) != tenant || r.Partition != i.topology.Partition(schemas.TopicCommands, tenant) {
			t.Errorf("event %d has the key %q in partition %d, not those of its agency", n, r.Key, r.Partition)
		}
		if e.Sequence != int64(n+1) || e.Session == nil || e.Session.Sequence != e.Sequence {
			t.Errorf("event %d: %+v", n, e)
		}
		if e.Session.Customer != nil || len(e.Session.ClientSecretSealed) > 0 {
			t.Errorf("%s contains contact data or a secret, and is kept for ever", e.Type)
		}
	}
	if got := []string{events[0].Type, events[1].Type, events[2].Type}; !slices.Equal(got, []string{"checkout.created", "collection.requested", "checkout.completed"}) {
		t.Errorf("events are %v", got)
	}

	replies := map[string]string{}
	for _, r := range decode[record.Reply](i, i.read(schemas.TopicReplies, 4)) {
		replies[r.CorrelationID] = r.Code
	}
	want := map[string]string{
		"chs_a/checkout.Create/0": "ok", "chs_a/checkout.Collect/0": "ok", "chs_a/checkout.Outcome/1": "ok", "chs_b/checkout.Create/0": "checkout.order_paid",
	}
	if !maps.Equal(replies, want) {
		t.Errorf("replies are %v", replies)
	}

	requests := decode[record.CollectionRequest](i, i.read(schemas.TopicCollections, 1))
	if r := requests[0]; r.Kind != "collect" || r.Payer != "242066000001" || r.Amount != 5075 || !r.NotAfter.Equal(now.Add(time.Minute)) {
		t.Errorf("collection request is %+v", r)
	}

	hooks := decode[record.Notification](i, i.read(schemas.TopicWebhooks, 1))
	var body map[string]any
	if err := json.Unmarshal(hooks[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{ // docs/design/decisions.md § 5
		"event_id", "event", "api_version", "created_at", "livemode", "sequence", "application_id", "tenant_id", "session_id", "order_id", "amount",
		"currency", "status", "paid", "payment_ref", "metadata", "service_code", "service_label",
		"notice_id", "transaction_id", "channel", "offer_id", "operator_ref", "fee_amount", "total_amount", "completed_at",
	} {
		if _, ok := body[field]; !ok {
			t.Errorf("the webhook lacks %s: %s", field, hooks[0].Body)
		}
		delete(body, field)
	}
	if len(body) > 0 {
		t.Errorf("the webhook has additional fields: %v", body)
	}
	if hooks[0].EventID != events[2].EventID {
		t.Errorf("webhook %s, event %s", hooks[0].EventID, events[2].EventID)
	}

	confirmations := decode[record.Notification](i, i.read(schemas.TopicConfirmations, 1))
	var c map[string]any
	if err := json.Unmarshal(confirmations[0].Body, &c); err != nil {
		t.Fatal(err)
	}
	if c["erp_due_ref"] != "DUE-1" || c["amount_minor"] != 5000.0 || c["transaction_id"] != confirmations[0].EventID || c["partial"] != false {
		t.Errorf("confirmation is %s", confirmations[0].Body)
	}
}

// An ERP's refusal is a case of the session, once. A retry writes a second notification of
// the same id for the planner, in the transaction of the case's exit. Both survive as state
// does: the processor starts again in between.
func TestConfirmationThroughKafka(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	clock := func() time.Time { return now }
	stop := i.process(clock)
	cmd := create("chs_a", "o", now)
	do, _ := cmd.Do.(checkout.Create)
	do.Session.ERP = true
	cmd.Do = do
	i.send(cmd)
	i.send(pay("chs_a", now)...)
	refused := checkout.Command{At: now, SessionID: "chs_a", Do: checkout.Confirmed{
		TransactionID: do.Session.TransactionID, Answer: checkout.AnswerRefused, AnsweredAt: now.Add(time.Second), Reason: "http_422",
	}}
	i.send(refused, refused)
	events := decode[record.Event](i, i.read(schemas.TopicEvents, 4))
	if e := events[3]; e.Type != "confirmation.refused" || e.Session.Confirmation == nil || e.Session.Confirmation.Status != "refused" || e.Detail[checkout.DetailReason] != "http_422" {
		t.Fatalf("the event is %+v", e)
	}
	stop()
	defer i.process(clock)()
	retry := checkout.Command{At: now.Add(time.Minute), SessionID: "chs_a", Do: signed(t, i.keys, mapping.ToSession(events[3].Session), now, func(do *checkout.Resolve, _, _ *casework.Signed) { do.Resolution = checkout.ResolutionRetry })}
	i.send(refused, retry, retry)
	i.send(checkout.Command{At: now.Add(time.Hour), SessionID: "chs_a", Do: checkout.Confirmed{
		TransactionID: do.Session.TransactionID, Answer: checkout.AnswerAccepted, AnsweredAt: now.Add(time.Hour),
	}})
	events = decode[record.Event](i, i.read(schemas.TopicEvents, 7))
	if got := []string{events[4].Type, events[5].Type, events[6].Type}; !slices.Equal(got, []string{"case.resolved", "confirmation.retried", "confirmation.accepted"}) {
		t.Errorf("events are %v", got)
	}
	n := decode[record.Notification](i, i.read(schemas.TopicConfirmations, 2))
	if n[1].Request != "again" || !n[1].RequestedAt.Equal(now.Add(time.Minute)) || n[1].EventID != n[0].EventID || !n[1].OccurredAt.Equal(n[0].OccurredAt) || string(n[1].Body) != string(n[0].Body) {
		t.Errorf("the notifications are %+v", n)
	}
	i.read(schemas.TopicPoisonCommands, 0)
}

// A payment of init-checkout and one of partners/payments. The state survives a restart: the
// numbers go on, a number finds its payment, and the created payment is updated.
func TestPaymentsOfTheCashInSurfaceThroughKafka(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	stop := i.process(clock)
	payment := func(id string, kind checkout.CashinKind, paymentID, amount int64) checkout.Session {
		do, _ := create(id, "case-1", now).Do.(checkout.Create)
		s := do.Session
		s.Amount, s.Metadata = amount, nil
		s.Cashin = &checkout.Cashin{Kind: kind, PaymentID: paymentID, Type: "service", Items: []byte(`[{"number":"1","price":10.50}]`), WebhookURL: "https://partner.example/hook"}
		return s
	}
	command := func(id string, do checkout.Action) checkout.Command {
		return checkout.Command{At: now, SessionID: id, ApplicationID: application, Do: do, ReplyTo: &checkout.ReplyTo{CorrelationID: id}}
	}
	i.send(command("chs_a", checkout.InitCheckout{Session: payment("chs_a", checkout.CashinInit, 11, 5000)}))
	i.send(command("chs_b", checkout.PartnerPay{
		Session: payment("chs_b", checkout.CashinPartner, 12, 5000),
		Collect: checkout.Collect{CollectionID: "c-b", OfferID: checkout.OfferMomo, Payer: "242066000001", Total: 5075, ApprovalWindow: 5 * time.Minute, SendWithin: 15 * time.Second},
		Word:    &checkout.ReplyTo{CorrelationID: "word", Partition: 2},
	}))
	i.read(schemas.TopicReplies, 2)
	stop()
	defer i.process(clock)()
	i.send(command("chs_c", checkout.InitCheckout{Session: payment("chs_c", checkout.CashinInit, 13, 6000)}))
	i.send(command("look", checkout.LookUp{Number: "T2611000002"}))
	i.send(command("unknown", checkout.LookUp{Number: "T2611000003"}))

	replies := map[string]record.Reply{}
	for _, r := range decode[record.Reply](i, i.read(schemas.TopicReplies, 5)) {
		replies[r.CorrelationID] = r
	}
	for id, want := range map[string]struct {
		session, number string
		paymentID       int64
		amount          int64
	}{
		"chs_a": {"chs_a", "T2611000001", 11, 5000}, "chs_b": {"chs_b", "T2611000002", 12, 5000},
		"chs_c": {"chs_a", "T2611000001", 11, 6000}, "look": {"chs_b", "T2611000002", 12, 5000},
	} {
		r := replies[id]
		if r.Code != "ok" || r.Session == nil || r.Session.ID != want.session || r.Session.Amount != want.amount || r.Session.Cashin.Number != want.number || r.Session.Cashin.PaymentID != want.paymentID {
			t.Errorf("%s is answered %+v", id, r)
		}
	}
	if r := replies["unknown"]; r.Code != "checkout.session_not_found" || r.Session != nil {
		t.Errorf("an unknown number is answered %+v", r)
	}
	requests := decode[record.CollectionRequest](i, i.read(schemas.TopicCollections, 1))
	if r := requests[0]; r.Kind != "collect" || r.SessionID != "chs_b" || r.WordCorrelationID != "word" || r.WordPartition != 2 || !r.NotAfter.Equal(now.Add(15*time.Second)) {
		t.Errorf("the request is %+v", r)
	}
	events := decode[record.Event](i, i.read(schemas.TopicEvents, 4))
	types := []string{events[0].Type, events[1].Type, events[2].Type, events[3].Type}
	if !slices.Equal(types, []string{"checkout.created", "checkout.created", "collection.requested", "checkout.updated"}) {
		t.Errorf("events are %v", types)
	}
	if e := events[1]; e.Detail[checkout.DetailNumber] != "T2611000002" || e.Detail[checkout.DetailPaymentID] != "12" || string(e.Session.Cashin.Items) != `[{"number":"1","price":10.50}]` {
		t.Errorf("the creation is %+v", e)
	}
	i.read(schemas.TopicWebhooks, 0)
	i.read(schemas.TopicPoisonCommands, 0)
}

func TestTimePassesByItself(t *testing.T) {
	t.Parallel()
	i := install(t)
	begun := time.Now()
	base := begun.UTC().Truncate(time.Millisecond)
	jump := func() time.Time { // the clock jumps two hours ahead after two seconds
		if d := time.Since(begun); d > 2*time.Second {
			return base.Add(2*time.Hour + d)
		}
		return base
	}
	stop := i.process(jump)
	defer stop()
	i.send(create("chs_a", "o", base))
	events := decode[record.Event](i, i.read(schemas.TopicEvents, 2))
	if events[1].Type != "checkout.expired" || events[1].Session.Status != "expired" {
		t.Errorf("events are %+v", events)
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	stop := i.process(func() time.Time { return now })
	defer stop()
	i.raw(processor.SenderIngress, []byte("no record at all"))
	b, err := i.codec.Encode(&record.Command{Type: "session.transmogrify", SessionID: "chs_a"})
	if err != nil {
		t.Fatal(err)
	}
	i.raw(processor.SenderIngress, b)
	i.send(create("chs_a", "o", now)) // the poison record does not block later commands
	i.read(schemas.TopicEvents, 1)
	for _, rec := range i.read(schemas.TopicPoisonCommands, 2) {
		if len(rec.Headers) == 0 {
			t.Error("poison without position and error")
		}
	}
}

// A restart loses the local store and the group's offsets. The restored state still agrees
// with the events.
func TestNothingIsDecidedTwice(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	stop := i.process(func() time.Time { return now })
	i.send(create("chs_a", "o", now))
	i.send(pay("chs_a", now)...)
	i.read(schemas.TopicEvents, 3)
	stop()
	if _, err := kadm.NewClient(i.producer).DeleteGroups(t.Context(), i.cfg.Prefix+"processor"); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stop = i.process(func() time.Time { return now })
	defer stop()
	i.send(create("chs_b", "other", now))
	events := decode[record.Event](i, i.read(schemas.TopicEvents, 4))
	if events[3].SessionID != "chs_b" {
		t.Errorf("events are %+v", events)
	}
	i.read(schemas.TopicCollections, 1)
	i.read(schemas.TopicWebhooks, 1)
}
