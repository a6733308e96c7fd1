package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Message is a message to one person.
type Message struct {
	// ID makes the message unique: make it with MessageID of what the message is about. A
	// second Send with the same ID is the same message.
	ID   string
	Kind Kind
	// Channel is one of the kind's.
	Channel provider.Channel
	// To is a mobile number of +242 as people write it, or an e-mail address.
	To string
	// Locale is the language, one of Locales; empty for the first.
	Locale string
	// Variables are those of the kind. A value is at most 200 characters and has no link.
	Variables map[string]string
	// AgencyID and SessionID say what the message is about; empty where it is about none.
	AgencyID, SessionID string
	Live                bool
	// At is the time of the cause, UTC. The message's life begins then.
	At time.Time
	// NotAfter ends the message's life before that of its kind; zero: it does not.
	NotAfter time.Time
}

// maxVariable is the greatest length of a variable, in bytes, and maxInEmail that of one of
// Kind.InEmail.
const (
	maxVariable = 800
	maxInEmail  = 8000
)

// MessageID returns the id of a message: that of its kind, its channel, and what it is about,
// for example the id of a sign-in. The same arguments always give the same id.
func MessageID(kind Kind, channel provider.Channel, about ...string) string {
	sum := sha256.Sum256([]byte(kind.Name + "\x00" + string(channel) + "\x00" + strings.Join(about, "\x00")))
	return prefixID + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

const (
	prefixID = personal.MessagePrefix
	lengthID = len(prefixID) + 26
)

// SenderConfig is what a Sender needs. All fields are required.
type SenderConfig struct {
	Kafka    kafka.Config
	Codec    *schemas.Codec
	Personal *personal.Store
	// Addresses forgets that an address reached nobody; see Sender.Reached.
	Addresses *Addresses
	// Reference is the installation's reference key: an address keeps its hash for ever.
	Reference *secret.ReferenceKey
	Metrics   prometheus.Registerer
}

// Sender sends messages. Safe for concurrent use. Close it.
type Sender struct {
	cfg      SenderConfig
	mac      func(string) [sha256.Size]byte
	producer *kgo.Client
	sent     *prometheus.CounterVec
}

// NewSender makes a sender. It connects at the first message.
func NewSender(cfg SenderConfig) (*Sender, error) {
	if cfg.Codec == nil || cfg.Personal == nil || cfg.Addresses == nil || cfg.Reference == nil || cfg.Metrics == nil {
		return nil, errors.New("sender of messages: Codec, Personal, Addresses, Reference and Metrics are required")
	}
	s := &Sender{cfg: cfg, mac: cfg.Reference.MAC(labelAddresses), sent: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_messages_made_total", Help: "Messages written to Kafka, by kind and channel.",
	}, []string{"kind", "channel"})}
	for _, k := range Kinds() {
		for _, c := range k.Channels {
			s.sent.WithLabelValues(k.Name, string(c))
		}
	}
	var err error
	s.producer, err = cfg.Kafka.Client(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0))
	return s, err
}

// Close closes the connection.
func (s *Sender) Close() { s.producer.Close() }

// Send seals a message and writes it to Kafka. It returns when Kafka has acknowledged it. A
// *FieldError says that the message is wrong. After another error the message may have been
// sent; a second Send with the same ID does not send an accepted message again.
func (s *Sender) Send(ctx context.Context, m Message) error {
	to, err := m.check()
	if err != nil {
		return err
	}
	sealed, err := s.cfg.Personal.SealMessage(ctx, m.ID, personal.Message{To: to.to, Variables: m.Variables}, to.phone)
	if err != nil {
		return err
	}
	r := &record.Message{
		MessageID: m.ID, Kind: m.Kind.Name, Channel: string(m.Channel), Template: m.Kind.Template(), Locale: m.Locale,
		DestinationID: destinationOf(s.mac, to), AddressMasked: to.masked, TenantID: m.AgencyID, SessionID: m.SessionID, Livemode: m.Live,
		OccurredAt: m.At, Sealed: sealed,
	}
	if m.Kind.Life > 0 {
		r.NotAfter = m.At.Add(m.Kind.Life)
	}
	if !m.NotAfter.IsZero() && (r.NotAfter.IsZero() || m.NotAfter.Before(r.NotAfter)) {
		r.NotAfter = m.NotAfter
	}
	value, err := s.cfg.Codec.Encode(r)
	if err != nil {
		return fmt.Errorf("sending a message: %w", err)
	}
	if err := s.producer.ProduceSync(ctx, &kgo.Record{Topic: s.cfg.Kafka.Prefix + schemas.TopicMessages, Key: []byte(r.DestinationID), Value: value}).FirstErr(); err != nil {
		return fmt.Errorf("sending a message: %w", err)
	}
	s.sent.WithLabelValues(r.Kind, r.Channel).Inc()
	return nil
}

// Reached records that somebody has the address, because a code that it got was entered: from
// now on it gets messages again.
func (s *Sender) Reached(ctx context.Context, channel provider.Channel, to string, at time.Time) error {
	a, err := readAddress(channel, to)
	if err != nil {
		return err
	}
	return s.cfg.Addresses.reached(ctx, destinationOf(s.mac, a), at)
}

// check returns the message's address. The error is a *FieldError.
func (m *Message) check() (address, error) {
	if !strings.HasPrefix(m.ID, prefixID) || len(m.ID) != lengthID {
		return address{}, &FieldError{"ID", "must be made with MessageID"}
	}
	if known, ok := KindOf(m.Kind.Name); !ok || known.Version != m.Kind.Version {
		return address{}, &FieldError{"Kind", "must be one of Kinds"}
	}
	if !slices.Contains(m.Kind.Channels, m.Channel) {
		return address{}, &FieldError{"Channel", fmt.Sprintf("must be one of %q for %s", m.Kind.Channels, m.Kind.Name)}
	}
	if m.Locale == "" {
		m.Locale = Locales[0]
	}
	if !slices.Contains(Locales, m.Locale) {
		return address{}, &FieldError{"Locale", fmt.Sprintf("must be one of %q", Locales)}
	}
	if m.At.IsZero() {
		return address{}, &FieldError{"At", "is required: the time of the cause"}
	}
	variables := m.Kind.variables(m.Channel)
	for _, name := range variables {
		value, most := m.Variables[name], maxVariable
		if slices.Contains(m.Kind.InEmail, name) {
			most = maxInEmail
		}
		switch {
		case strings.TrimSpace(value) == "":
			return address{}, &FieldError{"Variables." + name, "is required for " + m.Kind.Name}
		case len(value) > most:
			return address{}, &FieldError{"Variables." + name, fmt.Sprintf("must be at most %d bytes", most)}
		case link.MatchString(value):
			return address{}, &FieldError{"Variables." + name, "must have no link: messages lead to the service's own address only"}
		}
	}
	for name := range m.Variables {
		if !slices.Contains(variables, name) {
			return address{}, &FieldError{"Variables." + name, "is no variable of " + m.Kind.Name + " by " + string(m.Channel)}
		}
	}
	return readAddress(m.Channel, m.To)
}
