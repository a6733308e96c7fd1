package contract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/dev/stack/program"
	"quittance/internal/kafka"
	"quittance/internal/notify"
	"quittance/internal/personal"
	"quittance/internal/postgres"
	"quittance/internal/provider"
	"quittance/internal/secret"
	deliverytest "quittance/test/deliveries"
	"quittance/test/harness"
)

// A message that is sent in an `up` is in the simulated inbox soon, as JSON and on a page,
// where a developer reads the code.
func TestMessagesInTheInbox(t *testing.T) {
	t.Parallel()
	up := harness.Shared(t)
	sender := messagesOf(t, up)
	code := uuid.NewString()[:8]
	for channel, to := range map[provider.Channel]string{provider.ChannelSMS: "06 600 00 71", provider.ChannelEmail: code + "@example.org"} {
		err := sender.Send(t.Context(), notify.Message{
			ID: notify.MessageID(notify.SignInCode, channel, code), Kind: notify.SignInCode, Channel: channel, To: to, Locale: "en",
			Variables: map[string]string{notify.VariableCode: code}, At: time.Now().UTC(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for box, to := range map[string]string{"sms": "242066000071", "mail": code + "@example.org"} {
		harness.Eventually(t, "the message is in the inbox "+box, func() error {
			var got []struct{ To, Text string }
			if err := json.Unmarshal([]byte(inbox(t, up, box, "application/json")), &got); err != nil {
				return err
			}
			for _, m := range got {
				if m.To == to && strings.Contains(m.Text, code) {
					return nil
				}
			}
			return errors.New("it is not there")
		})
		if page := inbox(t, up, box, "text/html"); !strings.Contains(page, code) || !strings.Contains(page, "<h1>") {
			t.Errorf("the page of %s does not show the code", box)
		}
	}
}

// The simulated provider reports that an SMS was delivered. Operators see it, with the message.
func TestDeliveryReportOfAnSMS(t *testing.T) {
	t.Parallel()
	up := harness.Shared(t)
	sender := messagesOf(t, up)
	id := notify.MessageID(notify.SignInCode, provider.ChannelSMS, uuid.NewString())
	err := sender.Send(t.Context(), notify.Message{
		ID: id, Kind: notify.SignInCode, Channel: provider.ChannelSMS, To: "06 600 00 72", Variables: map[string]string{notify.VariableCode: "135246"}, At: time.Now().UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := harness.Operator{Up: up}
	type delivery struct {
		ID     string
		Report struct {
			State      string
			SentAt     time.Time `json:"sent_at"`
			ReportedAt time.Time `json:"reported_at"`
		}
	}
	var list []delivery
	harness.Eventually(t, "the message is reported as delivered", func() error {
		o.JSON(t, &list, "deliveries", "list", "--event-id", id)
		if len(list) == 1 && list[0].Report.State == "delivered" && !list[0].Report.SentAt.IsZero() && !list[0].Report.ReportedAt.IsZero() {
			return nil
		}
		return fmt.Errorf("it is %+v", list)
	})
	var one delivery
	if o.JSON(t, &one, "deliveries", "show", list[0].ID); one != list[0] {
		t.Errorf("show has %+v, list %+v", one, list[0])
	}
	o.Says(t, "REPORT", "deliveries", "list", "--event-id", id)
	o.Says(t, "delivered, ", "deliveries", "show", list[0].ID)
	if n := up.Metric(t, `quittance_message_reports_total{outcome="delivered",provider="infobip"}`); n < 1 {
		t.Errorf("the metric counts %v reports", n)
	}

	// The address for all reports of MTN, as an operator gives it to MTN.
	keys, _ := keysOf(t, up)
	var address struct{ Provider, URL string }
	o.JSON(t, &address, "deliveries", "report-url", "mtnsms", "--callback-url", up.URL(harness.AtService, ""))
	if want := notify.ReportURL(keys, up.URL(harness.AtService, ""), "mtnsms", ""); address.Provider != "mtnsms" || address.URL != want {
		t.Errorf("the address is %+v, want %s", address, want)
	}
	body := `{"clientCorrelatorId":"` + id + `","deliveryStatus":"DELIVERED"}`
	if a := up.Call(t, http.MethodPost, address.URL, body); a.Status != http.StatusNotFound {
		t.Errorf("a report of MTN on a message that Infobip has: %d", a.Status)
	}
	if a := up.Call(t, http.MethodPost, address.URL, "{}"); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "clientCorrelatorId") {
		t.Errorf("a bad report: %d %s", a.Status, a.Body)
	}
	o.Misused(t, "infobip, mtnsms", "deliveries", "report-url", "smtp", "--callback-url", "https://pay.example")
	o.Misused(t, "--callback-url", "deliveries", "report-url", "mtnsms")
}

func inbox(t *testing.T, up *harness.Up, box, accept string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, up.URL(harness.AtSimulators, "/inbox/"+box), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := up.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// located returns an address that an `up` has written for the commands of its user.
func located(t *testing.T, up *harness.Up, name string) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "quittance", fmt.Sprintf("up-%d.json", up.Port)))
	if err != nil {
		t.Fatal(err)
	}
	var addresses map[string]string
	if err := json.Unmarshal(text, &addresses); err != nil {
		t.Fatal(err)
	}
	return addresses[name]
}

// keysOf returns the keys of an `up`.
func keysOf(t *testing.T, up *harness.Up) (*secret.Keys, *secret.ReferenceKey) {
	t.Helper()
	key := func(name string) string {
		text, err := os.ReadFile(filepath.Join(up.Data(), name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	keys := up.Keys(t)
	reference, err := secret.ParseReferenceKey(key("reference.key"))
	if err != nil {
		t.Fatal(err)
	}
	return keys, reference
}

// messagesOf returns a sender with the keys of an `up`.
func messagesOf(t *testing.T, up *harness.Up) *notify.Sender {
	t.Helper()
	keys, reference := keysOf(t, up)
	pool, err := postgres.Open(t.Context(), located(t, up, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := personal.New(personal.Config{Pool: pool, Keys: keys, Now: func() time.Time { return time.Now().UTC() }})
	if err != nil {
		t.Fatal(err)
	}
	sender, err := notify.NewSender(notify.SenderConfig{
		Kafka: kafka.Config{Brokers: []string{program.Local(up.Port + harness.AtBroker)}}, Codec: deliverytest.Codec(t, up.URL(6, "")),
		Personal: store, Addresses: notify.NewAddresses(pool), Reference: reference, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	return sender
}
