package callbacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/ingress/web"
	"quittance/internal/connector"
	"quittance/internal/secret"
)

const (
	maxBody     = 64 << 10
	sendTimeout = 5 * time.Second
	// accountTimeout bounds the look-up of the account that proves a report.
	accountTimeout = 2 * time.Second
	// unprovenBurst is how much of its rate a caller may send at once.
	unprovenBurst = 2 * time.Second
	// callerShare is the part of UnprovenPerSecond for one caller. Its wider networks have those
	// of web.Shares.
	callerShare = 10
)

// Sender sends a command and returns once the broker has it; internal/commands does.
type Sender interface {
	Tell(ctx context.Context, cmd checkout.Command) error
}

// Config of a Handler.
type Config struct {
	// Connectors by their operator's name.
	Connectors map[string]connector.Connector
	// Merchant returns what proves a report of this operator about the collection. An error
	// means that it is unknown now.
	Merchant func(ctx context.Context, operator, sessionID, collectionID string) (Merchant, error)
	// HonoursLate reports whether the policy of the session's agency honours late payments.
	// It is called for an approval with the operator's date. Nil means that no agency does.
	HonoursLate func(ctx context.Context, sessionID string) bool
	Verifier    secret.Verifier
	Sender      Sender
	// Gate admits the calls about a session.
	Gate *web.Gate

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// UnprovenPerSecond is how many reports without a valid address may cause an enquiry,
	// from all callers together. The default is 50. Each caller may send a tenth of it, and all
	// callers of a provider's network a quarter.
	UnprovenPerSecond float64
}

// Merchant is the merchant account of a collection, as far as it proves reports.
type Merchant struct {
	// Account has the secret that signs the reports of a connector.ReportVerifier.
	Account connector.Account
	// Networks are the operator's own. A report from them, at an address with our MAC, is
	// the operator's.
	Networks []netip.Prefix
	// Live is the mode of the session.
	Live bool
}

func (m Merchant) fingerprint() string {
	if m.Account == nil {
		return ""
	}
	return m.Account.Fingerprint()
}

// Handler receives the reports of operators. Its router must have the middleware
// web.ClientAddress. Safe for concurrent use.
type Handler struct {
	cfg      Config
	reports  *prometheus.CounterVec
	all      *rate.Limiter
	callers  *web.Clients
	complain rate.Sometimes
}

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	if len(cfg.Connectors) == 0 || cfg.Merchant == nil || cfg.Verifier == nil || cfg.Sender == nil || cfg.Gate == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("callbacks: Connectors, Merchant, Verifier, Sender, Gate, Now and Log are required")
	}
	for name, c := range cfg.Connectors {
		if name != c.Operator() {
			return nil, fmt.Errorf("callbacks: connector of %q stands under %q", c.Operator(), name)
		}
	}
	cfg.UnprovenPerSecond = cmp.Or(cfg.UnprovenPerSecond, 50)
	if cfg.UnprovenPerSecond < 0 {
		return nil, errors.New("callbacks: UnprovenPerSecond must not be negative")
	}
	h := &Handler{
		cfg: cfg, complain: rate.Sometimes{Interval: time.Second},
		reports: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_callbacks_total", Help: "Reports of operators, by what they were taken for.",
		}, []string{"operator", "outcome"}),
		all: web.NewRate(cfg.UnprovenPerSecond, unprovenBurst), callers: web.NewClients(web.Shares(cfg.UnprovenPerSecond/callerShare, cfg.UnprovenPerSecond), unprovenBurst),
	}
	for _, c := range cfg.Connectors {
		for _, outcome := range []string{outcomeUnreadable, outcomeAsked, outcomeUnproven, outcomeShed, outcomeUnavailable, outcomeTooLarge, outcomeBadSignature, outcomeUnverified, outcomeElsewhere} {
			h.reports.WithLabelValues(c.Operator(), outcome)
		}
	}
	return h, nil
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
	// outcomeElsewhere: the report does not come from the operator's networks.
	outcomeElsewhere = "other_network"
)

// errTooLarge says that a body has more than maxBody bytes.
var errTooLarge = fmt.Errorf("the body is larger than %d bytes", maxBody)

// readBody reads the body of a report. An error besides errTooLarge says that the caller is gone.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errTooLarge
	}
	return body, err
}

func (h *Handler) report(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c, known := h.cfg.Connectors[chi.URLParam(r, "operator")]
	sessionID, collectionID := chi.URLParam(r, "session_id"), chi.URLParam(r, "collection_id")
	if !known || !wellFormed(collectionID) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	cmd := checkout.Command{At: h.cfg.Now(), SessionID: sessionID, Do: checkout.Enquire{CollectionID: collectionID}}
	// An address that we made is not limited: an operator reports all its payments from a
	// few addresses.
	if !connector.VerifyCallback(h.cfg.Verifier, c.Operator(), sessionID, collectionID, chi.URLParam(r, "mac")) {
		switch err := h.cfg.Gate.Session(r, sessionID); {
		case errors.Is(err, checkout.ErrMalformedID):
			w.WriteHeader(http.StatusNotFound)
			return
		case err != nil, !h.allow(r):
			h.shed(w, c)
			return
		}
		h.send(w, r, c, cmd, outcomeUnproven, http.StatusAccepted)
		return
	}

	body, err := readBody(w, r)
	switch {
	case errors.Is(err, errTooLarge):
		h.answer(w, c, outcomeTooLarge, http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		return // the caller is gone
	}
	m, ok := h.signed(w, r, c, cmd, collectionID, body)
	if !ok {
		return
	}
	h.proven(w, r, c, cmd, m, collectionID, body)
}

// proven answers a report that came to an address of ours, whose signature holds if the operator
// signs.
func (h *Handler) proven(w http.ResponseWriter, r *http.Request, c connector.Connector, cmd checkout.Command, m Merchant, collectionID string, body []byte) {
	report, err := c.ParseReport(r.Header, body)
	if err == nil && report.ID != "" && report.ID != collectionID {
		err = fmt.Errorf("the report names another collection: %w", connector.ErrReport)
	}
	if err != nil {
		h.warn(r, c, collectionID, outcomeUnreadable, err)
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
	if _, signs := c.(connector.ReportVerifier); !signs {
		// The address may be known to others: addresses end up in logs.
		var outcome string
		if m, outcome, err = h.fromOperator(r, c.Operator(), cmd.SessionID, collectionID); outcome != "" {
			if err != nil {
				h.warn(r, c, collectionID, outcome, err)
			}
			h.send(w, r, c, cmd, outcome, http.StatusAccepted)
			return
		}
	}
	cmd.Live = m.Live // of money of a session that the processor does not know
	cmd.Do = checkout.Outcome{
		CollectionID: collectionID, Account: m.fingerprint(), Source: checkout.SourceCallback, Status: o.Status, Amount: o.Amount, Currency: o.Currency,
		OperatorRef: o.OperatorRef, FailureCode: o.FailureCode, ApprovedAt: o.ApprovedAt, HonourLate: h.honoursLate(r.Context(), cmd.SessionID, o),
	}
	h.send(w, r, c, cmd, string(o.Status), http.StatusOK)
}

// signed checks the signature of a report whose operator signs, and returns its account. If
// the signature does not hold, it answers and returns false.
func (h *Handler) signed(w http.ResponseWriter, r *http.Request, c connector.Connector, cmd checkout.Command, collectionID string, body []byte) (m Merchant, ok bool) {
	verifier, signs := c.(connector.ReportVerifier)
	if !signs {
		return m, true
	}
	m, err := h.verify(r, verifier, c.Operator(), cmd.SessionID, collectionID, body)
	switch {
	case errors.Is(err, connector.ErrSignature):
		h.warn(r, c, collectionID, outcomeBadSignature, err)
		if !h.allow(r) {
			h.answer(w, c, outcomeBadSignature, http.StatusUnauthorized)
			return m, false
		}
		h.send(w, r, c, cmd, outcomeBadSignature, http.StatusUnauthorized)
		return m, false
	case err != nil:
		h.warn(r, c, collectionID, outcomeUnverified, err)
		h.send(w, r, c, cmd, outcomeUnverified, http.StatusAccepted)
		return m, false
	}
	return m, true
}

// honoursLate reports whether the agency's policy honours the approval if it is late.
func (h *Handler) honoursLate(ctx context.Context, sessionID string, o connector.Outcome) bool {
	if h.cfg.HonoursLate == nil || o.Status != checkout.OutcomeApproved {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	return h.cfg.HonoursLate(ctx, sessionID)
}

// verify checks the signature of a report and returns its account. The error wraps
// connector.ErrSignature when it is not the account's signature; any other error means that
// the account is unknown now.
func (h *Handler) verify(r *http.Request, verifier connector.ReportVerifier, operator, sessionID, collectionID string, body []byte) (Merchant, error) {
	m, err := h.merchant(r, operator, sessionID, collectionID)
	if err != nil {
		return m, err
	}
	return m, verifier.VerifyReport(m.Account, r.Header, body)
}

// fromOperator returns the account of a report, and an empty outcome when the report comes
// from the networks that the account names as its operator's own; else the outcome, and an
// error where somebody should look at it.
func (h *Handler) fromOperator(r *http.Request, operator, sessionID, collectionID string) (m Merchant, outcome string, err error) {
	m, err = h.merchant(r, operator, sessionID, collectionID)
	if err != nil {
		return m, outcomeUnverified, err
	}
	client, certain := web.Caller(r)
	switch {
	case len(m.Networks) == 0:
		return m, outcomeElsewhere, nil // the account is configured so
	case !certain:
		return m, outcomeElsewhere, errors.New("a proxy that --trusted-proxies does not name hides the caller's address")
	case !slices.ContainsFunc(m.Networks, func(n netip.Prefix) bool { return n.Contains(client) }):
		return m, outcomeElsewhere, fmt.Errorf("%s is not in the account's callback_networks", client)
	}
	return m, "", nil
}

func (h *Handler) merchant(r *http.Request, operator, sessionID, collectionID string) (Merchant, error) {
	ctx, cancel := context.WithTimeout(r.Context(), accountTimeout)
	defer cancel()
	m, err := h.cfg.Merchant(ctx, operator, sessionID, collectionID)
	if err != nil {
		return m, fmt.Errorf("finding the merchant account: %w", err)
	}
	return m, nil
}

// warn logs why a report is not accepted, at most once a second. The id of a session opens
// its page, so it stays out of the log.
func (h *Handler) warn(r *http.Request, c connector.Connector, collectionID, outcome string, err error) {
	h.complain.Do(func() {
		h.cfg.Log.LogAttrs(r.Context(), slog.LevelWarn, "report of an operator is not accepted",
			slog.String("operator", c.Operator()), slog.String("outcome", outcome),
			slog.String("collection_id", collectionID), slog.Any("error", err))
	})
}

// wellFormed reports whether the id has the form of ours.
func wellFormed(collectionID string) bool {
	id, err := uuid.Parse(collectionID)
	return err == nil && id.String() == collectionID
}

// allow counts a report without proof against the caller's rate and the common rate.
func (h *Handler) allow(r *http.Request) bool {
	return h.callers.Allow(r) && h.all.Allow()
}

// shed answers one call too many.
func (h *Handler) shed(w http.ResponseWriter, c connector.Connector) {
	w.Header().Set("Retry-After", strconv.Itoa(1))
	h.answer(w, c, outcomeShed, http.StatusTooManyRequests)
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
