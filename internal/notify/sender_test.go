package notify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/kafka"
	"quittance/internal/notify"
	"quittance/internal/personal"
	"quittance/internal/postgres"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// A wrong message is refused before anything is stored or written, with the field and the mend,
// and without its address.
func TestSenderRefuses(t *testing.T) {
	t.Parallel()
	codec := deliverytest.Codec(t, servers.SchemaRegistry(t))
	dsn := servers.Migrated(t)
	pool, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := personal.New(personal.Config{Pool: pool, Keys: secret.GenerateKeys(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	sender, err := notify.NewSender(notify.SenderConfig{
		Kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}, Codec: codec, Personal: store, Addresses: notify.NewAddresses(pool),
		Reference: secret.GenerateReferenceKey(), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	good := func() notify.Message {
		return notify.Message{
			ID: notify.MessageID(notify.SignInCode, provider.ChannelSMS, "1"), Kind: notify.SignInCode, Channel: provider.ChannelSMS, To: "06 600 00 01",
			Variables: map[string]string{"code": "123456"}, At: time.Now(),
		}
	}
	for _, row := range []struct {
		field  string
		change func(*notify.Message)
	}{
		{"ID", func(m *notify.Message) { m.ID = "msg_1" }},
		{"Kind", func(m *notify.Message) { m.Kind.Name = "other" }},
		{"Kind", func(m *notify.Message) { m.Kind = notify.Kind{} }},
		{"Channel", func(m *notify.Message) { m.Channel = "pigeon" }},
		{"Locale", func(m *notify.Message) { m.Locale = "ln" }},
		{"At", func(m *notify.Message) { m.At = time.Time{} }},
		{"Variables.code", func(m *notify.Message) { m.Variables = nil }},
		{"Variables.code", func(m *notify.Message) { m.Variables = map[string]string{"code": "https://evil.example"} }},
		{"Variables.code", func(m *notify.Message) { m.Variables = map[string]string{"code": strings.Repeat("1", 1000)} }},
		{"Variables.name", func(m *notify.Message) { m.Variables["name"] = "x" }},
		{"Variables.dues", func(m *notify.Message) { m.Kind, m.Variables = notify.DueReminder, notify.DueReminder.Samples }}, // of e-mails only
		{"To", func(m *notify.Message) { m.To = "" }},
		{"To", func(m *notify.Message) { m.To = "+33 6 12 34 56 78" }},
		{"To", func(m *notify.Message) { m.To = "22 281 00 00" }},
		{"To", func(m *notify.Message) { m.To = "+1 900 555 0100" }},
		{"To", func(m *notify.Message) { m.Channel, m.To = provider.ChannelEmail, "nobody" }},
		{"To", func(m *notify.Message) { m.Channel, m.To = provider.ChannelEmail, "a@b.example, c@d.example" }},
		{"To", func(m *notify.Message) { m.Channel, m.To = provider.ChannelEmail, "Nom <a@b.example>" }},
		{"To", func(m *notify.Message) { m.Channel, m.To = provider.ChannelEmail, "a@b.example\r\nBcc: c@d.example" }},
		{"To", func(m *notify.Message) { m.Channel, m.To = provider.ChannelEmail, "a@localhost" }},
		{"To", func(m *notify.Message) {
			m.Channel, m.To = provider.ChannelEmail, strings.Repeat("a", 250)+"@b.example"
		}},
	} {
		m := good()
		row.change(&m)
		err := sender.Send(t.Context(), m)
		var e *notify.FieldError
		if !errors.As(err, &e) || e.Field != row.field || m.To != "" && strings.Contains(err.Error(), m.To) {
			t.Errorf("%+v: %v, want it to name %s", m, err, row.field)
		}
	}
	var keys int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM personal_keys`).Scan(&keys); err != nil || keys > 0 {
		t.Errorf("%d keys of refused messages, %v", keys, err)
	}
}

// One address has one destination, however it is written. Two channels and two addresses have
// two, and another installation has others.
func TestDestinations(t *testing.T) {
	t.Parallel()
	b := deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t), Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
	store, err := personal.New(personal.Config{Pool: b.Pool, Keys: secret.GenerateKeys(), Now: b.Now})
	if err != nil {
		t.Fatal(err)
	}
	send := func(key *secret.ReferenceKey, channel provider.Channel, addresses ...string) {
		sender, err := notify.NewSender(notify.SenderConfig{Kafka: b.Kafka, Codec: b.Codec, Personal: store, Addresses: notify.NewAddresses(b.Pool), Reference: key, Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sender.Close)
		for _, to := range addresses {
			if err := sender.Send(t.Context(), notify.Message{
				ID: notify.MessageID(notify.SignInCode, channel, to), Kind: notify.SignInCode, Channel: channel, To: to, Variables: map[string]string{"code": "123456"}, At: b.Now(),
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	key := secret.GenerateReferenceKey()
	send(key, provider.ChannelSMS, "06 600 00 01", "+242 06 600 00 01", "00242066000001", "066000002")
	send(key, provider.ChannelEmail, "A.Name@Example.org", "a.name@example.org", "other@example.org")
	send(secret.GenerateReferenceKey(), provider.ChannelSMS, "06 600 00 01")
	count := map[string]int{}
	for _, r := range b.Records(t, schemas.TopicMessages) {
		var m record.Message
		if err := b.Codec.Decode(r.Value, &m); err != nil {
			t.Fatal(err)
		}
		if string(r.Key) != m.DestinationID || !m.NotAfter.Equal(m.OccurredAt.Add(10*time.Minute)) {
			t.Errorf("the key is %s: %+v", r.Key, m)
		}
		count[m.DestinationID]++
	}
	if len(count) != 5 {
		t.Errorf("%d destinations, want 5: %v", len(count), count)
	}
}
