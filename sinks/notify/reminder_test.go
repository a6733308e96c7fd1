package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/deliveries"
	"quittance/internal/erp"
	"quittance/internal/kafka"
	messages "quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/money/localtime"
	"quittance/schemas"
	"quittance/sinks/notify"
	deliverytest "quittance/test/deliveries"
	"quittance/test/erps"
)

const (
	taxes   = "018f0000-0000-7000-8000-000000000001"
	customs = "018f0000-0000-7000-8000-000000000002"
	subject = "NIU-2026-1001"
)

// town is a world with citizens, the ERPs of two agencies, and a clock that begins at nine in
// Brazzaville.
type town struct {
	*world
	accounts *citizens.Store
	erps     map[string]*erps.ERP
	reader   *sessions.Reader
	// lost makes the answers of Kafka get lost for so many messages.
	lost    atomic.Int32
	metrics []*prometheus.Registry
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{world: newWorld(t)}
	w.until(24+9, 0)
	w.erps = map[string]*erps.ERP{taxes: erps.Start(t, taxes, w.Now), customs: erps.Start(t, customs, w.Now)}
	var err error
	if w.accounts, err = citizens.New(citizens.Config{Pool: w.Pool, Keys: w.keys, Reference: secret.GenerateReferenceKey(), Now: w.Now}); err != nil {
		t.Fatal(err)
	}
	// The read model has everything of an installation without events.
	cfg := kafka.Config{Brokers: w.Kafka.Brokers, Prefix: w.Kafka.Prefix + "read-", Replication: 1, Partitions: 2}
	if _, err := kafka.Migrate(t.Context(), cfg, w.Client); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(t.Context(), cfg, w.Client)
	if err != nil {
		t.Fatal(err)
	}
	if w.reader, err = sessions.New(sessions.Config{Pool: w.Pool, Kafka: cfg, Topology: topology, Codec: w.Codec, Log: slog.New(slog.NewTextHandler(w.log, nil))}); err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, w.reader)
	w.start()
	return w
}

// until moves the clock to an hour of today in Brazzaville, or of a later day from 24 on.
func (w *town) until(hour, minute int) {
	w.t.Helper()
	now := localtime.In(w.Now())
	d := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location()).Sub(now)
	if d < 0 {
		w.t.Fatalf("the clock is past %d:%02d", hour, minute)
	}
	w.Advance(d)
}

// Fresh asks the ERP of the agency.
func (w *town) Fresh(ctx context.Context, agencyID string, live bool, ref string) (erp.Answer, error) {
	return w.erps[agencyID].Fresh(ctx, agencyID, live, ref)
}

// Send sends a message, whose acknowledgement may get lost.
func (w *town) Send(ctx context.Context, m messages.Message) error {
	err := w.sender.Send(ctx, m)
	if err == nil && w.lost.Add(-1) >= 0 {
		err = errors.New("the acknowledgement is lost")
	}
	return err
}

// remind starts an instance.
func (w *town) remind() (stop func()) {
	w.t.Helper()
	metrics := prometheus.NewRegistry()
	w.metrics = append(w.metrics, metrics)
	r, err := notify.NewReminders(notify.RemindersConfig{
		Accounts: w.accounts, Sender: w, Dues: w, Sessions: w.reader, Pause: 20 * time.Millisecond, Gap: time.Millisecond,
		Agency: func(id string) (string, bool) {
			name, ok := map[string]string{taxes: "Direction générale des impôts et des domaines", customs: "Douanes"}[id]
			return name, ok
		},
		Now: w.Now, Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: metrics,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return deliverytest.Start(w.t, r)
}

// citizen signs in with an address, links subjects of agencies, and chooses reminders.
func (w *town) citizen(a contact.Address, lang money.Language, agencies ...string) citizens.Citizen {
	t := w.t
	t.Helper()
	browser := secret.NewText(uuid.NewString())
	code, _, err := w.accounts.Begin(t.Context(), citizens.Request{Address: a, Browser: browser, Client: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	_, c, err := w.accounts.Enter(t.Context(), a, browser, code.Reveal(), lang)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range agencies {
		s := citizens.Subject{AgencyID: id, Ref: subject}
		code, err := w.accounts.LinkCode(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.accounts.Prove(t.Context(), c.ID, s, code); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.accounts.ChooseReminders(t.Context(), c.ID, a.Kind); err != nil {
		t.Fatal(err)
	}
	return c
}

// owes makes an agency's ERP state dues of the subject, by reference: outstanding amount and days
// until the due date.
func (w *town) owes(agencyID string, dues map[string][2]int) {
	w.t.Helper()
	var list []map[string]any
	for ref, d := range dues {
		list = append(list, map[string]any{
			"erp_due_ref": ref, "label": "Patente " + ref + " www.evil.example", "amount_minor": d[0], "outstanding_minor": d[0], "original_minor": 9_007_199_254_740_991, "currency": "XAF",
			"allow_partial": false, "due_date": localtime.In(w.Now()).AddDate(0, 0, d[1]).Format(time.DateOnly),
		})
	}
	body, err := json.Marshal(map[string]any{"dues": map[string]any{subject: list}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.erps[agencyID].Control(string(body))
}

func (w *town) date(days int) string {
	return localtime.In(w.Now()).AddDate(0, 0, days).Format("02/01/2006")
}

// rested waits until nothing is to be looked at for a while.
func (w *town) rested() {
	w.t.Helper()
	deliverytest.Eventually(w.t, "all accounts rest", func() bool {
		return w.count(`SELECT count(*) FROM citizen_reminders WHERE next_at < $1`, w.Now().Add(20*time.Minute)) == 0
	})
}

// again makes all accounts be looked at again, now.
func (w *town) again() {
	w.t.Helper()
	if _, err := w.Pool.Exec(w.t.Context(), `UPDATE citizen_reminders SET next_at = $1`, w.Now()); err != nil {
		w.t.Fatal(err)
	}
	w.rested()
}

// texts waits until the channel's inbox has so many messages, and returns them.
func (w *town) texts(channel provider.Channel, n int) (out []string) {
	w.t.Helper()
	deliverytest.Eventually(w.t, fmt.Sprintf("%d messages by %s", n, channel), func() bool {
		// Nothing may be on its way: each message of Kafka has a delivery with its end.
		return len(w.sim.Inbox(channel)) >= n && w.count(`SELECT count(*) FROM deliveries WHERE state NOT IN ('delivered', 'exhausted')`) == 0
	})
	inbox := w.sim.Inbox(channel)
	for _, m := range inbox {
		out = append(out, m.Subject+"\n"+m.Text)
	}
	if len(out) != n {
		w.t.Fatalf("%d messages by %s, want %d: %q", len(out), channel, n, out)
	}
	return out
}

func (w *town) total(name, outcome string) (n float64) {
	w.t.Helper()
	for _, r := range w.metrics {
		families, err := r.Gather()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == outcome {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

func address(t *testing.T, kind contact.Kind, text string) contact.Address {
	t.Helper()
	a, err := contact.Parse(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Two instances remind people a week and a day before the due date, of what the ERP says is left,
// once. Several dues are one message.
func TestReminders(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.owes(taxes, map[string][2]int{
		"WEEK": {50_000, 7}, "LATE": {1_000, 6}, "TOMORROW": {20_000, 1}, "TODAY": {300, 0}, "PAID": {0, 7}, "NEXT": {7_000, 8}, "OVER": {9, -1}, "BETWEEN": {9, 5}, "EVEN": {9, 2},
	})
	w.owes(customs, map[string][2]int{"FAR": {1, 30}, "VISA": {4_000, 7}})
	w.citizen(address(t, contact.Phone, number), money.French, taxes)
	w.citizen(address(t, contact.Email, "citoyenne@example.org"), money.French, taxes, customs)
	w.citizen(address(t, contact.Email, "reader@example.org"), money.English, customs)
	w.remind()
	w.remind()
	w.rested()
	sms := w.texts(provider.ChannelSMS, 1)[0]
	if want := "TEST - Rappel : 4 paiements à effectuer, le premier au plus tard le " + w.date(0) + ", Direction générale des impots...\n" + host + "/portal"; strings.TrimSpace(sms) != want {
		t.Errorf("SMS %q, want %q", sms, want)
	}
	for _, letter := range w.texts(provider.ChannelEmail, 2) {
		if strings.Contains(letter, "Hello") {
			for _, want := range []string{"TEST – Reminder: payment due by " + localtime.In(w.Now()).AddDate(0, 0, 7).Format("2 January 2006") + " – Douanes", "Patente VISA …: FCFA 4,000", "reference ***1001", host + "/portal/reminders"} {
				if !strings.Contains(strings.ReplaceAll(letter, "\u00a0", " "), want) {
					t.Errorf("the English letter does not say %q: %q", want, letter)
				}
			}
			continue
		}
		for _, want := range []string{
			"TEST – Rappel : 5 paiements à effectuer, le premier au plus tard le " + w.date(0) + " – plusieurs administrations", "Patente WEEK … : 50 000 FCFA, à payer au plus tard le " + w.date(7),
			"Patente LATE", "Patente TOMORROW", "Patente TODAY", "Patente VISA", "Douanes, référence ***1001", "Total : 75 300 FCFA", host + "/portal/reminders et choisissez",
		} {
			if !strings.Contains(strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(letter), want) {
				t.Errorf("the letter does not say %q: %q", want, letter)
			}
		}
		for _, hidden := range []string{subject, "PAID", "NEXT", "OVER", "BETWEEN", "EVEN", "FAR", "evil"} {
			if strings.Contains(letter, hidden) {
				t.Errorf("the letter says %s: %q", hidden, letter)
			}
		}
	}
	w.again()
	w.texts(provider.ChannelSMS, 1)
	w.texts(provider.ChannelEmail, 2)

	// The day after: a due comes near, and the ERP moves the date of another one.
	w.until(24+8, 1)
	w.owes(taxes, map[string][2]int{"WEEK": {50_000, 7}, "NEXT": {7_000, 7}, "TOMORROW": {20_000, 0}})
	w.again()
	if got := w.texts(provider.ChannelSMS, 2); !strings.Contains(strings.Join(got, ""), "Rappel : 7 000 FCFA à payer au plus tard le "+w.date(7)) {
		t.Errorf("%q", got)
	}
	w.texts(provider.ChannelEmail, 3)

	// The ERP postpones a due of which people were reminded.
	w.until(24*5+8, 1)
	w.owes(taxes, map[string][2]int{"WEEK": {50_000, 7}})
	w.again()
	if got := w.texts(provider.ChannelSMS, 3); !strings.Contains(strings.Join(got, ""), "Rappel : 50 000 FCFA à payer au plus tard le "+w.date(7)) {
		t.Errorf("%q", got)
	}
	w.texts(provider.ChannelEmail, 5) // VISA is due tomorrow
	w.again()
	w.texts(provider.ChannelSMS, 3)
	if n := w.total("quittance_reminder_dues_total", "reminded"); n != 4+5+1+1+1+4 {
		t.Errorf("%v dues are counted", n)
	}
	for _, hidden := range []string{"066000001", "06 600 00 01", "citoyenne", subject} {
		if strings.Contains(w.log.String(), hidden) {
			t.Errorf("a log has %q", hidden)
		}
	}
	if n := w.count(`SELECT count(*) FROM citizen_reminded r WHERE r::text LIKE '%WEEK%' OR sent_at IS NULL`); n > 0 {
		t.Errorf("%d rows name a due, or are not sent", n)
	}
}

// Nobody is reminded while an ERP is away, of what is being paid or was just paid, or at night.
func TestRemindersWait(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.owes(taxes, map[string][2]int{"OPEN": {50_000, 7}, "RECORDING": {1_000, 7}})
	w.erps[taxes].Control(`{"away": true}`)
	c := w.citizen(address(t, contact.Phone, number), money.French, taxes)
	open := w.paid("chs_open", checkout.Customer{Name: "A"})
	open.TenantID, open.Live, open.ERP, open.Status, open.Collection = taxes, false, true, checkout.StatusOpen, nil
	open.Items = []checkout.Item{{ERPDueRef: "OPEN", Amount: 50_000, TransactionID: uuid.NewString(), NoticeRef: "AV1"}}
	paid := w.paid("chs_recording", checkout.Customer{Name: "A"})
	paid.TenantID, paid.Live, paid.ERP = taxes, false, true
	paid.Items = []checkout.Item{{ERPDueRef: "RECORDING", Amount: 1_000, TransactionID: uuid.NewString(), NoticeRef: "AV2", Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAwaited}}}
	w.project(open, paid)
	w.remind()
	w.rested()
	if n := w.total("quittance_reminder_checks_total", "incomplete"); n != 1 {
		t.Errorf("%v checks while the ERP is away", n)
	}
	w.erps[taxes].Control(`{"away": false}`)
	w.Advance(31 * time.Minute)
	w.rested()
	for outcome, want := range map[string]float64{"in_payment": 1, "recording": 1, "reminded": 0} {
		if n := w.total("quittance_reminder_dues_total", outcome); n != want {
			t.Errorf("%v dues are %s, want %v", n, outcome, want)
		}
	}
	open.Status, open.Sequence, open.EndedAt = checkout.StatusExpired, 4, w.Now()
	w.project(open)
	w.Advance(31 * time.Minute)
	w.rested()
	if got := w.texts(provider.ChannelSMS, 1); !strings.Contains(got[0], "Rappel : 50 000 FCFA à payer") {
		t.Errorf("%q", got)
	}

	// In the evening and at night nothing is made, and a message that waits lapses at eight.
	w.until(19, 29)
	w.owes(taxes, map[string][2]int{"EVENING": {1, 1}})
	w.sim.Control("sms", `{"status":503,"times":1}`)
	w.again()
	deliverytest.Eventually(t, "the message waits", func() bool {
		return w.count(`SELECT count(*) FROM deliveries WHERE state = 'waiting'`) == 1
	})
	w.until(20, 0)
	deliverytest.Eventually(t, "the message lapses", func() bool {
		return w.count(`SELECT count(*) FROM deliveries WHERE state = 'exhausted'`) == 1
	})
	w.owes(taxes, map[string][2]int{"NIGHT": {2, 1}})
	if _, err := w.Pool.Exec(t.Context(), `UPDATE citizen_reminders SET next_at = $1`, w.Now()); err != nil {
		t.Fatal(err)
	}
	checks := w.total("quittance_reminder_checks_total", "done")
	time.Sleep(200 * time.Millisecond) // ten rounds: nothing happens that could be awaited
	w.until(24+7, 59)
	time.Sleep(200 * time.Millisecond)
	if n := w.total("quittance_reminder_checks_total", "done"); n != checks {
		t.Errorf("%v accounts are looked at during the night", n-checks)
	}
	w.until(8, 0)
	w.rested()
	if got := w.texts(provider.ChannelSMS, 2); !strings.Contains(strings.Join(got, ""), "Rappel : 2 FCFA à payer au plus tard le "+w.date(0)) {
		t.Errorf("%q", got)
	}

	// The link is removed.
	links, err := w.accounts.Links(t.Context(), c.ID)
	if err != nil || len(links) != 1 {
		t.Fatal(links, err)
	}
	if _, err := w.accounts.Unlink(t.Context(), c.ID, links[0].ID); err != nil {
		t.Fatal(err)
	}
	w.owes(taxes, map[string][2]int{"MORE": {3, 1}})
	w.again()
	w.texts(provider.ChannelSMS, 2)
}

// A process dies after it has sent a message and before it has recorded that. The message is made
// again with the same id, so the person gets it once, and a due that came meanwhile is in another
// one.
func TestRemindersAfterADeath(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.owes(taxes, map[string][2]int{"A": {50_000, 7}, "B": {1_000, 1}})
	w.lost.Store(1)
	w.citizen(address(t, contact.Phone, number), money.French, taxes)
	stop := w.remind()
	deliverytest.Eventually(t, "the check fails", func() bool { return w.total("quittance_reminder_checks_total", "failed") == 1 })
	w.texts(provider.ChannelSMS, 1)
	stop()
	w.owes(taxes, map[string][2]int{"A": {50_000, 7}, "C": {2_000, 1}})
	w.remind()
	w.remind()
	w.Advance(2 * time.Minute)
	w.rested()
	got := w.texts(provider.ChannelSMS, 2)
	if joined := strings.Join(got, ""); !strings.Contains(joined, "2 paiements") || !strings.Contains(joined, "Rappel : 2 000 FCFA") {
		t.Errorf("%q", got)
	}
	deliverytest.Eventually(t, "two deliveries of three records", func() bool {
		return w.count(`SELECT count(*) FROM deliveries WHERE state = $1`, deliveries.StateDelivered) == 2 && len(w.Records(t, schemas.TopicMessages)) == 3
	})
}

// With the largest amounts and long names an SMS takes one segment.
func TestRemindersAreOneSegment(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.owes(taxes, map[string][2]int{"A": {9_007_199_254_740_991, 1}})
	w.citizen(address(t, contact.Phone, number), money.English, taxes)
	w.remind()
	w.rested()
	got := strings.TrimSpace(w.texts(provider.ChannelSMS, 1)[0])
	if n, ok := messages.Septets(got); !ok || n > 160 {
		t.Errorf("%d septets, %v: %q", n, ok, got)
	}
}
