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
	maxControlBody  = 4 << 20 // there can be many dues
)

// AuthType is a way to authenticate with an agency's ERP.
type AuthType string

// The types of the contract's ERP surface.
const (
	AuthBearer AuthType = "bearer"
	AuthAPIKey AuthType = "api_key"
	AuthBasic  AuthType = "basic"
)

// Auth is one credential that an ERP accepts. Type determines which fields are used.
type Auth struct {
	Type     AuthType
	Token    string // bearer
	Header   string // api_key: the header's name
	Value    string // api_key
	Username string // basic
	Password string // basic
}

// Config is the configuration of a simulator. Only Now and Log are required. A zero value
// of another field means the default in its comment.
type Config struct {
	// Now is the clock of tokens, payers and late answers. It may jump forward.
	Now func() time.Time
	Log *slog.Logger
	// Timestamp is the machine's clock, with which inboxes compare webhook-timestamp and
	// the card acquirer compares signatures; time.Now when nil.
	Timestamp func() time.Time
	// Metrics receives the counters; nil keeps none.
	Metrics prometheus.Registerer

	// Secrets returns the whsec_ secrets of an inbox and is called for each delivery. When
	// it is nil or returns none, signatures are not verified.
	Secrets func(inbox string) []string
	// ERPAuth returns the credentials that an agency's ERP accepts and is called for each
	// request. When it is nil or returns none, every request is accepted.
	ERPAuth func(agencySlug string) []Auth
	// MTN reports whether a merchant account exists. Nil accepts any three non-empty values.
	MTN func(subscriptionKey, apiUser, apiKey string) bool
	// Airtel reports whether a merchant's application exists. Nil accepts any two non-empty
	// values.
	Airtel func(clientID, clientSecret string) bool
	// AirtelPIN reports whether an encrypted PIN of a payout is right. Nil accepts any that has
	// the form of one.
	AirtelPIN func(encrypted []byte) bool
	// Switch reports whether a client of the regional switch exists. Nil accepts any three
	// non-empty values.
	Switch func(clientID, clientSecret, apiKey string) bool
	// Card returns the secrets that a merchant shares with the card acquirer, that of requests and that
	// of reports; false for an unknown merchant. Nil accepts any merchant, with the secrets "simulator".
	Card func(merchant string) (secret, reports string, ok bool)
	// SMSKey is the key, or the secret, that the simulated providers of SMS accept. Empty
	// accepts any.
	SMSKey string
	// Counter is the address of the service, without a path, at which the desk software of
	// the agencies' counters looks payments up. Empty disables visits to a counter.
	Counter string
	// Clerks are the keys of the clerks, one list for each agency. When there are none,
	// calls to /control must name a key.
	Clerks [][]string
	// Statements returns the accounts of which the simulators write statements and is called
	// for each request. Nil has one account of each profile, of all merchants.
	Statements func() []StatementAccount
	// AdvanceClock moves the clock of the whole service forward and returns its time after
	// that. Now follows a moment later. Nil answers 501.
	AdvanceClock func(ctx context.Context, d time.Duration) (time.Time, error)

	ApprovalDelay  time.Duration // magic number 02; 5 s
	AmbiguousDelay time.Duration // magic number 12; 8 s
	ApprovalWindow time.Duration // time that the service waits for a payer; 5 min
	LateDelay      time.Duration // magic number 10: time from the end of the window; 30 s
	TokenLifetime  time.Duration // of operators' access tokens; 1 h

	CallbackAttempts int           // tries of one callback until a 2xx; 3
	CallbackBackoff  time.Duration // between them, on Now; 2 s
	// Poll is the interval at which timers read the clock, which can jump by itself;
	// 250 ms.
	Poll time.Duration

	MaxCollections   int // kept in all; the oldest are dropped; 500,000
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
	payouts   *payouts
	due       *timers[string] // ids of payouts whose payee's number decides
	decisions *timers[string] // ids of collections whose script decides
	callbacks *callbacks
	operators map[string]operator // by name
	gateways  map[string]*gateway // of operators with an API
	erps      erps
	idps      idps
	faults    *planted    // of statements
	received  transfersIn // by banks
	inboxes   inboxes
	sms       *letterbox[sms]
	mail      *letterbox[email]
	// smsGateway has the tokens of MTN's SMS API.
	smsGateway *gateway
	receipts   receiptAddresses
	stopping   chan struct{} // closed when Run ends, which ends hanging answers
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

// New checks the configuration and makes a simulator. Run runs its timers and callbacks;
// Handler also answers without Run.
func New(cfg Config) (*Simulator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Simulator{
		cfg:        cfg,
		metrics:    newMetrics(cfg.Metrics),
		book:       newBook(cfg.MaxCollections),
		payouts:    newPayouts(cfg.MaxCollections, cfg),
		due:        newTimers[string](),
		decisions:  newTimers[string](),
		callbacks:  newCallbacks(cfg.CallbackAttempts, cfg.CallbackBackoff),
		operators:  map[string]operator{},
		gateways:   map[string]*gateway{},
		erps:       erps{byAgency: map[string]*erp{}},
		idps:       idps{byName: map[string]*idp{}},
		faults:     &planted{byAccount: map[[2]string][]plantedFault{}},
		inboxes:    inboxes{byName: map[string]*inbox{}},
		sms:        &letterbox[sms]{messages: newHistory[sms](cfg.MaxInboxMessages)},
		mail:       &letterbox[email]{messages: newHistory[email](cfg.MaxInboxMessages)},
		smsGateway: newGateway(),
		stopping:   make(chan struct{}),
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

// Run carries out the payers' decisions and calls merchants back until ctx ends. Then it
// waits at most five seconds for the calls under way. It returns nil after an orderly end.
// Call it once.
func (s *Simulator) Run(ctx context.Context) error {
	defer close(s.stopping)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		s.decisions.run(ctx, s.cfg.Now, s.cfg.Poll, func(id string) { s.book.settle(id, s.cfg.Now()) })
		return nil
	})
	group.Go(func() error {
		s.due.run(ctx, s.cfg.Now, s.cfg.Poll, s.payoutDue)
		return nil
	})
	group.Go(func() error { return s.callbacks.run(ctx, s) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("running the simulators: %w", err)
	}
	return nil
}

// Handler serves every surface. The package documentation and GET / list them.
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
	r.Route("/idp/{provider}", s.idpRoutes)
	r.Route("/sms", s.smsRoutes)
	r.Route("/inbox/sms", boxRoutes(s.sms, "SMS", "Received", "To", "From", "Text"))
	r.Route("/inbox/mail", boxRoutes(s.mail, "E-mail", "Received", "To", "From", "Subject", "Text", "Attachments"))
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

// count counts answers by route, not by path, because paths contain ids and names, which
// must not become labels.
func (s *Simulator) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(wrapped, r)
		route := chi.RouteContext(r.Context()).RoutePattern()
		s.metrics.requests.WithLabelValues(cmp.Or(route, "none"), strconv.Itoa(cmp.Or(wrapped.Status(), http.StatusOK))).Inc()
	})
}

// submit enters a collection and reports whether its id was free. The caller schedules it
// when the merchant may get the outcome.
func (s *Simulator) submit(c collection) bool {
	if !s.book.accept(c) {
		return false
	}
	s.metrics.collections.WithLabelValues(c.operator, statePending).Inc()
	return true
}

// schedule starts the timer of a submitted collection whose script decides.
func (s *Simulator) schedule(c collection) {
	if c.script.decides {
		s.decisions.add(c.receivedAt.Add(c.script.after), c.id)
	}
}

// collectionDecided runs after every decision. It queues the operator's callbacks.
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

// pause delays an answer by the wall clock, as a slow system does. It returns false after it
// has answered 503, because the caller has disconnected or the simulators are stopping.
// Without the 503 the server would send an implicit 200.
func (s *Simulator) pause(w http.ResponseWriter, r *http.Request, d time.Duration) bool {
	if s.wait(r.Context(), d) {
		return true
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	return false
}

// wait waits for d. It returns false when ctx or the simulators end first.
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

// readBody reads at most limit bytes, or answers with a refusal.
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
