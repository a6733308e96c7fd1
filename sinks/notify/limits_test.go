package notify_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/deliveries"
	messages "quittance/internal/notify"
	"quittance/internal/provider"
)

// tell sends a message that is no code and returns its id.
func (w *world) tell(kind messages.Kind, channel provider.Channel, to, about string) string {
	w.t.Helper()
	id := messages.MessageID(kind, channel, about)
	variables := maps.Clone(kind.Samples)
	if channel == provider.ChannelSMS {
		maps.DeleteFunc(variables, func(name, _ string) bool { return slices.Contains(kind.InEmail, name) })
	}
	err := w.sender.Send(w.t.Context(), messages.Message{
		ID: id, Kind: kind, Channel: channel, To: to, Variables: variables, SessionID: about, Live: true, At: w.Now(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// Nobody gets more than four messages an hour and ten a day besides codes. Those about money
// wait, others lapse. An address that reaches nobody gets codes only, until one is entered.
func TestWhatAnAddressGets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.limits("busy@example.org")
	w.suppressed()
	w.reversedMeanwhile()
	w.agencyGone()
}

func (w *world) limits(to string) {
	for n := range messages.PerHour {
		w.await(w.tell(messages.Reversed, provider.ChannelEmail, to, "s"+strconv.Itoa(n)), deliveries.StateDelivered, "")
	}
	waits := w.tell(messages.Reversed, provider.ChannelEmail, to, "waits")
	w.await(waits, deliveries.StateWaiting, "limited")
	w.await(w.tell(messages.NewPasskey, provider.ChannelEmail, to, "lapses"), deliveries.StateExhausted, "limited")
	w.await(w.tell(messages.DueReminder, provider.ChannelEmail, to, "lapses"), deliveries.StateExhausted, "limited")
	w.await(w.send(provider.ChannelEmail, to, "a code", "121212"), deliveries.StateDelivered, "")
	w.await(w.tell(messages.Reversed, provider.ChannelEmail, "idle@example.org", "other"), deliveries.StateDelivered, "")
	w.Advance(time.Hour + time.Minute)
	w.await(waits, deliveries.StateDelivered, "")
	for n := messages.PerHour + 1; n < messages.PerDay; n++ {
		if n == 2*messages.PerHour {
			w.Advance(time.Hour + time.Minute)
		}
		w.await(w.tell(messages.Reversed, provider.ChannelEmail, to, "s"+strconv.Itoa(n)), deliveries.StateDelivered, "")
	}
	w.Advance(time.Hour + time.Minute)
	day := w.tell(messages.Reversed, provider.ChannelEmail, to, "of the day")
	w.await(day, deliveries.StateWaiting, "limited")
	w.Advance(22 * time.Hour)
	w.await(day, deliveries.StateDelivered, "")
}

func (w *world) suppressed() {
	t := w.t
	const gone = "gone@example.org"
	w.sim.Control("mail", `{"status":550,"times":1}`)
	w.await(w.tell(messages.Reversed, provider.ChannelEmail, gone, "bounces"), deliveries.StateExhausted, "refused:smtp_550")
	w.await(w.tell(messages.Reversed, provider.ChannelEmail, gone, "not sent"), deliveries.StateExhausted, "suppressed")
	w.await(w.send(provider.ChannelEmail, gone, "code", "343434"), deliveries.StateDelivered, "")
	if err := w.sender.Reached(t.Context(), provider.ChannelEmail, "GONE@example.org", w.Now()); err != nil {
		t.Fatal(err)
	}
	w.await(w.tell(messages.Reversed, provider.ChannelEmail, gone, "sent again"), deliveries.StateDelivered, "")

	// A server that refuses for another reason says nothing of the mailbox, and is counted: a relay
	// that was misconfigured for an hour refused everybody, and nobody was told.
	refusals := func() float64 { return metric(t, w.metrics, "quittance_messages_refused_total", "smtp") }
	before := refusals()
	w.sim.Control("mail", `{"status":554,"times":1}`)
	w.await(w.tell(messages.Reversed, provider.ChannelEmail, "here@example.org", "refused"), deliveries.StateExhausted, "refused:smtp_554")
	w.await(w.tell(messages.Reversed, provider.ChannelEmail, "here@example.org", "taken"), deliveries.StateDelivered, "")
	if before != 0 || refusals() != 1 {
		t.Errorf("%v refusals after a mailbox that does not exist, %v after another one; want 0 and 1", before, refusals())
	}

	for n := range 3 {
		w.sim.Control("sms", `{"refuse":"unknown","times":1}`)
		w.await(w.tell(messages.Reversed, provider.ChannelSMS, number, "unknown "+strconv.Itoa(n)), deliveries.StateExhausted, "refused:EC_UNKNOWN_SUBSCRIBER")
	}
	w.await(w.tell(messages.Reversed, provider.ChannelSMS, number, "a fourth"), deliveries.StateExhausted, "suppressed")
}

// A receipt that was not sent when its payment was reversed is not sent.
func (w *world) reversedMeanwhile() {
	s := w.paid("chs_given_back", checkout.Customer{Name: "A"})
	w.project(s)
	w.sim.Control("mail", `{"status":451,"times":1}`)
	id := w.tell(messages.Receipt, provider.ChannelEmail, "late@example.org", "chs_given_back")
	w.await(id, deliveries.StateWaiting, "busy:smtp_451")
	s.ReversedAt, s.Sequence = w.Now(), 4
	w.project(s)
	w.Advance(2 * time.Minute)
	w.await(id, deliveries.StateExhausted, "reversed")
}

// A receipt of an agency that the registry has no more cannot be made. The letter leads to its
// page, and waited in vain for a file before.
func (w *world) agencyGone() {
	s := w.paid("chs_gone", checkout.Customer{Name: "A"})
	s.TenantID = "gone"
	w.project(s)
	w.await(w.tell(messages.Receipt, provider.ChannelEmail, "waits@example.org", s.ID), deliveries.StateDelivered, "")
}
