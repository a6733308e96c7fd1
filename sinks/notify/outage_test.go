package notify_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/deliveries"
	messages "quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/schemas"
	"quittance/sinks/notify"
	deliverytest "quittance/test/deliveries"
)

// Both providers are away for a day. Messages wait and arrive once when they are back; codes lapse.
func TestProvidersAwayForADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.sim.Control("sms", `{"status":503}`)
	w.sim.Control("mail", `{"status":421}`)
	const mail = "away@example.org"
	sms, letter := w.tell(messages.Reversed, provider.ChannelSMS, number, "away"), w.tell(messages.NewLink, provider.ChannelEmail, mail, "away")
	code := w.code("away", "101010")
	w.await(code, deliveries.StateWaiting, "busy:SERVICE_UNAVAILABLE")
	for n, step := range []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 17 * time.Hour} {
		w.Advance(step + time.Second)
		// The delays of the kinds are at most these steps, so each step makes a call, but the last one.
		for _, id := range []string{sms, letter} {
			deliverytest.Eventually(t, "a call fails", func() bool {
				return w.count(`SELECT coalesce(max(attempts), 0) FROM deliveries WHERE event_id = $1 AND state = 'waiting'`, id) >= min(n+1, 5)
			})
		}
	}
	w.await(code, deliveries.StateExhausted, "not_sent_again")
	if a, b := w.received(), w.sim.Inbox(provider.ChannelEmail); len(a)+len(b) > 0 {
		t.Errorf("%d SMS and %d e-mails arrived during the outage", len(a), len(b))
	}
	w.sim.Control("sms", `{"reset":true}`)
	w.sim.Control("mail", `{"reset":true}`)
	w.Advance(8 * time.Hour)
	w.await(sms, deliveries.StateDelivered, "")
	w.await(letter, deliveries.StateDelivered, "")
	if a, b := w.received(), w.sim.Inbox(provider.ChannelEmail); len(a) != 1 || a[0].ID != sms || len(b) != 1 || b[0].ID != letter+"@pay.example" {
		t.Errorf("after the outage arrived: %+v, %+v", a, b)
	}
}

// The wait for the limits of an address used up the attempts of its messages: after a flood of one
// address, a single failure of the mail server gave them up. It also must not hold up a code.
func TestLimitsUseUpNoAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const to = "flooded@example.org"
	for _, about := range []string{"1", "2", "3", "4"} {
		w.await(w.tell(messages.Reversed, provider.ChannelEmail, to, about), deliveries.StateDelivered, "")
	}
	waits := w.tell(messages.Reversed, provider.ChannelEmail, to, "waits")
	w.await(waits, deliveries.StateWaiting, "limited")
	if n := w.count(`SELECT attempts FROM deliveries WHERE event_id = $1`, waits); n != 0 {
		t.Errorf("the limits used up %d attempts", n)
	}
	w.sim.Control("mail", `{"status":451,"times":1}`)
	code := w.send(provider.ChannelEmail, to, "flooded", "202020")
	w.await(code, deliveries.StateWaiting, "busy:smtp_451")
	w.Advance(6 * time.Second)
	w.await(code, deliveries.StateDelivered, "")
	w.sim.Control("mail", `{"status":451,"times":1}`)
	w.Advance(time.Hour)
	w.await(waits, deliveries.StateWaiting, "busy:smtp_451")
	if n := w.count(`SELECT attempts FROM deliveries WHERE event_id = $1`, waits); n != 1 {
		t.Errorf("%d attempts after the first call", n)
	}
	w.Advance(time.Minute + time.Second)
	w.await(waits, deliveries.StateDelivered, "")
}

// A worker that dies between the call and its record leaves an e-mail that is sent again, with the
// same Message-ID: nobody knows that the mail server has it. After the record it is not sent
// again, although the worker that reads it again asks for it to be sent.
func TestMailKilledBetweenSendAndRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	whole, died := w.providers[provider.ChannelEmail], make(chan struct{})
	w.providers[provider.ChannelEmail] = dying{whole, died}
	cfg := w.config()
	deliverytest.Start(t, deliverytest.Planner(t, cfg), w.schedule())
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	worker := deliverytest.Worker(t, cfg)
	go func() { ended <- worker.Run(ctx) }()
	id := w.tell(messages.Reversed, provider.ChannelEmail, "killed@example.org", "killed")
	<-died
	kill()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	w.providers[provider.ChannelEmail] = whole
	for range 2 { // the second worker finds the message recorded
		stop := deliverytest.Start(t, deliverytest.Worker(t, w.config()))
		w.await(id, deliveries.StateDelivered, "")
		stop()
	}
	got := w.sim.Inbox(provider.ChannelEmail)
	if len(got) != 2 || got[0].ID != got[1].ID || !strings.HasPrefix(got[0].ID, id) {
		t.Errorf("arrived: %+v, want the message of the dead worker and the one after it", got)
	}
}

// A call that times out after the provider has the message is made again, unless it is a code. The
// person may get such a message twice, and gets it at least once.
func TestTimesOutAfterItSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.sim.Control("sms", `{"hang":true,"report":"none","times":1}`)
	id := w.tell(messages.Reversed, provider.ChannelSMS, number, "times out")
	w.await(id, deliveries.StateWaiting, "unknown:timeout")
	if n := w.count(`SELECT count(*) FROM message_reports WHERE message_id = $1 AND accepted_at IS NULL`, id); n != 1 {
		t.Error("a call without an answer is recorded as accepted")
	}
	w.sim.Control("sms", `{"report":"none","times":1}`)
	w.Advance(time.Minute + time.Second)
	w.await(id, deliveries.StateDelivered, "")
	if got := w.received(); len(got) != 2 || got[0].ID != id || got[1].ID != id {
		t.Errorf("arrived: %+v, want the same message twice", got)
	}
}

// A code whose record waits for a slow Postgres until its life is over is not sent.
func TestCodeLapsesWhilePostgresIsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.code("slow", "303030")
	records := w.Records(t, schemas.TopicMessages)
	planned, err := messages.Plan(w.Codec, records[len(records)-1].Value)
	if err != nil || len(planned) != 1 {
		t.Fatal(planned, err)
	}
	slow, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := slow.Exec(t.Context(), `LOCK TABLE message_sends IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	policy, reason := w.config().Policy, make(chan string)
	go func() {
		r := policy.Send(t.Context(), &planned[0])
		reason <- r.Reason()
	}()
	deliverytest.Eventually(t, "the record of the call waits", func() bool {
		return w.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'message_sends'::regclass`) > 0
	})
	w.Advance(messages.SignInCode.Life)
	if err := slow.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-reason; got != "expired" {
		t.Errorf("the attempt ends with %q", got)
	}
	if got := w.received(); len(got) > 0 {
		t.Errorf("arrived after its life: %+v", got)
	}
	if n := w.count(`SELECT count(*) FROM message_reports WHERE message_id = $1`, id); n > 0 {
		t.Error("a report on a call that was not made is awaited")
	}
}

// Two workers had the same receipt, because the first one lost its partition while it waited for
// the payment in the read model. The second one sent the receipt, and the first one sent it again.
func TestAcceptedMailIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.paid("chs_two_workers", checkout.Customer{Name: "A"})
	id := messages.MessageID(messages.Receipt, provider.ChannelEmail, s.ID)
	w.tell(messages.Receipt, provider.ChannelEmail, "two@example.org", s.ID)
	records := w.Records(t, schemas.TopicMessages)
	planned, err := messages.Plan(w.Codec, records[len(records)-1].Value)
	if err != nil || len(planned) != 1 || planned[0].EventID != id {
		t.Fatal(planned, err)
	}
	// The first worker waits for a table that the test has locked: after its first question whether
	// the message was accepted, and before its call.
	policy, second := w.config().Policy, w.config().Policy
	w.project(s)
	slow, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := slow.Exec(t.Context(), `LOCK TABLE message_addresses IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	first := make(chan string)
	go func() {
		r := policy.Send(t.Context(), &planned[0])
		first <- r.Reason()
	}()
	deliverytest.Eventually(t, "the first worker waits", func() bool {
		return w.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'message_addresses'::regclass`) > 0
	})
	if err := messages.NewSends(w.Pool).Accepted(t.Context(), id, w.Now()); err != nil { // by the second one
		t.Fatal(err)
	}
	if err := slow.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reason := <-first; reason != "" {
		t.Errorf("the first worker's attempt ends with %q", reason)
	}
	if r := second.Send(t.Context(), &planned[0]); r.Reason() != "" || r.Status != 200 {
		t.Errorf("the attempt of a later worker ends with %q", r.Reason())
	}
	if n := len(w.sim.Inbox(provider.ChannelEmail)); n != 0 {
		t.Errorf("the accepted receipt was sent %d times again", n)
	}
	// An operator's named redelivery is sent.
	planned[0].DeliveryID = deliveries.RedeliveryID(notify.Kind, id, planned[0].DestinationID, "asked")
	if r := second.Send(t.Context(), &planned[0]); r.Reason() != "" || r.Status != 200 {
		t.Errorf("the redelivery ends with %q", r.Reason())
	}
	if n := len(w.sim.Inbox(provider.ChannelEmail)); n != 1 {
		t.Errorf("%d receipts arrived, want the redelivery", n)
	}
}
