package callbacks

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/secret"
)

// Reports records the delivery reports of messages: *notify.Reports.
type Reports interface {
	Apply(ctx context.Context, providerName string, report provider.Report, now time.Time) (changed bool, err error)
}

// MessagesConfig configures Messages. All fields are required.
type MessagesConfig struct {
	// Providers are all registrations; those that report have addresses.
	Providers provider.Table
	Reports   Reports
	Verifier  secret.Verifier
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Messages receives the delivery reports of providers of messages. Safe for concurrent use.
type Messages struct {
	cfg      MessagesConfig
	reports  *prometheus.CounterVec
	complain rate.Sometimes
}

// Outcomes of a delivery report, as labels, besides the states of provider.Report. forged,
// unreadable, too_large and unavailable count calls, the others reports.
const (
	outcomeRepeated = "repeated" // it says nothing new
	outcomeStranger = "unknown_message"
	outcomeForged   = "forged" // the address is not ours
)

// NewMessages makes Messages.
func NewMessages(cfg MessagesConfig) (*Messages, error) {
	if cfg.Reports == nil || cfg.Verifier == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("delivery reports: Reports, Verifier, Now, Log and Metrics are required")
	}
	m := &Messages{cfg: cfg, complain: rate.Sometimes{Interval: time.Second}, reports: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_message_reports_total", Help: "Delivery reports of providers of messages, by what they were taken for.",
	}, []string{"provider", "outcome"})}
	for _, r := range cfg.Providers {
		if r.Reports == nil {
			continue
		}
		for _, o := range []string{outcomeRepeated, outcomeStranger, outcomeForged, outcomeUnreadable, outcomeTooLarge, outcomeUnavailable} {
			m.reports.WithLabelValues(r.Name, o)
		}
		for _, s := range provider.ReportStates {
			m.reports.WithLabelValues(r.Name, string(s))
		}
	}
	return m, nil
}

// Routes adds the paths below /callbacks/messages to the router of the whole edge.
func (m *Messages) Routes(r chi.Router) {
	r.Post("/callbacks/messages/{provider}/{message_id}/{mac}", m.receive)
	r.Post("/callbacks/messages/{provider}/{mac}", m.receive)
}

func (m *Messages) receive(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	messageID := chi.URLParam(r, "message_id")
	of, known := m.cfg.Providers.Reporting(chi.URLParam(r, "provider"))
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if !notify.VerifyReportURL(m.cfg.Verifier, of.Name, messageID, chi.URLParam(r, "mac")) {
		m.count(of, outcomeForged)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	body, err := readBody(w, r)
	switch {
	case errors.Is(err, errTooLarge):
		m.count(of, outcomeTooLarge)
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		return // the caller is gone
	}
	reports, err := of.Reports(body)
	if err != nil {
		m.count(of, outcomeUnreadable)
		m.warn(r, of, "a delivery report is not readable", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// The reports are recorded even when the provider hangs up before our answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sendTimeout)
	defer cancel()
	found, err := m.apply(ctx, of, messageID, reports)
	switch {
	case err != nil:
		m.count(of, outcomeUnavailable)
		m.warn(r, of, "a delivery report is not recorded", err)
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	case !found:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// apply records the reports of a call. An address with a message id is for reports on this
// message only. found is false when no report is about a message of ours.
func (m *Messages) apply(ctx context.Context, of provider.Registration, messageID string, reports []provider.Report) (found bool, err error) {
	for _, report := range reports {
		changed, err := false, notify.ErrUnknownMessage
		if messageID == "" || report.MessageID == messageID {
			changed, err = m.cfg.Reports.Apply(ctx, of.Name, report, m.cfg.Now())
		}
		switch {
		case errors.Is(err, notify.ErrUnknownMessage):
			m.count(of, outcomeStranger)
			continue
		case err != nil:
			return found, err
		case !changed && report.State != provider.ReportPending:
			m.count(of, outcomeRepeated)
		default:
			m.count(of, string(report.State))
		}
		found = true
	}
	return found, nil
}

func (m *Messages) count(of provider.Registration, outcome string) {
	m.reports.WithLabelValues(of.Name, outcome).Inc()
}

// warn logs at most once a second. The address is a secret and the body has a number: neither
// is logged.
func (m *Messages) warn(r *http.Request, of provider.Registration, text string, err error) {
	m.complain.Do(func() {
		m.cfg.Log.LogAttrs(r.Context(), slog.LevelWarn, text, slog.String("provider", of.Name), slog.Any("error", err)) //nolint:sloglint // two texts
	})
}
