package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/contact"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/notify"
	"quittance/internal/notify/payment"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/schemas"
	"quittance/schemas/record"
)

// ClosesGroup is the consumer group of what agencies are told of closes.
const ClosesGroup = "notify-closes"

// ClosesConfig configures a Closes. All fields are required.
type ClosesConfig struct {
	Kafka  kafka.Config
	Codec  *schemas.Codec
	Sender Sender
	// Keys verify closes (journal.LabelCloses): whoever can write the topic does not write to agencies.
	Keys []secret.PublicKey
	// Agency finds an agency by its id.
	Agency  func(id string) (payment.Agency, bool)
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Closes sends the signed statement of each closed period to the agency's e-mail address, so that the agency has the
// root where the service cannot change it. It reads reconciliation.events and commits its offsets when Kafka has the
// messages. The id of a message is made of the close's, so a message that is made again is not sent again.
type Closes struct {
	cfg      ClosesConfig
	consumer *consume.Consumer
	told     *prometheus.CounterVec // outcome
}

// NewCloses makes a Closes. It connects when it runs. Any number of them share the work.
func NewCloses(cfg ClosesConfig) (*Closes, error) {
	if cfg.Codec == nil || cfg.Sender == nil || len(cfg.Keys) == 0 || cfg.Agency == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("closes: Codec, Sender, Keys, Agency, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	c := &Closes{cfg: cfg, told: with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_close_messages_total", Help: "Messages to agencies about closed periods, by outcome. One that is made again is counted again.",
	}, []string{"outcome"})}
	for _, o := range []string{announceMade, announceNobody, announceUnreachable, announceStale} {
		c.told.WithLabelValues(o)
	}
	var err error
	c.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: ClosesGroup, Topics: []string{schemas.TopicReconciliation}, Poison: schemas.TopicPoisonDeliveries,
		Timeout: announceWithin, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_close_messages_poison_total", Help: "Records of reconciliation that cannot be decoded, so that no agency gets a message about them.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_close_messages_failures_total", Help: "Batches of records of reconciliation whose messages could not be made and that were read again.",
		}),
	})
	return c, err
}

// Run tells agencies until ctx ends, then returns nil. While Kafka or Postgres is away it waits. It returns an error
// only when it could not begin.
func (c *Closes) Run(ctx context.Context) error {
	return consume.Batch(ctx, c.consumer, c.decode, c.tell)
}

// decode returns the close of a record; nil for one that is none, or that sink match has not signed.
func (c *Closes) decode(r *kgo.Record) (*journal.Close, error) {
	name, err := c.cfg.Codec.NameOf(r.Value)
	var rec record.Close
	if err != nil || name != rec.Name() {
		return nil, err
	}
	if err := c.cfg.Codec.Decode(r.Value, &rec); err != nil {
		return nil, err
	}
	if rec.State != journal.CloseClosed || rec.Signature == "" {
		return nil, nil
	}
	of, err := journal.CloseOf(&rec, r.Partition, r.Offset)
	if err != nil {
		return nil, errors.Join(schemas.ErrUndecodable, err)
	}
	if !of.SignedBy(c.cfg.Keys) {
		return nil, fmt.Errorf("the close %s is not as sink match has signed it: %w", of.ID, schemas.ErrUndecodable)
	}
	return of, nil
}

// tell makes the messages of a batch, one for each close.
func (c *Closes) tell(ctx context.Context, read []*journal.Close, _ []consume.Move) error {
	for _, of := range read {
		if of == nil {
			continue
		}
		outcome, err := c.send(ctx, of)
		if err != nil {
			return fmt.Errorf("telling an agency of the close %s: %w", of.ID, err)
		}
		c.told.WithLabelValues(outcome).Inc()
	}
	return nil
}

func (c *Closes) send(ctx context.Context, of *journal.Close) (outcome string, err error) {
	if !c.cfg.Now().Before(of.At.Add(notify.PeriodClosed.Life)) {
		return announceStale, nil
	}
	agency, ok := c.cfg.Agency(of.TenantID)
	if agency.Locked {
		return "", errors.New("the row of the agency is not as it was signed") // the address comes back with it
	}
	about := []slog.Attr{slog.String("close_id", of.ID), slog.String("agency_id", of.TenantID), slog.String("account", of.Account)}
	if !ok || strings.TrimSpace(agency.Email) == "" {
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "an agency is not told of a close: it has no e-mail address in the registry file (contact.email)", about...)
		return announceNobody, nil
	}
	to, err := contact.ParseEmail(agency.Email)
	if err == nil {
		err = c.cfg.Sender.Send(ctx, closedMessage(of, agency, to.Text(), money.French))
		var wrong *notify.FieldError
		if err != nil && !errors.As(err, &wrong) {
			return "", err
		}
	}
	if err != nil {
		c.cfg.Log.LogAttrs(ctx, slog.LevelError, "an agency is not told of a close", append(about, slog.Any("error", err))...)
		return announceUnreachable, nil
	}
	return announceMade, nil
}

// closedMessage returns the message of a close.
func closedMessage(of *journal.Close, agency payment.Agency, to string, lang money.Language) notify.Message {
	return notify.Message{
		ID:   notify.MessageID(notify.PeriodClosed, provider.ChannelEmail, of.ID+" "+of.Signature),
		Kind: notify.PeriodClosed, Channel: provider.ChannelEmail, To: to, Locale: string(lang), AgencyID: of.TenantID, Live: of.Livemode, At: of.At,
		Variables: map[string]string{
			notify.VariableAgency: agency.Name, notify.VariableAccount: of.Account, notify.VariableCount: strconv.FormatInt(of.ChainRows, 10), notify.VariableRoot: of.ChainRoot,
			notify.VariableDate: of.FromDay.Format("02/01/2006") + " - " + of.ToDay.Format("02/01/2006"), notify.VariableAmount: totalOf(of, lang, of.SourcesNewAmount),
			notify.VariableMatched: totalOf(of, lang, of.SourcesMatchedAmount), notify.VariableOpen: totalOf(of, lang, of.SourcesEndAmount), notify.VariableBreaks: strconv.FormatInt(of.OpenBreaks, 10),
			notify.VariableSignature: of.Signature, notify.VariableKey: of.SignedWith, notify.VariableStatement: strings.TrimRight(of.Statement(), "\n"),
		},
	}
}

func totalOf(of *journal.Close, lang money.Language, amount int64) string {
	if c, listed := money.Lookup(of.Currency); listed {
		return c.Format(lang, amount)
	}
	return strconv.FormatInt(amount, 10) + " " + of.Currency
}
