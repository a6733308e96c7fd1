package notify_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/deliveries"
	messages "quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/notify"
	deliverytest "quittance/test/deliveries"
)

// reported waits for the state of a message that its provider reports on.
func (w *world) reported(id string, want messages.ReportState) {
	w.t.Helper()
	var got messages.Reported
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the report on the message is %+v", got)
		}
	}()
	deliverytest.Eventually(w.t, "the message is reported as "+string(want), func() bool {
		all, err := w.reports.Of(w.t.Context(), []string{id})
		if err != nil {
			w.t.Fatal(err)
		}
		got = all[id]
		return got.State == want
	})
}

// tellWith sends a message to a number, with the reports that follow, until it is accepted.
func (w *world) tellWith(reports, to, about string) string {
	w.t.Helper()
	w.sim.Control("sms", `{"report":"`+reports+`","times":1}`)
	id := w.tell(messages.Reversed, provider.ChannelSMS, to, about)
	w.await(id, deliveries.StateDelivered, "")
	return id
}

// The whole path: the sink asks for reports, the simulated provider makes them, the edge receives
// them. Its parts share one installation.
func TestDeliveryReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.reportsInAnyOrder()
	w.reportedBeforeTheAnswer()
	w.phoneOff()
	w.noSubscriber()
	for _, hidden := range []string{"066000001", "066000005", "/callbacks/messages/"} {
		if strings.Contains(w.log.String(), hidden) {
			t.Errorf("a log has %q", hidden)
		}
	}
}

func (w *world) reportsInAnyOrder() {
	for reports, want := range map[string]messages.ReportState{
		"delivered": messages.ReportDelivered, "undelivered": messages.ReportUndelivered, "twice": messages.ReportDelivered,
		"disordered": messages.ReportDelivered, "early": messages.ReportDelivered, "none": messages.ReportSent,
	} {
		w.reported(w.tellWith(reports, numberOf(len(reports)), reports), want)
	}
	stranger := w.tellWith("stranger", "+242 06 600 00 30", "stranger")
	deliverytest.Eventually(w.t, "the report on a message that was never sent has come", func() bool {
		return metric(w.t, w.edgeMetrics, "quittance_message_reports_total", "unknown_message") > 0
	})
	w.reported(stranger, messages.ReportSent)
}

// metric sums the counters of a name that have a label with the value.
func metric(t *testing.T, from *prometheus.Registry, name, value string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				if f.GetName() == name && l.GetValue() == value {
					sum += one.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// numberOf returns a number that no other test uses.
func numberOf(n int) string { return "+242 06 600 01 " + strconv.Itoa(10+n) }

// A message whose answer never came is not sent again when its report says that it was delivered:
// neither a code, nor a message of a kind that is tried again.
func (w *world) reportedBeforeTheAnswer() {
	t := w.t
	w.received()
	const early = `{"hang":true,"report":"early","times":1}`
	w.sim.Control("sms", early)
	id := w.tell(messages.Reversed, provider.ChannelSMS, "+242 06 600 00 05", "no answer")
	w.await(id, deliveries.StateWaiting, "unknown:timeout")
	w.reported(id, messages.ReportDelivered)
	w.Advance(2 * time.Minute)
	w.await(id, deliveries.StateDelivered, "")

	w.sim.Control("sms", early)
	code := w.send(provider.ChannelSMS, "+242 06 600 00 05", "no answer", "246810")
	w.await(code, deliveries.StateExhausted, "unknown:timeout")
	w.reported(code, messages.ReportDelivered)
	if got := w.received(); len(got) != 2 {
		t.Errorf("%d SMS arrived, want one of each message", len(got))
	}
}

// A phone that is off is no number without a subscriber, however often.
func (w *world) phoneOff() {
	const off = "+242 06 600 00 06"
	for n := range 4 {
		w.reported(w.tellWith("absent", off, "off "+strconv.Itoa(n)), messages.ReportUndelivered)
	}
}

// A number whose messages are accepted and reach nobody, three times in a row, gets codes only
// until one is entered. A message that is delivered in between begins anew.
func (w *world) noSubscriber() {
	t := w.t
	const to = "+242 06 600 00 07"
	nobody := func(about string) { w.reported(w.tellWith("undelivered", to, about), messages.ReportUndelivered) }
	nobody("a")
	nobody("b")
	w.reported(w.tellWith("delivered", to, "c"), messages.ReportDelivered)
	w.Advance(2 * time.Hour)
	nobody("d")
	nobody("e")
	nobody("f")
	w.await(w.tell(messages.Reversed, provider.ChannelSMS, to, "g"), deliveries.StateExhausted, "suppressed")
	code := w.send(provider.ChannelSMS, to, "code to a suppressed number", "135791")
	w.reported(code, messages.ReportDelivered)
	w.await(w.tell(messages.Reversed, provider.ChannelSMS, to, "h"), deliveries.StateExhausted, "suppressed")
	if err := w.sender.Reached(t.Context(), provider.ChannelSMS, to, w.Now()); err != nil {
		t.Fatal(err)
	}
	w.Advance(2 * time.Hour)
	w.reported(w.tellWith("delivered", to, "i"), messages.ReportDelivered)
}

// MTN reports on all messages to the one address that was registered.
func TestDeliveryReportsOfMTN(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.SubscribeMTN(messages.ReportURL(w.keys, w.edge, "mtnsms", ""))
	w.open(provider.ChannelSMS, w.sim.MTNReporting(), 2*time.Second)
	policy := w.config().Policy
	for reports, want := range map[string]messages.ReportState{"delivered": messages.ReportDelivered, "undelivered": messages.ReportUndelivered, "disordered": messages.ReportDelivered} {
		d := w.planned(messages.Reversed, numberOf(40+len(reports)), "mtn "+reports)
		w.sim.Control("sms", `{"report":"`+reports+`","times":1}`)
		if r := policy.Send(t.Context(), &d); r.Fault != "" {
			t.Fatalf("sending by MTN: %s", r.Reason())
		}
		w.reported(d.EventID, want)
	}
}

// planned returns the delivery of a message, for a test that runs no planner.
func (w *world) planned(kind messages.Kind, to, about string) record.Delivery {
	w.t.Helper()
	id := w.tell(kind, provider.ChannelSMS, to, about)
	records := w.Records(w.t, schemas.TopicMessages)
	for i := len(records) - 1; i >= 0; i-- {
		planned, err := messages.Plan(w.Codec, records[i].Value)
		if err != nil {
			w.t.Fatal(err)
		}
		if planned[0].EventID == id {
			return planned[0]
		}
	}
	w.t.Fatal("the message is not in its topic")
	return record.Delivery{}
}

// A worker that ends between the provider's answer and the record of the outcome leaves a message
// that the next worker does not send again, also of a kind that is sent at least once.
func TestAcceptedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.planned(messages.Reversed, number, "accepted")
	w.sim.Control("sms", `{"report":"none"}`)
	for n := range 2 {
		if r := w.config().Policy.Send(t.Context(), &d); r.Fault != "" || r.Status != 200 {
			t.Errorf("attempt %d: %s", n+1, r.Reason())
		}
	}
	// Its life is over when the next worker reads it: it was called expired, as if it had not been sent.
	w.Advance(messages.Reversed.Life)
	if r := w.config().Policy.Send(t.Context(), &d); r.Fault != "" || r.Status != 200 {
		t.Errorf("after its life: %s", r.Reason())
	}
	if got := w.received(); len(got) != 1 {
		t.Errorf("%d SMS arrived, want 1", len(got))
	}
}

// Without Postgres nothing is sent: a report could come before anybody knew of the message.
func TestNoCallWithoutRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.planned(messages.Reversed, number, "unrecorded")
	if _, err := w.Pool.Exec(t.Context(), `ALTER TABLE message_reports RENAME TO message_reports_away`); err != nil {
		t.Fatal(err)
	}
	if r := w.config().Policy.Send(t.Context(), &d); r.Reason() != "database" {
		t.Errorf("the attempt ends with %q", r.Reason())
	}
	if got := w.received(); len(got) > 0 {
		t.Errorf("%d SMS arrived", len(got))
	}
}

// The sink gives up waiting for reports after three days, and counts these messages.
func TestUnreportedMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.planned(messages.Reversed, number, "silent")
	w.sim.Control("sms", `{"report":"none"}`)
	policy, ok := w.config().Policy.(*notify.Policy)
	if r := policy.Send(t.Context(), &d); !ok || r.Fault != "" {
		t.Fatal(r.Reason())
	}
	w.Advance(73 * time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- policy.Run(ctx) }()
	w.reported(d.EventID, messages.ReportUnknown)
	deliverytest.Eventually(t, "the message is counted", func() bool {
		return metric(t, w.metrics, "quittance_messages_unreported_total", "infobip") == 1
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// A message that the provider refuses has no report to come: nobody waits for one.
func TestRefusedByAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := w.config().Policy
	for _, refusal := range []string{"permanent", "temporary", "unknown"} {
		d := w.planned(messages.Reversed, number, refusal)
		w.sim.Control("sms", `{"refuse":"`+refusal+`","times":1}`)
		if r := policy.Send(t.Context(), &d); r.Fault == "" {
			t.Errorf("%s: the message is accepted", refusal)
		}
		if n := w.count(`SELECT count(*) FROM message_reports WHERE message_id = $1`, d.EventID); n > 0 {
			t.Errorf("%s: a report is awaited", refusal)
		}
	}
	if n := w.count(`SELECT max(unknown) FROM message_addresses`); n != 1 {
		t.Errorf("%d answers say that the number has no subscriber, want 1", n)
	}
}
