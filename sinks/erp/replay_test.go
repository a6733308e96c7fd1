package erp_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/sinks/erp"
	deliverytest "quittance/test/deliveries"
)

// paid returns the event of a payment of a due of the agency.
func paid(id string, at time.Time) checkout.Event {
	return checkout.Event{
		ID: "evt_" + id, Type: checkout.EventCompleted, SessionID: "chs_" + id, Sequence: 3, OccurredAt: at,
		Session: checkout.Session{
			ID: "chs_" + id, TenantID: "agency", ApplicationID: "app", OrderID: "order-" + id, PaymentRef: "0000000000000097", NoticeRef: "AV20260000000001", TransactionID: "tx-" + id,
			Status: checkout.StatusCompleted, Sequence: 3, Amount: 5000, Currency: "XAF", Metadata: map[string]string{checkout.MetadataERPDueRef: "due-" + id},
			CreatedAt: at, ExpiresAt: at, EndedAt: at,
			Collection: &checkout.Collection{ID: "col-" + id, Status: checkout.CollectionApproved, Channel: checkout.ChannelMobileMoney, OfferID: "momo", Amount: 5075, Fee: 75, OperatorRef: "op-" + id, PayerMasked: "+242 06 ••• •• 01", DecidedAt: at},
		},
	}
}

// An agency gets an ERP after payments whose notifications are gone from erp.confirmations.
// A replay of checkout.events confirms each payment once, with the bytes that the processor
// would have sent. It confirms no payment that was given back, or that the planner is about
// to confirm, or that the ERP has accepted long ago.
func TestReplayFromEvents(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, "Idempotency-Key")
	e := &erps{by: map[string]registry.ERPSettings{}}
	cfg := sender(b, e)
	deliverytest.Start(t, deliverytest.Worker(t, cfg), b.Schedule(t))
	stopPlanner := deliverytest.Start(t, deliverytest.Planner(t, cfg))

	at := time.Now().UTC().Add(-100 * 24 * time.Hour).Truncate(time.Millisecond)
	begun := time.Now().Add(-time.Second)
	bodies := map[string]string{}
	happen := func(events ...checkout.Event) {
		t.Helper()
		var notifications []*record.Notification
		for _, event := range events {
			produceEvent(t, b, mapping.FromEvent(event))
			made, err := mapping.ToConfirmations(event)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range made {
				bodies[n.EventID] = string(n.Body)
			}
			notifications = append(notifications, made...)
		}
		if len(notifications) > 0 {
			b.Notify(t, schemas.TopicConfirmations, true, notifications...)
		}
	}
	reversed := paid("c", at)
	reversed.Type, reversed.Sequence, reversed.Session.Sequence = checkout.EventReversed, 4, 4
	happen(paid("a", at), paid("b", at), paid("c", at), reversed)

	adm := kadm.NewClient(b.Client)
	topic := b.Kafka.Prefix + schemas.TopicConfirmations
	planning, sending := erp.Registration(e).Planning(), erp.Registration(e).Sending()
	b.Settled(t, planning.Topic, planning.Group)
	stopPlanner()
	ends, err := adm.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adm.DeleteRecords(t.Context(), ends.Offsets()); err != nil {
		t.Fatal(err)
	}
	happen(paid("d", at)) // the planner is away and will plan this one

	auth := registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("t")}
	e.mu.Lock()
	e.by["agency/test"] = registry.ERPSettings{BaseURL: r.URL, Auth: auth, Networks: loopback}
	e.mu.Unlock()
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{erp.Registration(e)})
	replay := func(dry bool, want deliveries.Replayed) {
		t.Helper()
		got, err := store.Replay(t.Context(), deliverytest.Actor, deliveries.Replay{
			Kafka: b.Kafka, Codec: b.Codec, Kind: erp.Kind, FromEvents: true, Since: begun, Until: time.Now().Add(time.Minute), Now: b.Now, Bodies: deliverytest.Bodies(), DryRun: dry,
		})
		if err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	replay(true, deliveries.Replayed{Events: 4, Reversed: 1, Made: 2, UnderWay: 1})
	replay(false, deliveries.Replayed{Events: 4, Reversed: 1, Made: 2, UnderWay: 1})
	deliverytest.Eventually(t, "accepted", func() bool {
		return b.State(t, erp.Kind, "tx-a", "agency/test") == "delivered" && b.State(t, erp.Kind, "tx-b", "agency/test") == "delivered"
	})
	b.Settled(t, sending.Topic, sending.Group)
	replay(false, deliveries.Replayed{Events: 4, Reversed: 1, Accepted: 2, UnderWay: 1})
	deliverytest.Start(t, deliverytest.Planner(t, cfg))
	deliverytest.Eventually(t, "the planner's is accepted", func() bool { return b.State(t, erp.Kind, "tx-d", "agency/test") == "delivered" })
	b.Settled(t, planning.Topic, planning.Group)
	b.Settled(t, sending.Topic, sending.Group)
	// The daily tables of deliveries are dropped after 60 days.
	if _, err := b.Pool.Exec(t.Context(), `DELETE FROM deliveries`); err != nil {
		t.Fatal(err)
	}
	replay(false, deliveries.Replayed{Events: 4, Reversed: 1, Accepted: 3})
	for _, got := range r.Got() {
		if got.Body != bodies[got.EventID] {
			t.Errorf("%s is confirmed with %s, want %s", got.EventID, got.Body, bodies[got.EventID])
		}
	}
	for id, n := range r.Count() {
		if n != 1 {
			t.Errorf("%s is confirmed %d times", id, n)
		}
	}
	if n := len(r.Count()); n != 3 {
		t.Errorf("%d payments are confirmed, want 3", n)
	}
}

func produceEvent(t *testing.T, b *deliverytest.Bench, event *record.Event) {
	t.Helper()
	value, err := b.Codec.Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	producer, err := b.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: b.Kafka.Prefix + schemas.TopicEvents, Key: []byte(event.Session.TenantID), Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
