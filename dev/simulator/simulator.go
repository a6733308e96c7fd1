package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"
)

const (
	maxOperatorBody = 64 << 10
	maxERPBody      = 64 << 10
	maxInboxBody    = 1 << 20
	maxControlBody  = 4 << 20 // dues may be many
)

// AuthType is a way to authenticate with an agency's ERP.
type AuthType string

// The ways of the contract's ERP surface.
const (
	AuthBearer AuthType = "bearer"
	AuthAPIKey AuthType = "api_key"
	AuthBasic  AuthType = "basic"
)

// Auth is one credential that an ERP accepts. Which fields count depends on Type.
type Auth struct {
	Type     AuthType
	Token    string // bearer
	Header   string // api_key: the header's name
	Value    string // api_key
	Username string // basic
	Password string // basic
}

// Config is what New needs. Only Now and Log are required; a zero value
// elsewhere means the default that its comment names.
type Config struct {
	// Now is the clock of the simulated world: tokens, payers and late answers
	// follow it, and it may jump forward.
	Now func() time.Time
	Log *slog.Logger
	// Timestamp is the clock by which inboxes judge webhook-timestamp and the card
	// acquirer judges signatures: the machine's; time.Now when nil.
	Timestamp func() time.Time
	// Metrics receives the counters; nil keeps none.
	Metrics prometheus.Registerer

	// Secrets returns the whsec_ secrets of an inbox, asked at each delivery. Nil
	// or an empty answer: the signature is not judged.
	Secrets func(inbox string) []string
	// ERPAuth returns the credentials an agency's ERP accepts, asked at each
	// request. Nil or an empty answer: any, also none.
	ERPAuth func(agencySlug string) []Auth
	// MTN says whether a merchant account exists. Nil: any three non-empty values.
	MTN func(subscriptionKey, apiUser, apiKey string) bool
	// Airtel says whether a merchant's application exists. Nil: any two non-empty
	// values.
	Airtel func(clientID, clientSecret string) bool
	// Card returns the secret that a merchant shares with the card acquirer; false
	// where there is none of that name. Nil: any merchant, with the secret "simulator".
	Card func(merchant string) (secret string, ok bool)
	// Counter is the service's address, where the desk software of the agencies'
	// counters looks payments up, without a path. Empty: nobody comes to a counter.
	Counter string
	// Clerks are the keys of those who work there, an agency a list. None: calls to
	// /control name a key.
	Clerks [][]string
	// AdvanceClock moves the clock of the whole service forward. Nil: 501.
	AdvanceClock func(ctx context.Context, d time.Duration) error

	ApprovalDelay  time.Duration // magic number 02; 5 s
	AmbiguousDelay time.Duration // magic number 12; 8 s
	ApprovalWindow time.Duration // how long the service waits for a payer; 5 min
	LateDelay      time.Duration // magic number 10: how long after the window; 30 s
	TokenLifetime  time.Duration // of operators' access tokens; 1 h

	CallbackAttempts int           // tries of one callback until a 2xx; 3
	CallbackBackoff  time.Duration // between them, on Now; 2 s
	// Poll is how often timers look at the clock, which bounds how late they
	// notice that it jumped by itself; 250 ms.
	Poll time.Duration

	MaxCollections   int // kept in all; the oldest are forgotten; 500,000
	MaxInboxMessages int // kept per inbox; 50,000
	MaxInboxBytes    int // of bodies kept per inbox; 128 MiB
	MaxConfirmations int // transactions kept per ERP; 500,000
	MaxAttempts      int // confirmation attempts kept per ERP; 100,000
}

func (c Config) withDefaults() Config {
	if c.Timestamp == nil {
		c.Timestamp = time.Now
	}
	c.ApprovalDelay = cmp.Or(c.ApprovalDelay, 5*time.Second)
	c.AmbiguousDelay = cmp.Or(c.AmbiguousDelay, 8*time.Second)
	c.ApprovalWindow = cmp.Or(c.ApprovalWindow, 5*time.Minute)
	c.LateDelay = cmp.Or(c.LateDelay, 30*time.Second)
	c.TokenLifetime = cmp.Or(c.TokenLifetime, time.Hour)
	c.CallbackAttempts = cmp.Or(c.CallbackAttempts, 3)
	c.CallbackBackoff = cmp.Or(c.CallbackBackoff, 2*time.Second)
	c.Poll = cmp.Or(c.Poll, 250*time.Millisecond)
	c.MaxCollections = cmp.Or(c.MaxCollections, 500_000)
	c.MaxInboxMessages = cmp.Or(c.MaxInboxMessages, 50_000)
	c.MaxInboxBytes = cmp.Or(c.MaxInboxBytes, 128<<20)
	c.MaxConfirmations = cmp.Or(c.MaxConfirmations, 500_000)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 100_000)
	return c
}

func (c Config) validate() error {
	if c.Now == nil || c.Log == nil {
		return errors.New("simulator: Now and Log are required")
	}
	for name, d := range map[string]time.Duration{
		"ApprovalDelay": c.ApprovalDelay, "AmbiguousDelay": c.AmbiguousDelay, "ApprovalWindow": c.ApprovalWindow,
		"LateDelay": c.LateDelay, "TokenLifetime": c.TokenLifetime, "CallbackBackoff": c.CallbackBackoff, "Poll": c.Poll,
	} {
		if d < 0 {
			return fmt.Errorf("simulator: %s is negative", name)
		}
	}
	for name, n := range map[string]int{
		"CallbackAttempts": c.CallbackAttempts, "MaxCollections": c.MaxCollections, "MaxInboxMessages": c.MaxInboxMessages,
		"MaxInboxBytes": c.MaxInboxBytes, "MaxConfirmations": c.MaxConfirmations, "MaxAttempts": c.MaxAttempts,
	} {
		if n < 0 {
			return fmt.Errorf("simulator: %s is negative", name)
		}
	}
	return checkedCounter(c.Counter)
}

// Simulator plays the outside world. Safe for concurrent use.
type Simulator struct {
	cfg       Config
	metrics   metrics
	book      *book
	decisions *timers[string] // ids of collections whose script decides
	callbacks *callbacks
	operators map[string]operator // by name
	gateways  map[string]*gateway // of those with an API
	erps      erps
	inboxes   inboxes
	stopping  chan struct{} // closed when Run ends: hanging answers end then
}

type metrics struct {
	requests    *prometheus.CounterVec
	collections *prometheus.CounterVec
	callbacks   *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	with := promauto.With(reg)
	return metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_simulator_requests_total", Help: "Requests answered by the simulators.",
		}, []string{"route", "status"}),
		collections: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_simulator_collections_total", Help: "Collections by the state they reached.",
		}, []string{"operator", "state"}),
		callbacks: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_simulator_callbacks_total", Help: "Attempts to call a merchant back.",
		}, []string{"operator", "outcome"}),
	}
}

// New checks the configuration and makes a simulator. Its timers and callbacks
// run in Run; Handler answers with or without it.
func New(cfg Config) (*Simulator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Simulator{
		cfg:       cfg,
		metrics:   newMetrics(cfg.Metrics),
		book:      newBook(cfg.MaxCollections),
		decisions: newTimers[string](),
		callbacks: newCallbacks(cfg.CallbackAttempts, cfg.CallbackBackoff),
		operators: map[string]operator{},
		gateways:  map[string]*gateway{},
		erps:      erps{byAgency: map[string]*erp{}},
		inboxes:   inboxes{byName: map[string]*inbox{}},
		stopping:  make(chan struct{}),
	}
	for _, o := range operators() {
		s.operators[o.name] = o
		if o.routes != nil {
			s.gateways[o.name] = newGateway()
		}
	}
	s.book.decided = s.collectionDecided
	s.book.reason = func(operator string, why cause) string { return s.operators[operator].reasons[why] }
	s.callbacks.done = func(cb callback, status int) { s.book.calledBack(cb.collection, status) }
	return s, nil
}

// Run carries out what payers decide and calls merchants back until ctx ends,
// then waits for the calls under way, five seconds at most. It returns nil after
// an orderly end. Call it once.
func (s *Simulator) Run(ctx context.Context) error {
	defer close(s.stopping)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		s.decisions.run(ctx, s.cfg.Now, s.cfg.Poll, func(id string) { s.book.settle(id, s.cfg.Now()) })
		return nil
	})
	group.Go(func() error { return s.callbacks.run(ctx, s) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("running the simulators: %w", err)
	}
	return nil
}

// Handler serves every surface; package documentation lists them, GET / too.
func (s *Simulator) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(s.count)
	r.Get("/", s.index)
	for name, o := range s.operators {
		if o.routes != nil {
			r.Route("/"+name, func(r chi.Router) { o.routes(s, r) })
		}
	}
	r.Route("/erp/{agency}", s.erpRoutes)
	r.Route("/inbox/{name}", s.inboxRoutes)
	r.Route("/control", s.controlRoutes)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, "There is no "+r.URL.Path+" here; GET / lists what there is.")
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusMethodNotAllowed, r.Method+" is not known at "+r.URL.Path+"; GET / lists what there is.")
	})
	return r
}

// count counts answers by route, not by path: paths hold ids and names, which must not
// become labels.
func (s *Simulator) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(wrapped, r)
		route := chi.RouteContext(r.Context()).RoutePattern()
		s.metrics.requests.WithLabelValues(cmp.Or(route, "none"), strconv.Itoa(cmp.Or(wrapped.Status(), http.StatusOK))).Inc()
	})
}

// submit enters a collection and says whether its id was free. The caller
// schedules it once the merchant may hear of the outcome.
func (s *Simulator) submit(c collection) bool {
	if !s.book.accept(c) {
		return false
	}
	s.metrics.collections.WithLabelValues(c.operator, statePending).Inc()
	return true
}

// schedule lets the script of a submitted collection decide when it is time.
func (s *Simulator) schedule(c collection) {
	if c.script.decides {
		s.decisions.add(c.receivedAt.Add(c.script.after), c.id)
	}
}

// collectionDecided follows every decision: the operator calls back.
func (s *Simulator) collectionDecided(c collection) {
	s.metrics.collections.WithLabelValues(c.operator, c.state).Inc()
	s.cfg.Log.Debug("collection decided",
		slog.String("operator", c.operator), slog.String("collection", c.id),
		slog.String("state", c.state), slog.String("reason", c.reason))
	if c.callbackURL == "" {
		return
	}
	words := s.operators[c.operator]
	cb := callback{collection: c.id, operator: c.operator, url: c.callbackURL, insists: words.insists}
	cb.method, cb.body = words.callback(c)
	if words.path != nil {
		cb.url += words.path(c)
	}
	if words.sign != nil {
		cb.authorization = func() string { return words.sign(s, c.account, cb.body) }
	}
	at, calls := s.cfg.Now(), c.script.callbacks
	if words.insists && calls == 0 {
		at, calls = at.Add(s.cfg.CallbackBackoff), 1 // the first one was lost
	}
	for range calls {
		s.callbacks.queue.add(at, cb)
	}
}

// pause holds an answer back on the wall clock, as a slow system would. It returns
// false when the caller has hung up or the simulators are stopping: the 503 then
// keeps the server from sending an implicit 200.
func (s *Simulator) pause(w http.ResponseWriter, r *http.Request, d time.Duration) bool {
	if s.wait(r.Context(), d) {
		return true
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	return false
}

// wait lets d pass and says whether it did before ctx or the simulators ended.
func (s *Simulator) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-s.stopping:
		return false
	}
}

// readBody reads at most limit bytes, or answers why it cannot.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		return body, true
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		writeProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", limit))
	} else {
		writeProblem(w, http.StatusBadRequest, "The body ended before it was complete.")
	}
	return nil, false
}
