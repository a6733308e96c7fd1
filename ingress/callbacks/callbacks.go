package callbacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/internal/connector"
)

const (
	maxBody     = 64 << 10
	sendTimeout = 5 * time.Second
	// accountTimeout bounds the look-up of the account whose signature a report needs.
	accountTimeout = 2 * time.Second
	// buckets is the number of limiters for callers. Callers in one bucket share its rate.
	buckets = 4096
)

// Sender sends a command and returns once the broker has it; internal/commands does.
type Sender interface {
	Tell(ctx context.Context, cmd checkout.Command) error
}

// Config of a Handler.
type Config struct {
	// Connectors by their operator's name.
	Connectors map[string]connector.Connector
	// Account returns the merchant account whose secret must sign a report of this
	// operator about the collection. An error means that the account is unknown now.
	// Required when a connector is a connector.ReportVerifier.
	Account func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error)
	// HonoursLate reports whether the policy of the session's agency honours late payments.
	// It is called for an approval with the operator's date. Nil means that no agency does.
	HonoursLate func(ctx context.Context, sessionID string) bool
	Verifier    connector.Verifier
	Sender      Sender

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// UnprovenPerSecond is how many reports without a valid address may cause an enquiry,
	// from all callers together. The default is 50. Each caller may send a tenth of it.
	UnprovenPerSecond float64
}

// Handler receives the reports of operators. Safe for concurrent use.
type Handler struct {
	cfg      Config
	reports  *prometheus.CounterVec
	all      *rate.Limiter
	callers  [buckets]*rate.Limiter
	seed     maphash.Seed
	complain rate.Sometimes
}

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	if len(cfg.Connectors) == 0 || cfg.Verifier == nil || cfg.Sender == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("callbacks: Connectors, Verifier, Sender, Now and Log are required")
	}
	for name, c := range cfg.Connectors {
		if name != c.Operator() {
			return nil, fmt.Errorf("callbacks: connector of %q stands under %q", c.Operator(), name)
		}
		if _, signs := c.(connector.ReportVerifier); signs && cfg.Account == nil {
			return nil, fmt.Errorf("callbacks: Account is required: %q signs its reports", name)
		}
	}
	cfg.UnprovenPerSecond = cmp.Or(cfg.UnprovenPerSecond, 50)
	if cfg.UnprovenPerSecond < 0 {
		return nil, errors.New("callbacks: UnprovenPerSecond must not be negative")
	}
	h := &Handler{
		cfg: cfg, seed: maphash.MakeSeed(), complain: rate.Sometimes{Interval: time.Second},
		reports: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_callbacks_total", Help: "Reports of operators, by what they were taken for.",
		}, []string{"operator", "outcome"}),
		all: limiter(cfg.UnprovenPerSecond),
	}
	for _, c := range cfg.Connectors {
		for _, outcome := range []string{outcomeUnreadable, outcomeAsked, outcomeUnproven, outcomeShed, outcomeUnavailable, outcomeTooLarge, outcomeBadSignature, outcomeUnverified} {
			h.reports.WithLabelValues(c.Operator(), outcome)
		}
	}
	for i := range h.callers {
		h.callers[i] = limiter(cfg.UnprovenPerSecond / 10)
	}
	return h, nil
}

// limiter returns a limiter with a burst of two seconds.
func limiter(perSecond float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), int(math.Max(1, math.Ceil(2*perSecond))))
}

// peer returns the caller's IP address.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Routes adds the paths below /callbacks to the router of the whole edge.
func (h *Handler) Routes(r chi.Router) {
	for _, path := range []string{
		"/callbacks/{operator}/{session_id}/{collection_id}",
		"/callbacks/{operator}/{session_id}/{collection_id}/{mac}",
	} {
		r.Put(path, h.report)
		r.Post(path, h.report)
	}
}

// Outcomes of a report, as labels, besides the statuses of the operator.
const (
	outcomeUnreadable  = "unreadable"
	outcomeAsked       = "asked"
	outcomeUnproven    = "unproven"
	outcomeShed        = "shed"
	outcomeUnavailable = "unavailable"
	outcomeTooLarge    = "too_large"
	// outcomeBadSignature: the merchant account's secret did not sign the report.
	outcomeBadSignature = "bad_signature"
	// outcomeUnverified: the merchant account is unknown now.
	outcomeUnverified = "unverified"
)

func (h *Handler) report(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c, known := h.cfg.Connectors[chi.URLParam(r, "operator")]
	sessionID, collectionID := chi.URLParam(r, "session_id"), chi.URLParam(r, "collection_id")
	if !known || !wellFormed(sessionID, collectionID) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	cmd := checkout.Command{At: h.cfg.Now(), SessionID: sessionID, Do: checkout.Enquire{CollectionID: collectionID}}
	if !connector.VerifyCallback(h.cfg.Verifier, c.Operator(), sessionID, collectionID, chi.URLParam(r, "mac")) {
		if !h.allow(r) {
			w.Header().Set("Retry-After", strconv.Itoa(1))
			h.answer(w, c, outcomeShed, http.StatusTooManyRequests)
			return
		}
		h.send(w, r, c, cmd, outcomeUnproven, http.StatusAccepted)
		return
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		h.answer(w, c, outcomeTooLarge, http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		return // the caller is gone
	}
	if verifier, signs := c.(connector.ReportVerifier); signs {
		switch err := h.verify(r, verifier, c.Operator(), sessionID, collectionID, body); {
		case errors.Is(err, connector.ErrSignature):
			h.warn(r, c, sessionID, collectionID, outcomeBadSignature, err)
			if !h.allow(r) {
				h.answer(w, c, outcomeBadSignature, http.StatusUnauthorized)
				return
			}
			h.send(w, r, c, cmd, outcomeBadSignature, http.StatusUnauthorized)
			return
		case err != nil:
			h.warn(r, c, sessionID, collectionID, outcomeUnverified, err)
			h.send(w, r, c, cmd, outcomeUnverified, http.StatusAccepted)
			return
		}
	}
	report, err := c.ParseReport(r.Header, body)
	if err == nil && report.ID != "" && report.ID != collectionID {
		err = fmt.Errorf("the report names another collection: %w", connector.ErrReport)
	}
	if err != nil {
		h.warn(r, c, sessionID, collectionID, outcomeUnreadable, err)
		h.send(w, r, c, cmd, outcomeUnreadable, http.StatusAccepted)
		return
	}
	o := report.Outcome
	if !o.Decided() {
		h.answer(w, c, string(o.Status), http.StatusOK)
		return
	}
	if report.Ask {
		h.send(w, r, c, cmd, outcomeAsked, http.StatusAccepted)
		return
	}
	cmd.Do = checkout.Outcome{
		CollectionID: collectionID, Source: checkout.SourceCallback, Status: o.Status, Amount: o.Amount, Currency: o.Currency,
		OperatorRef: o.OperatorRef, FailureCode: o.FailureCode, ApprovedAt: o.ApprovedAt, HonourLate: h.honoursLate(r.Context(), sessionID, o),
	}
	h.send(w, r, c, cmd, string(o.Status), http.StatusOK)
}

// honoursLate reports whether the agency's policy honours the approval if it is late. The
// policy honours no approval without the operator's date.
func (h *Handler) honoursLate(ctx context.Context, sessionID string, o connector.Outcome) bool {
	if h.cfg.HonoursLate == nil || o.Status != checkout.OutcomeApproved || o.ApprovedAt.IsZero() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	return h.cfg.HonoursLate(ctx, sessionID)
}

// verify checks the signature of a report. The error wraps connector.ErrSignature when
// it is not the account's signature; any other error means that the account is unknown
// now.
func (h *Handler) verify(r *http.Request, verifier connector.ReportVerifier, operator, sessionID, collectionID string, body []byte) error {
	ctx, cancel := context.WithTimeout(r.Context(), accountTimeout)
	defer cancel()
	account, err := h.cfg.Account(ctx, operator, sessionID, collectionID)
	if err != nil {
		return fmt.Errorf("finding the merchant account: %w", err)
	}
	return verifier.VerifyReport(account, r.Header, body)
}

// warn logs why a report is not accepted, at most once a second.
func (h *Handler) warn(r *http.Request, c connector.Connector, sessionID, collectionID, outcome string, err error) {
	h.complain.Do(func() {
		h.cfg.Log.LogAttrs(r.Context(), slog.LevelWarn, "report of an operator is not accepted",
			slog.String("operator", c.Operator()), slog.String("outcome", outcome), slog.String("session_id", sessionID),
			slog.String("collection_id", collectionID), slog.Any("error", err))
	})
}

// wellFormed reports whether both ids have the form of ours.
func wellFormed(sessionID, collectionID string) bool {
	if _, err := checkout.SessionPartition(sessionID); err != nil {
		return false
	}
	id, err := uuid.Parse(collectionID)
	return err == nil && id.String() == collectionID
}

// allow counts a report without proof against the caller's rate and the common rate.
func (h *Handler) allow(r *http.Request) bool {
	bucket := maphash.String(h.seed, peer(r)) % buckets
	return h.callers[bucket].Allow() && h.all.Allow()
}

// send answers with the status once the broker has the command.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, c connector.Connector, cmd checkout.Command, outcome string, status int) {
	// The command is sent even when the operator hangs up before our answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sendTimeout)
	defer cancel()
	switch err := h.cfg.Sender.Tell(ctx, cmd); {
	case errors.Is(err, checkout.ErrMalformedID): // the id names a partition that does not exist
		w.WriteHeader(http.StatusNotFound)
	case err != nil:
		h.complain.Do(func() {
			h.cfg.Log.LogAttrs(r.Context(), slog.LevelWarn, "passing on the report of an operator", slog.Any("error", err))
		})
		w.Header().Set("Retry-After", strconv.Itoa(5))
		h.answer(w, c, outcomeUnavailable, http.StatusServiceUnavailable)
	default:
		h.answer(w, c, outcome, status)
	}
}

func (h *Handler) answer(w http.ResponseWriter, c connector.Connector, outcome string, status int) {
	h.reports.WithLabelValues(c.Operator(), outcome).Inc()
	w.WriteHeader(status)
}
