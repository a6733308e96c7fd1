package notify_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"quittance/test/httpclient"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/deliveries"
	"quittance/internal/notify/payment"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/sinks/notify"
	deliverytest "quittance/test/deliveries"
)

// contacts finds the customers of sessions in the store. All accounts are of English.
type contacts struct{ *personal.Store }

func (contacts) Language(context.Context, string) (money.Language, error) { return money.English, nil }

// announcer makes an announcer of the world, with its metrics.
func (w *world) announcer() (*notify.Announcer, *prometheus.Registry) {
	w.t.Helper()
	metrics := prometheus.NewRegistry()
	a, err := notify.NewAnnouncer(notify.AnnouncerConfig{
		Kafka: w.Kafka, Codec: w.Codec, Contacts: contacts{w.personal}, Sender: w.sender,
		Agency: func(id string) (payment.Agency, bool) {
			return payment.Agency{Name: "Direction générale des impôts", Address: "Avenue de l’Indépendance", Phone: "+242 22 000 00 00", Email: "contact@impots.example"}, id == "agency"
		},
		Now: w.Now, Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: metrics,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a, metrics
}

// paid returns a completed session whose customer has contact data.
func (w *world) paid(id string, c checkout.Customer) checkout.Session {
	w.t.Helper()
	sealed, err := w.personal.SealCustomer(w.t.Context(), id, c)
	if err != nil {
		w.t.Fatal(err)
	}
	return checkout.Session{
		ID: id, TenantID: "agency", Live: true, OrderID: "2026-0001", Description: "Patente 2026 www.ailleurs.example", Mode: checkout.ModeHosted, Currency: "XAF", Amount: 5000, CustomerSealed: sealed, Status: checkout.StatusCompleted, Sequence: 3,
		PaymentRef: "4821093755612048", TransactionID: uuid.NewString(), NoticeID: uuid.NewString(), NoticeRef: "AV20260000000001", CreatedAt: w.Now(), EndedAt: w.Now(),
		Collection: &checkout.Collection{
			ID: "c", OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Amount: 5075, Fee: 75, Currency: "XAF", Status: checkout.CollectionApproved, OperatorRef: "op1", RequestedAt: w.Now(), DecidedAt: w.Now(),
		},
	}
}

// project writes sessions to the read model.
func (w *world) project(all ...checkout.Session) {
	w.t.Helper()
	w.projected(false, all...)
}

func (w *world) projected(erased bool, all ...checkout.Session) {
	w.t.Helper()
	snapshots := make([]sessions.Snapshot, len(all))
	for i, s := range all {
		value, err := w.Codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt_" + s.ID, Type: checkout.EventCompleted, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: w.Now(), Session: s}))
		if err != nil {
			w.t.Fatal(err)
		}
		snapshots[i] = sessions.Snapshot{Session: s, Value: value, Erased: erased}
	}
	if err := sessions.NewStore(w.Pool).Apply(w.t.Context(), snapshots, nil); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) event(kind checkout.EventType, s checkout.Session, detail map[string]string) *kgo.Record {
	w.t.Helper()
	value, err := w.Codec.Encode(mapping.FromEvent(checkout.Event{
		ID: "evt_" + string(kind) + strings.TrimPrefix(s.ID, "chs_"), Type: kind, SessionID: s.ID, Sequence: 3, OccurredAt: w.Now().Truncate(time.Millisecond), Session: s, Detail: detail,
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	return &kgo.Record{Topic: w.Kafka.Prefix + schemas.TopicEvents, Key: []byte(s.TenantID), Value: value}
}

func (w *world) publish(records ...*kgo.Record) {
	w.t.Helper()
	client, err := w.Kafka.Client()
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// Whoever gave contact data is told once of what became of the money: a receipt, a reversal,
// money that was given back. Events that are read twice tell nobody twice.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	payer := checkout.Customer{Name: "A", Email: "Payeuse@example.org", Phone: number}
	whole := w.paid("chs_whole", payer)
	abroad := w.paid("chs_abroad", checkout.Customer{Phone: "+33 6 12 34 56 78"})
	nameOnly := w.paid("chs_nobody", checkout.Customer{Name: "B"})
	erased := w.paid("chs_erased", payer)
	if err := w.personal.Forget(t.Context(), "chs_erased"); err != nil {
		t.Fatal(err)
	}
	broken := w.paid("chs_broken", payer)
	broken.CustomerSealed = []byte("sealed by nobody")
	partner := w.paid("chs_partner", payer)
	partner.Cashin = &checkout.Cashin{}
	test := w.paid("chs_test", checkout.Customer{Email: "essai@example.org"})
	test.Live = false
	citizen := w.paid("chs_citizen", checkout.Customer{Email: "compte@example.org"})
	citizen.CitizenID = "018f0000-0000-7000-8000-00000000000c"
	reversed := w.paid("chs_reversed", checkout.Customer{Email: "annule@example.org"})
	reversed.ReversedAt = w.Now()
	partly := w.paid("chs_partly", checkout.Customer{Email: "partie@example.org"}) // the other due stays paid
	partly.Items = []checkout.Item{
		{Label: "Vignette 2026", Amount: 900, TransactionID: "tx-1"},
		{Label: "Patente 2026 www.ailleurs.example", Amount: 5000, Fee: 75, TransactionID: "tx-2", ReversedAt: w.Now()},
	}
	late := w.paid("chs_late", checkout.Customer{Email: "tard@example.org"})
	late.Status = checkout.StatusExpired
	late.Cases = []checkout.Case{{Case: casework.Case{ID: "case1", Kind: checkout.CaseLatePayment, Amount: 5075, Currency: "XAF", Resolution: checkout.ResolutionRefund}, CollectionID: "c"}}

	honoured := w.paid("chs_honoured", checkout.Customer{Email: "honore@example.org"}) // two days after the money came
	honoured.Late = true

	stale := w.event(checkout.EventCompleted, w.paid("chs_stale", payer), nil)
	w.Advance(49 * time.Hour)
	records := []*kgo.Record{
		stale, w.event(checkout.EventCreated, whole, nil), w.event(checkout.EventCompleted, whole, nil), w.event(checkout.EventCompleted, abroad, nil),
		w.event(checkout.EventCompleted, nameOnly, nil), w.event(checkout.EventCompleted, erased, nil), w.event(checkout.EventCompleted, broken, nil), w.event(checkout.EventCompleted, partner, nil),
		w.event(checkout.EventCompleted, test, nil), w.event(checkout.EventCompleted, citizen, nil), w.event(checkout.EventReversed, reversed, map[string]string{checkout.DetailWasCompleted: "true"}),
		w.event(checkout.EventPartiallyReversed, partly, map[string]string{checkout.DetailTransactionIDs: "tx-2"}), w.event(checkout.EventReversed, late, map[string]string{checkout.DetailWasCompleted: "false"}), w.event(checkout.EventCompleted, honoured, nil),
		w.event(checkout.EventCaseResolved, late, map[string]string{checkout.DetailCaseID: "case1", checkout.DetailResolution: "refund"}),
		{Topic: w.Kafka.Prefix + schemas.TopicEvents, Value: []byte("no event")},
	}
	a, metrics := w.announcer()
	w.publish(append(records, records...)...)
	w.project(whole, abroad, nameOnly, test, citizen, reversed, honoured)
	w.start()
	deliverytest.Start(t, a)
	want := map[string]string{
		"payeuse@example.org": "Reçu de votre paiement", "essai@example.org": "TEST – Reçu de votre paiement", "compte@example.org": "Receipt of your payment",
		"annule@example.org": "Paiement annulé –", "partie@example.org": "Paiement annulé en partie", "tard@example.org": "Somme restituée", "honore@example.org": "Reçu de votre paiement",
	}
	deliverytest.Eventually(t, "all messages are delivered", func() bool {
		return w.count(`SELECT count(*) FROM deliveries WHERE state = $1`, deliveries.StateDelivered) == len(want)+1
	})
	deliverytest.Eventually(t, "all events are announced", func() bool {
		return count(t, metrics, "made") == 16 && count(t, metrics, "nobody") == 2 && count(t, metrics, "erased") == 2 && count(t, metrics, "unreachable") == 4 && count(t, metrics, "stale") == 2
	})
	letters := w.sim.Inbox(provider.ChannelEmail)
	if len(letters) != len(want) {
		t.Errorf("%d letters: %+v", len(letters), letters)
	}
	for _, l := range letters {
		if !strings.HasPrefix(l.Subject, want[l.To]) || !strings.Contains(plain(l.Text), "4821 0937 5561 2048") ||
			!strings.Contains(plain(l.Text), "5 075 FCFA") && !strings.Contains(plain(l.Text), "FCFA 5,075") {
			t.Errorf("%+v", l)
		}
		object, dossier, reach := "Objet : Patente 2026 …", "Numéro de dossier : 2026-0001", "Téléphone : +242 22 000 00 00"
		if strings.Contains(l.Subject, "your payment") { // of the portal, whose order is no dossier
			object, dossier, reach = "For: Patente 2026 …", "", "Phone: +242 22 000 00 00"
		}
		if strings.Contains(l.Text, "Vignette") {
			t.Errorf("the letter is about a due that stays paid: %s", l.Text)
		}
		for _, says := range []string{object, dossier, reach, "contact@impots.example"} {
			if !strings.Contains(plain(l.Text), says) {
				t.Errorf("the letter %q does not say %q: %s", l.Subject, says, l.Text)
			}
		}
		if page := host + "/c/chs_"; strings.Contains(l.Subject, "Re") != strings.Contains(l.Text, page) {
			t.Errorf("%s: %s", l.Subject, l.Text)
		}
	}
	w.files()
	sms := w.received()
	if len(sms) != 1 || sms[0].To != arrived || !strings.Contains(sms[0].Text, "Direction générale des impots : paiement de 5 075 FCFA encaissé le") || !strings.Contains(sms[0].Text, "(Patente 2026 ...)") || !strings.HasSuffix(sms[0].Text, host+"/c/chs_whole") {
		t.Errorf("SMS: %+v", sms)
	}
	// Whoever erases the session erases what was written about it.
	const keys = `SELECT count(*) FROM personal_keys k JOIN deliveries d ON d.event_id = k.session_id WHERE d.session_id = $1`
	if n := w.count(keys, whole.ID); n == 0 {
		t.Error("the session's messages have no keys before the erasure")
	}
	whole.Sequence, whole.CustomerSealed = 5, nil
	w.projected(true, whole)
	if n, other := w.count(keys, whole.ID), w.count(keys, citizen.ID); n != 0 || other == 0 {
		t.Errorf("after the erasure %d keys of messages about the session are left, and %d of another", n, other)
	}
	for _, hidden := range []string{"066000001", "payeuse", "essai@", "chs_"} {
		if strings.Contains(strings.ToLower(w.log.String()), hidden) {
			t.Errorf("a log has %q", hidden)
		}
	}
	if !strings.Contains(w.log.String(), "does not open") {
		t.Error("no log tells of contact data that does not open")
	}
}

// files checks what letters have attached: a receipt has its file, whose bytes are those of the
// receipt that anybody can get from its page.
func (w *world) files() {
	t := w.t
	answer, err := httpclient.Default.Get(w.sim.URL + "/inbox/mail")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var letters []struct {
		To          string `json:"to"`
		Attachments []struct {
			Name        string `json:"name"`
			ContentType string `json:"content_type"`
			Size        int    `json:"size"`
		} `json:"attachments"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&letters); err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		receipt := l.To == "payeuse@example.org" || l.To == "essai@example.org" || l.To == "compte@example.org" || l.To == "honore@example.org"
		if receipt != (len(l.Attachments) == 1) {
			t.Errorf("a letter has the files %+v", l.Attachments)
			continue
		}
		if receipt && (!strings.HasSuffix(l.Attachments[0].Name, "AV20260000000001.pdf") || l.Attachments[0].ContentType != "application/pdf" || l.Attachments[0].Size < 10_000) {
			t.Errorf("a receipt is the file %+v", l.Attachments[0])
		}
	}
}

// plain returns the text with plain spaces.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
}

func count(t *testing.T, metrics *prometheus.Registry, outcome string) int {
	t.Helper()
	found, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range found {
		for _, m := range family.GetMetric() {
			if family.GetName() == "quittance_announcements_total" && m.GetLabel()[0].GetValue() == outcome {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}
