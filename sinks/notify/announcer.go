package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/internal/contact"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/notify"
	"quittance/internal/notify/payment"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// AnnouncerGroup is the consumer group of the announcer.
const AnnouncerGroup = "notify-announcer"

const (
	// announceWithin bounds the messages of a batch of events.
	announceWithin = 30 * time.Second
	// announcedAtOnce is how many events of batches are told of together: each may have 200 readers, and what took too long is
	// told again from its beginning.
	announcedAtOnce = 20
	// announceAtOnce is how many messages of a batch are made at the same time. Each waits for
	// Postgres and Kafka.
	announceAtOnce = 16
)

// Contacts finds the people of a session.
type Contacts interface {
	// Customer opens the contact data of a session (personal.Store). Errors wrap
	// personal.ErrErased and personal.ErrMalformed, or are those of a Postgres that is away.
	Customer(ctx context.Context, sessionID string, sealed []byte) (checkout.Customer, error)
	// Language returns the language of a citizen's account; French for one that is gone.
	Language(ctx context.Context, citizenID string) (money.Language, error)
}

// Sender writes messages: notify.Sender.
type Sender interface {
	Send(ctx context.Context, m notify.Message) error
}

// AnnouncerConfig configures an Announcer. All fields are required.
type AnnouncerConfig struct {
	Kafka    kafka.Config
	Codec    *schemas.Codec
	Contacts Contacts
	Sender   Sender
	// Agency finds an agency by its id.
	Agency  func(id string) (payment.Agency, bool)
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Announcer makes the messages about the money of sessions: receipts, and what was given back.
// It reads checkout.events and commits its offsets when Kafka has the messages. The id of a
// message is made of its event's, so a message that is made again is not sent again.
type Announcer struct {
	cfg       AnnouncerConfig
	consumer  *consume.Consumer
	announced *prometheus.CounterVec // outcome
}

// Outcomes of the announcement of an event.
const (
	announceMade        = "made"
	announceNobody      = "nobody"      // nobody gave contact data
	announceErased      = "erased"      // the contact data is erased
	announceUnreachable = "unreachable" // the contact data is no address that messages reach
	announceWaits       = "waits"       // the batch_ref was sealed often: the letter is made if the batch waits
	announceStale       = "stale"       // the event is older than the life of its message
)

// NewAnnouncer makes an announcer. It connects when it runs. Any number of them share the work.
func NewAnnouncer(cfg AnnouncerConfig) (*Announcer, error) {
	if cfg.Codec == nil || cfg.Contacts == nil || cfg.Sender == nil || cfg.Agency == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("announcer: Codec, Contacts, Sender, Agency, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	a := &Announcer{cfg: cfg, announced: with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_announcements_total", Help: "Messages about the money of sessions, by outcome. One that is made again is counted again.",
	}, []string{"outcome"})}
	for _, o := range []string{announceMade, announceNobody, announceErased, announceUnreachable, announceStale} {
		a.announced.WithLabelValues(o)
	}
	var err error
	a.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: AnnouncerGroup, Topics: []string{schemas.TopicEvents}, Poison: schemas.TopicPoisonDeliveries,
		Timeout: announceWithin, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_announcements_poison_total", Help: "Events that cannot be decoded, so that nobody gets a message about them.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_announcements_failures_total", Help: "Batches of events whose messages could not be made and that were read again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_announcements_lag_seconds", Help: "Age of the oldest event read whose messages are not made yet; 0 when there is none.",
	}, a.consumer.Lag)
	return a, nil
}

// Run announces until ctx ends, then returns nil. While Kafka or Postgres is away it waits. It
// returns an error only when it could not begin.
func (a *Announcer) Run(ctx context.Context) error {
	return consume.Batch(ctx, a.consumer, a.decode, a.announce)
}

// news is what people are told of an event. The zero value is nothing.
type news struct {
	payment.News
	event checkout.Event
}

func (a *Announcer) decode(rec *kgo.Record) (news, error) {
	var r record.Event
	if err := a.cfg.Codec.Decode(rec.Value, &r); err != nil {
		return news{}, err
	}
	return newsOf(mapping.ToEvent(&r)), nil
}

// newsOf returns what people are told of an event. The deprecated cash-in surface never told
// payers anything, and partners tell them themselves.
func newsOf(e checkout.Event) news {
	s := e.Session
	n := news{event: e, News: payment.News{Session: s, Dues: e.Returned(), Currency: s.Currency, At: e.OccurredAt}}
	if s.ID == "" || s.Cashin != nil {
		return news{}
	}
	switch e.Type {
	case checkout.EventCompleted:
		n.News = payment.Receipt(s)
	case checkout.EventReversed:
		if e.Detail[checkout.DetailWasCompleted] == "false" { // money of a case, whose own event tells it
			return news{}
		}
		n.Kind, n.Amount = notify.Reversed, checkout.Total(e.Returned())
	case checkout.EventPartiallyReversed:
		n.Kind, n.Amount = notify.PartlyReversed, checkout.Total(e.Returned())
	case checkout.EventCaseResolved:
		c := e.Case()
		misfit := c.Kind == checkout.CaseLatePayment || c.Kind == checkout.CaseMismatch || c.Kind == checkout.CaseOrphan
		if !misfit || c.Resolution != checkout.ResolutionRefund && c.Resolution != checkout.ResolutionCashReturned {
			return news{}
		}
		n.Kind, n.Amount, n.Currency = notify.Refunded, c.Amount, c.Currency
	default:
		return news{}
	}
	n.About, n.Caused = []string{e.ID}, e.OccurredAt
	return n
}

// announce makes the messages of a batch.
func (a *Announcer) announce(ctx context.Context, read []news, _ []consume.Move) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(announceAtOnce)
	for _, n := range read {
		if n.event.ID == "" {
			continue
		}
		if !a.cfg.Now().Before(n.event.OccurredAt.Add(n.Kind.Life)) { // money that people honour may have come long before
			a.announced.WithLabelValues(announceStale).Inc()
			continue
		}
		group.Go(func() error { return a.tell(ctx, n) })
	}
	return group.Wait()
}

// tell makes the messages of an event.
func (a *Announcer) tell(ctx context.Context, n news) error {
	s := n.event.Session
	addresses, why, err := a.addresses(ctx, n.event.ID, s)
	lang := money.French
	if err == nil && s.CitizenID != "" {
		lang, err = a.cfg.Contacts.Language(ctx, s.CitizenID)
	}
	if err != nil {
		return fmt.Errorf("finding whom to tell about event %s: %w", n.event.ID, err)
	}
	if len(addresses) == 0 {
		a.announced.WithLabelValues(why).Inc()
		return nil
	}
	for _, to := range addresses {
		if err := a.cfg.Sender.Send(ctx, a.message(n, to, lang)); err != nil {
			var wrong *notify.FieldError
			if !errors.As(err, &wrong) {
				return err
			}
			a.cfg.Log.LogAttrs(ctx, slog.LevelError, "nobody gets a message about a payment", slog.String("event_id", n.event.ID), slog.Any("error", err))
			a.announced.WithLabelValues(announceUnreachable).Inc()
			continue
		}
		a.announced.WithLabelValues(announceMade).Inc()
	}
	return nil
}

// message returns the message of an event to an address.
func (a *Announcer) message(n news, to contact.Address, lang money.Language) notify.Message {
	agency, _ := a.cfg.Agency(n.event.Session.TenantID)
	return n.Message(agency, to, lang)
}

// addresses returns where the messages about a session go: to the customer that its integrator
// or the citizen portal named. Without addresses it says why there are none. A log names the
// event: whoever reads the id of a session can open its page.
func (a *Announcer) addresses(ctx context.Context, event string, s checkout.Session) (out []contact.Address, why string, err error) {
	if len(s.CustomerSealed) == 0 {
		return nil, announceNobody, nil
	}
	c, err := a.cfg.Contacts.Customer(ctx, s.ContactID(), s.CustomerSealed)
	switch {
	case errors.Is(err, personal.ErrErased):
		return nil, announceErased, nil
	case errors.Is(err, personal.ErrMalformed), errors.Is(err, secret.ErrSealed):
		a.cfg.Log.LogAttrs(ctx, slog.LevelError, "the contact data of a session does not open", slog.String("event_id", event), slog.Any("error", err))
		return nil, announceUnreachable, nil
	case err != nil:
		return nil, "", err
	}
	why = announceNobody
	for _, given := range []struct {
		kind contact.Kind
		text string
	}{{contact.Phone, c.Phone}, {contact.Email, c.Email}} {
		if strings.TrimSpace(given.text) == "" {
			continue
		}
		why = announceUnreachable // an integrator may give a number of another country
		if to, err := contact.Parse(given.kind, given.text); err == nil {
			out = append(out, to)
		}
	}
	return out, why, nil
}
