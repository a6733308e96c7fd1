package citizen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/internal/citizens"
	"quittance/internal/drafts"
	"quittance/internal/erp"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/quota"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/money"
)

// Messages sends messages to people: notify.Sender.
type Messages interface {
	Send(ctx context.Context, m notify.Message) error
	// Reached records that somebody has an address.
	Reached(ctx context.Context, channel provider.Channel, to string, at time.Time) error
}

// Registry is the configuration: internal/registry. It answers from memory.
type Registry interface {
	Agency(id string) (registry.Agency, bool)
	Agencies() []registry.Agency
	// PortalOf finds the application of an agency's citizen portal, active or not.
	PortalOf(agencyID string) (registry.Application, bool)
	Takes(agencyID string, live bool, offer, currency string) bool
	// HasChannel reports whether an offer of the agency can be paid in a mode and a currency.
	HasChannel(agencyID string, live bool, offer, currency string) bool
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
	Fee(agencyID string, channel checkout.Channel, currency string) (money.Schedule, bool)
}

// Quotas counts over all instances: internal/quota.
type Quotas interface {
	Admit(ctx context.Context, keyID string, limit int) (quota.Allowance, bool, error)
}

// Dues asks the agencies' ERPs: erp.Dues.
type Dues interface {
	List(ctx context.Context, agencyID string, live bool, subjectRef string) (erp.Answer, error)
	Fresh(ctx context.Context, agencyID string, live bool, subjectRef string) (erp.Answer, error)
}

// Sessions reads the read model behind its barrier: internal/sessions. An error means that it
// cannot show everything that was answered before.
type Sessions interface {
	Claimants(ctx context.Context, agencyID string, live bool, refs []string) ([]checkout.Session, error)
	PaidBy(ctx context.Context, f sessions.CitizenFilter) ([]checkout.Session, int64, error)
}

// Config of a Service. All fields are required.
type Config struct {
	// Citizens has the accounts, and holds the limits of signing in and of proofs.
	Citizens *citizens.Store
	Messages Messages
	Registry Registry
	Dues     Dues
	Sessions Sessions
	Drafts   *drafts.Maker
	Quotas   Quotas
	// Live is the mode of the installation: a portal is live in quittance, and in test mode
	// in quittance-dev.
	Live bool
	// PublicURL is where browsers reach the service.
	PublicURL string
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Service has what a citizen can do. Run sends its messages. Safe for concurrent use.
type Service struct {
	cfg      Config
	passkeys *citizens.Passkeys
	messages chan notify.Message

	codes, signIns, links *prometheus.CounterVec
	unsent, busy          prometheus.Counter
}

// NewService makes a Service.
func NewService(cfg Config) (*Service, error) {
	if cfg.Citizens == nil || cfg.PublicURL == "" || cfg.Drafts == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("citizen: all fields of the configuration are required")
	}
	passkeys, err := citizens.NewPasskeys(cfg.Citizens, cfg.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("citizen: %w", err)
	}
	with := promauto.With(cfg.Metrics)
	s := &Service{
		cfg: cfg, passkeys: passkeys, messages: make(chan notify.Message, messagesWaiting),
		codes: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_citizen_codes_total", Help: "Requests for sign-in codes, by verdict. Only sent comes with a code; the other verdicts are limits.",
		}, []string{"verdict"}),
		signIns: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_citizen_sign_ins_total", Help: "Codes that were entered, by outcome: first (a new account), ok, refused; and passkeys: passkey, passkey_refused.",
		}, []string{"outcome"}),
		links: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_citizen_links_total", Help: "Proofs of a reference by link code, by outcome: made, known (the account had the link), refused, limited.",
		}, []string{"outcome"}),
		unsent: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_citizen_codes_unsent_total", Help: "Sign-in codes that could not be handed over to be sent.",
		}),
		busy: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_citizen_sign_ins_busy_total", Help: "Calls of signing in that were refused because too many were under way at this instance.",
		}),
	}
	for _, v := range citizens.Verdicts() {
		s.codes.WithLabelValues(string(v))
	}
	for _, outcome := range []string{"first", "ok", "refused", "passkey", "passkey_refused"} {
		s.signIns.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"made", "known", "refused", "limited"} {
		s.links.WithLabelValues(outcome)
	}
	return s, nil
}

const (
	// messagesWaiting is how many messages wait for Kafka before sign-ins wait too.
	messagesWaiting = 1024
	// senders is how many messages are sent at the same time.
	senders = 8
	// sendTimeout is the time-out of handing one message over to Kafka.
	sendTimeout = 10 * time.Second
)

// Run sends the messages of the operations until ctx ends, and returns nil.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() { s.send(ctx) })
	}
	wg.Wait()
	return nil
}

func (s *Service) send(ctx context.Context) {
	for {
		select {
		case m := <-s.messages:
			s.sendOne(ctx, m)
		case <-ctx.Done():
			return
		}
	}
}

// Flush sends the messages that wait. It is called after Run and after the last operation.
func (s *Service) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	for {
		select {
		case m := <-s.messages:
			s.sendOne(ctx, m)
		default:
			return
		}
	}
}

func (s *Service) sendOne(ctx context.Context, m notify.Message) {
	if _, bounded := ctx.Deadline(); !bounded { // of Run: a message under way is sent although ctx ends
		ctx = context.WithoutCancel(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := s.cfg.Messages.Send(bounded, m); err != nil {
		s.unsent.Inc()
		s.cfg.Log.LogAttrs(ctx, slog.LevelError, "citizens: a sign-in code could not be handed over to be sent", slog.String("message_id", m.ID), slog.Any("error", err))
	}
}

// now is the time of a command: records hold milliseconds.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Millisecond) }

// CheckoutURL is where the citizen pays a session, and has its receipt.
func (s *Service) CheckoutURL(session checkout.Session) string {
	return strings.TrimSuffix(s.cfg.PublicURL, "/") + "/c/" + session.ID
}
