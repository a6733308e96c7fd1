package webhook_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/disbursement"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/registries"
)

// batchEvents are the events of batches, and checkoutEvents those that integrators had before.
const (
	batchEvents    = "disbursement.completed, disbursement.line_refused, disbursement.line_returned, disbursement.line_return_withdrawn, disbursement.held"
	checkoutEvents = "checkout.completed, checkout.failed, checkout.cancelled, checkout.expired, checkout.late_payment, checkout.reversed, checkout.partially_reversed"
)

// withEndpoints returns a registry file in which endpoints at the receiver, each with a path of its own, are of the
// integrator's application of the batch's agency, of its other application, of another agency, and of the platform.
func withEndpoints(receiver, secret string) string {
	endpoint := func(path, modes, events string) string {
		return fmt.Sprintf("{url: %s/%s, secret: %s, modes: [%s], events: [%s]}", receiver, path, secret, modes, events)
	}
	const app, platform = "webhook_endpoints: [{url: http://127.0.0.1:8081/inbox/guichet", "webhook_endpoints: [{url: https://portal.example.org/hooks"
	file := strings.Replace(registries.Full, platform, "webhook_endpoints: ["+endpoint("platform", "test, live", batchEvents)+", {url: https://portal.example.org/hooks", 1)
	file = strings.Replace(file, app, "webhook_endpoints: ["+strings.Join([]string{
		endpoint("all", "test", batchEvents), endpoint("held", "test, live", "disbursement.held"), endpoint("live", "live", batchEvents), endpoint("checkout", "test, live", checkoutEvents),
	}, ", ")+", {url: http://127.0.0.1:8081/inbox/guichet", 1)
	const portal = "    portal:\n"
	file = strings.Replace(file, portal, "      - {id: 018f0000-0000-7000-8000-00000000000c, name: Autre, active: true, webhook_endpoints: ["+endpoint("other", "test, live", batchEvents)+"]}\n"+portal, 1)
	return file + "  - {id: " + registries.AgencyB + ", slug: tresor, name: Trésor, applications: [{id: " + registries.AppB + ", name: Caisse, active: true, integrator: true, webhook_endpoints: [" + endpoint("agency", "test, live", batchEvents) + "]}]}\n"
}

// withoutIntegrator is a registry in which no agency has an integrator's application.
type withoutIntegrator struct{ *registry.Registry }

func (withoutIntegrator) IntegratorOf(string) (registry.Application, bool) {
	return registry.Application{}, false
}

// The webhooks of an agency that has no integrator's application are counted as those that have no endpoint: they were lost without a
// number.
func TestEventsWithoutAnApplicationAreCounted(t *testing.T) {
	t.Parallel()
	b, i := bench(t), payouts.Install(t)
	b.Kafka = i.Kafka
	house := registries.SetUp(t)
	house.Seed(t, registries.Full)
	reg := withoutIntegrator{house.Open(t).Registry}
	policy, err := webhook.NewPolicy(webhook.Config{Endpoints: reg, Now: b.Now})
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.Sender(webhook.Registration(reg), policy)
	metrics := prometheus.NewRegistry()
	cfg.Metrics = metrics
	i.Process()
	i.Agency()
	held := i.Sealed("dsb_held", 1)
	i.OK(processor.SenderOffice, held.ID, disbursement.SetHold{By: "ben", Reason: "a doubt"})
	deliverytest.Start(t, deliverytest.Planner(t, cfg))
	b.Settled(t, schemas.Disbursement.Events, "webhook-planner")
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "_unaddressed_total") {
			counted += f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	if counted != 1 {
		t.Errorf("%v webhooks without a destination, want 1", counted)
	}
}

// The integrator's application of the batch's agency gets each event of a batch that it names, once, signed, in the
// batch's mode. Nobody else does. No body has anything of a payee or of what people write. What was planned is not sent
// again when the planner has lost its offsets; a replay of disbursement.events finds it accepted, and sends the same bytes
// under a redelivery.
func TestEventsOfBatches(t *testing.T) {
	t.Parallel()
	b, i := bench(t), payouts.Install(t)
	b.Kafka = i.Kafka
	receiver := deliverytest.NewReceiver(t, "webhook-id")
	house := registries.SetUp(t)
	house.Seed(t, withEndpoints(receiver.URL, secret1))
	reg := house.Open(t).Registry
	policy, err := webhook.NewPolicy(webhook.Config{Endpoints: reg, Now: b.Now, Timestamp: time.Now, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.Sender(webhook.Registration(reg), policy)

	i.Process()
	i.Agency()
	b.Advance(50 * time.Hour) // as the agency's clock
	deliverytest.Start(t, b.Schedule(t), deliverytest.Worker(t, cfg))
	stop := deliverytest.Start(t, deliverytest.Planner(t, cfg))

	const reason = "ask JANE DOE, 242060000009"
	held := i.Sealed("dsb_held", 1)
	i.OK(processor.SenderOffice, held.ID, disbursement.SetHold{By: "ben", Reason: reason})
	batch := i.Released("dsb_1", payroll.Line("dsb_1-0", "mtn", "", 1000), payroll.Line("dsb_1-1", "mtn", "", 1001))
	requests := payouts.NewReader[record.PayoutRequest](i, schemas.TopicPayouts)
	for asked := 0; asked < 2; {
		for _, r := range requests.Next(1) {
			if q := batches.ToRequest(&r); q.Kind == disbursement.RequestPay {
				asked++
			}
		}
	}
	word := disbursement.Word{Attempt: 1, Try: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordRefused, Code: "NOT_FOUND"}
	i.OK(processor.SenderDisburse, batch.ID, word)
	word = disbursement.Word{Position: 1, Attempt: 1, Try: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordPaid, Amount: 1001, Currency: "XAF", OperatorRef: "op-ref"}
	if done := i.OK(processor.SenderDisburse, batch.ID, word); done.Status != disbursement.StatusDone {
		t.Fatalf("the batch is %s", done.Status)
	}
	i.OK(processor.SenderMatch, batch.ID, disbursement.Word{Position: 1, Attempt: 1, Source: disbursement.FromStatement, Kind: disbursement.WordReturned, Amount: 1001, Currency: "XAF"})
	i.OK(processor.SenderMatch, batch.ID, disbursement.Word{Position: 1, Attempt: 1, Source: disbursement.FromStatement, Kind: disbursement.WordNoReturn})

	all := []string{"disbursement.completed", "disbursement.held", "disbursement.line_refused", "disbursement.line_return_withdrawn", "disbursement.line_returned"}
	deliverytest.Eventually(t, "each event arrives", func() bool {
		return slices.Equal(eventsAt(t, receiver, "/all"), all) && slices.Equal(eventsAt(t, receiver, "/held"), all[1:2])
	})

	stop()
	adm := kadm.NewClient(b.Client)
	deliverytest.Eventually(t, "the planner's offsets are lost", func() bool {
		_, err := adm.DeleteGroup(t.Context(), b.Kafka.Prefix+"webhook-planner")
		return err == nil
	})
	deliverytest.Start(t, deliverytest.Planner(t, cfg))
	b.Settled(t, schemas.Disbursement.Events, "webhook-planner")
	b.Settled(t, schemas.TopicWebhooksDeliveries, "webhook-worker")

	wh, err := standardwebhooks.NewWebhook(secret1)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for _, got := range receiver.Got() {
		if got.Path != "/all" && got.Path != "/held" {
			t.Errorf("%s gets %s", got.Path, got.Body)
		}
		if err := wh.Verify([]byte(got.Body), got.Header); err != nil {
			t.Errorf("%s: %v", got.Body, err)
		}
		for _, private := range []string{"PAYEE", "JANE", "242060", "mtn", "airtel", "op-ref", "ama", "ben", "n-ama"} {
			if strings.Contains(got.Body, private) {
				t.Errorf("the body has %q: %s", private, got.Body)
			}
		}
		if before, ok := bodies[got.EventID]; ok && before != got.Body {
			t.Errorf("the event %s has the bodies %s and %s", got.EventID, before, got.Body)
		}
		bodies[got.EventID] = got.Body
		var is struct {
			EventID     string           `json:"event_id"`
			Event       string           `json:"event"`
			Application string           `json:"application_id"`
			Tenant      string           `json:"tenant_id"`
			Live        bool             `json:"livemode"`
			Batch       string           `json:"batch"`
			Sequence    int64            `json:"sequence"`
			Status      string           `json:"status"`
			Counts      map[string]int64 `json:"counts"`
			LineRef     string           `json:"line_ref"`
			PayoutRef   string           `json:"payout_ref"`
		}
		if err := json.Unmarshal([]byte(got.Body), &is); err != nil {
			t.Fatal(err)
		}
		if is.EventID != got.EventID || is.Application != registries.AppA || is.Tenant != payroll.Tenant || is.Live || is.Sequence == 0 {
			t.Errorf("%+v", is)
		}
		line := map[string]int{"disbursement.line_refused": 0, "disbursement.line_returned": 1, "disbursement.line_return_withdrawn": 1}
		if n, ok := line[is.Event]; ok && (is.LineRef != fmt.Sprintf("dsb_1-%d", n) || is.PayoutRef != disbursement.NewAttemptID(batch.ID, n, 1).PayoutRef()) {
			t.Errorf("%+v", is)
		}
		if is.Event == "disbursement.completed" && (is.Batch != batch.ID || is.Status != "done" || is.Counts["total"] != 2 || is.Counts["paid"] != 1 || is.Counts["refused"] != 1) {
			t.Errorf("%+v", is)
		}
	}
	if got := eventsAt(t, receiver, "/all"); !slices.Equal(got, all) || len(receiver.Got()) != len(all)+1 {
		t.Errorf("%d requests, %v of them at the endpoint that names all of them", len(receiver.Got()), got)
	}

	endpoints := reg.Endpoints(registries.AppA, false, false, "disbursement.completed")
	if len(endpoints) != 1 {
		t.Fatalf("%d endpoints", len(endpoints))
	}
	replay := deliveries.Replay{
		Kafka: b.Kafka, Codec: b.Codec, Kind: webhook.Kind, Source: schemas.Disbursement.Events, Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour),
		Now: b.Now, Only: endpoints[0].ID, Bodies: deliverytest.Bodies(),
	}
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{webhook.Registration(reg)})
	replayed, err := store.Replay(t.Context(), deliverytest.Actor, replay)
	if err != nil || replayed.Events != int64(len(all)) || replayed.Accepted != int64(len(all)) || replayed.Made != 0 {
		t.Errorf("%+v, %v", replayed, err)
	}
	replay.Redelivery = "again"
	if replayed, err = store.Replay(t.Context(), deliverytest.Actor, replay); err != nil || replayed.Made != int64(len(all)) {
		t.Errorf("%+v, %v", replayed, err)
	}
	deliverytest.Eventually(t, "each arrives once more", func() bool { return len(eventsAt(t, receiver, "/all")) == 2*len(all) })
	for _, got := range receiver.Got() {
		if got.Body != bodies[got.EventID] {
			t.Errorf("sent once more, %s is %s", got.EventID, got.Body)
		}
	}
	if _, err := store.Replay(t.Context(), deliverytest.Actor, deliveries.Replay{Kafka: b.Kafka, Codec: b.Codec, Kind: webhook.Kind, Source: schemas.TopicEvents, Now: b.Now, Bodies: deliverytest.Bodies()}); err == nil {
		t.Error("webhooks are made of checkout.events")
	}
}

// eventsAt returns the names of the events that arrived at a path, sorted.
func eventsAt(t *testing.T, r *deliverytest.Receiver, path string) (names []string) {
	t.Helper()
	for _, got := range r.Got() {
		if got.Path == path {
			var is struct {
				Event string `json:"event"`
			}
			if err := json.Unmarshal([]byte(got.Body), &is); err != nil {
				t.Fatal(err)
			}
			names = append(names, is.Event)
		}
	}
	slices.Sort(names)
	return names
}
