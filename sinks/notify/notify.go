// Package notify is the kind of delivery that sends messages to people: SMS and e-mail by the
// installation's providers (internal/notify says what a message is).
//
// A destination is one address of one channel, as a keyed hash. Each destination gets one
// message at a time. A message that the provider has accepted is recorded as delivered and is
// never sent again, nor is one that the provider reports as delivered. What happens without an
// acceptance is the kind's policy: see notify.Kind. A message of a kind with Once is recorded
// before its call; when a worker dies between the call and the outcome, the next one gives the
// message up.
//
// A message to a provider.Reporter has a row of notify.Reports before its call, and the address
// for the provider's reports, which ingress/callbacks receives.
//
// Three parts make messages: the Announcer about what became of the money of sessions, Reminders
// about dues near their date, and the Digester about what waits for staff (internal/digests).
package notify

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/document"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/kafka/consume"
	"quittance/internal/notify"
	"quittance/internal/papers"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

// Kind is the name of this kind of delivery.
const Kind = notify.DeliveryKind

// Registration returns the registration of messages. A destination needs no configuration.
func Registration() deliveries.Registration {
	return deliveries.Registration{
		Kind: Kind, Notifications: schemas.TopicMessages, Deliveries: schemas.TopicMessagesDeliveries, Plan: notify.Plan, Redelivers: true, Directory: directory{},
	}
}

// directory knows every address.
type directory struct{}

// Destinations is not used: Plan names the destination of a message.
func (directory) Destinations(*record.Notification) []string { return nil }

// Destination allows one call at a time to an address.
func (directory) Destination(id string) (deliveries.Destination, bool) {
	for _, c := range provider.Channels {
		if strings.HasPrefix(id, string(c)+"_") {
			return deliveries.Destination{MaxInFlight: 1}, true
		}
	}
	return deliveries.Destination{}, false
}

// Faults of messages besides those of providers. They are reasons of outcomes and labels of
// metrics.
const (
	faultExpired    = "expired"                // worthless by now: not sent
	faultNotAgain   = "not_sent_again"         // it may be sent only once, and it was or may have been
	faultNoProvider = "no_provider"            // the installation has no provider of the channel
	faultErased     = "erased"                 // its personal data is erased
	faultDatabase   = "database"               // Postgres is away
	faultLocked     = "locked"                 // this process lacks the master key
	faultUnusable   = "unusable"               // the record, its kind or its text is not usable
	faultLimited    = deliveries.ReasonLimited // its address has had as many messages as it may get
	faultSuppressed = "suppressed"             // its address reached nobody
	faultReversed   = "reversed"               // the money of its payment was given back meanwhile
	outcomeAccepted = "accepted"               // by the provider; an outcome and no fault
	faultInterrupt  = "interrupted"            // at shutdown; the result is unknown
	faultBehind     = "behind"                 // the read model does not have the payment yet
	behindPause     = 50 * time.Millisecond
	behindTries     = 40               // with behindPause
	retryDatabase   = 5 * time.Second  // until Postgres is back, for a message of a kind with Once
	retryConfig     = 30 * time.Second // until somebody mends the installation
	erasePatience   = 2 * time.Second  // to delete a key, which the sweep does otherwise
	sweepPause      = 30 * time.Minute // between two sweeps
)

// outcomes lists the label of metrics.
func outcomes() []string {
	all := []string{outcomeAccepted, faultExpired, faultNotAgain, faultNoProvider, faultErased, faultDatabase, faultLocked, faultUnusable, faultLimited, faultSuppressed, faultReversed, faultBehind, faultInterrupt}
	for _, f := range provider.Faults {
		all = append(all, string(f))
	}
	return all
}

// Personal opens the personal part of messages: personal.Store.
type Personal interface {
	// Message opens an address and variables. Errors wrap personal.ErrErased,
	// personal.ErrMalformed and secret.ErrUnknownKey, or are those of a Postgres that is
	// away.
	Message(ctx context.Context, messageID string, sealed []byte) (personal.Message, error)
	// Forget deletes the key of a message.
	Forget(ctx context.Context, messageID string) error
}

// Papers makes receipts: papers.Maker.
type Papers interface {
	Receipt(ctx context.Context, q papers.Request) (papers.Receipt, error)
}

// Config is what a Policy needs. Fields are required unless they say otherwise.
type Config struct {
	Codec     *schemas.Codec
	Personal  Personal
	Templates *notify.Templates
	Sends     *notify.Sends
	Addresses *notify.Addresses
	Reports   *notify.Reports
	// ReportURL returns the address for the reports of a provider on a message:
	// notify.ReportURL.
	ReportURL func(providerName, messageID string) string
	// Papers makes the receipts that e-mails have.
	Papers Papers
	// Session returns a session as the read model has it. The error wraps sessions.ErrNotFound
	// while the read model does not have it.
	Session func(ctx context.Context, id string) (checkout.Session, error)
	// Providers has the provider of each channel. A channel may lack one.
	Providers map[provider.Channel]provider.Provider
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Policy sends messages. Safe for concurrent use.
type Policy struct {
	cfg      Config
	messages *prometheus.CounterVec
	segments *prometheus.CounterVec
	silent   *prometheus.CounterVec
	refusals *prometheus.CounterVec
}

// NewPolicy makes the policy of the worker.
func NewPolicy(cfg Config) (*Policy, error) {
	if cfg.Codec == nil || cfg.Personal == nil || cfg.Templates == nil || cfg.Sends == nil || cfg.Addresses == nil || cfg.Reports == nil || cfg.ReportURL == nil || cfg.Session == nil || cfg.Papers == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("messages: Codec, Personal, Templates, Sends, Addresses, Reports, ReportURL, Papers, Session, Now, Log and Metrics are required")
	}
	cfg.Providers = maps.Clone(cfg.Providers)
	with := promauto.With(cfg.Metrics)
	p := &Policy{
		cfg: cfg,
		messages: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_messages_total", Help: "Attempts to send a message, by kind, channel and outcome.",
		}, []string{"kind", "channel", "outcome"}),
		segments: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_messages_segments_total", Help: "Segments of the SMS that providers have accepted, by kind.",
		}, []string{"kind"}),
		silent: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_messages_unreported_total", Help: "Messages on which their provider has not reported for three days.",
		}, []string{"provider"}),
		refusals: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_messages_refused_total", Help: "Messages that a provider has refused without saying that their address reaches nobody.",
		}, []string{"provider"}),
	}
	for _, carrier := range cfg.Providers {
		p.refusals.WithLabelValues(carrier.Name())
		if reports(carrier) {
			p.silent.WithLabelValues(carrier.Name())
		}
	}
	for _, k := range notify.Kinds() {
		for _, c := range k.Channels {
			for _, o := range outcomes() {
				p.messages.WithLabelValues(k.Name, string(c), o)
			}
		}
		p.segments.WithLabelValues(k.Name)
	}
	return p, nil
}

// reports reports whether the provider is set up to report on messages.
func reports(p provider.Provider) bool {
	r, ok := p.(provider.Reporter)
	return ok && r.Reports()
}

// Run deletes old rows of Sends, Addresses and Reports, and gives up waiting for reports, until
// ctx ends.
func (p *Policy) Run(ctx context.Context) error {
	for {
		_, err := p.cfg.Sends.Sweep(ctx, p.cfg.Now())
		_, swept := p.cfg.Addresses.Sweep(ctx, p.cfg.Now())
		unreported, given := p.cfg.Reports.Sweep(ctx, p.cfg.Now())
		for name, n := range unreported {
			p.silent.WithLabelValues(name).Add(float64(n))
		}
		if err = errors.Join(err, swept, given); err != nil && ctx.Err() == nil {
			p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "old rows of messages are not swept", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepPause):
		}
	}
}

// Send makes one attempt. The result has no answer, because a provider's answer may repeat the
// address.
func (p *Policy) Send(ctx context.Context, d *record.Delivery) call.Result {
	begun := time.Now()
	r := p.send(ctx, d)
	r.Duration = time.Since(begun)
	return r
}

func (p *Policy) send(ctx context.Context, d *record.Delivery) call.Result {
	var m record.Message
	if err := p.cfg.Codec.Decode(d.Body, &m); err != nil {
		p.cfg.Log.LogAttrs(ctx, slog.LevelError, "a message is not readable", slog.String("delivery_id", d.DeliveryID), slog.Any("error", err))
		return call.Result{Fault: faultUnusable}
	}
	kind, ok := notify.KindOf(m.Kind)
	if !ok {
		p.cfg.Log.LogAttrs(ctx, slog.LevelError, "a message has a kind that this release does not know", slog.String("delivery_id", d.DeliveryID), slog.String("kind", m.Kind))
		return call.Result{Fault: faultUnusable}
	}
	again := d.DeliveryID != deliveries.ID(Kind, m.MessageID, m.DestinationID)
	r, segments := p.attempt(ctx, &m, kind, again)
	outcome := r.Fault
	if outcome == "" {
		outcome = outcomeAccepted
		p.segments.WithLabelValues(kind.Name).Add(float64(segments))
	}
	p.messages.WithLabelValues(kind.Name, m.Channel, outcome).Inc()
	p.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "message", slog.String("message_id", m.MessageID), slog.String("kind", kind.Name),
		slog.String("channel", m.Channel), slog.String("outcome", outcome), slog.String("detail", r.Detail), slog.Int("segments", segments))
	if kind.Once && !p.mayPass(r.Fault) {
		p.forget(ctx, m.MessageID)
	}
	return r
}

// attempt sends the message unless something forbids it. again says that an operator has asked for a
// named redelivery.
func (p *Policy) attempt(ctx context.Context, m *record.Message, kind notify.Kind, again bool) (r call.Result, segments int) {
	channel, now := provider.Channel(m.Channel), p.cfg.Now()
	carrier := p.cfg.Providers[channel]
	reporting := carrier != nil && reports(carrier)
	if !m.NotAfter.IsZero() && !now.Before(m.NotAfter) {
		if done, err := p.done(ctx, m, kind, reporting, again); err == nil && done {
			return call.Result{Status: 200}, 0
		}
		return call.Result{Fault: faultExpired}, 0
	}
	if carrier == nil {
		return call.Result{Fault: faultNoProvider}, 0
	}
	out, segments, r := p.compose(ctx, m, kind, reporting, again, now)
	if out == nil {
		return r, 0
	}
	if reporting {
		out.ReportURL = p.cfg.ReportURL(carrier.Name(), m.MessageID)
	}
	if r, ok := p.begin(ctx, m, kind, carrier, reporting, now); !ok {
		return r, 0
	}
	err := carrier.Send(ctx, *out)
	if err == nil {
		p.accepted(ctx, m, kind, reporting)
		return call.Result{Status: 200}, segments
	}
	e := provider.Of(err)
	if e.Fault == provider.FaultRefused && !e.Unknown { // many say something about the provider, not about the addresses
		p.refusals.WithLabelValues(carrier.Name()).Inc()
	}
	p.refused(ctx, m, e, reporting)
	if kind.Once && e.Fault.Definite() {
		if err := p.cfg.Sends.Refused(context.WithoutCancel(ctx), m.MessageID, p.cfg.Now()); err != nil {
			p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a refused message is not sent again", slog.String("message_id", m.MessageID), slog.Any("error", err))
		}
	}
	if ctx.Err() != nil && !e.Fault.Definite() {
		return call.Result{Fault: call.FaultInterrupted}, 0
	}
	return call.Result{Fault: string(e.Fault), Detail: e.Code, RetryAfter: e.RetryAfter}, 0
}

// compose returns what the provider is asked to send, and the length of its text in segments.
// out is nil when the message is not sent now; r then says why.
func (p *Policy) compose(ctx context.Context, m *record.Message, kind notify.Kind, reporting, again bool, now time.Time) (out *provider.Message, segments int, r call.Result) {
	if r, done := p.ended(ctx, m, kind, reporting, again); done {
		return nil, 0, r
	}
	private, err := p.cfg.Personal.Message(ctx, m.MessageID, m.Sealed)
	if err != nil {
		fault := p.unopened(ctx, m, err)
		if fault == faultErased && kind.Once {
			fault = faultNotAgain // the key is deleted when such a message is done
		}
		return nil, 0, call.Result{Fault: fault}
	}
	channel := provider.Channel(m.Channel)
	text, err := p.cfg.Templates.Render(m.Template, channel, m.Locale, m.Livemode, private.Variables)
	if err != nil {
		p.cfg.Log.LogAttrs(ctx, slog.LevelError, "a message has no text", slog.String("message_id", m.MessageID), slog.Any("error", err))
		return nil, 0, call.Result{Fault: faultUnusable}
	}
	if fault, wait := p.admit(ctx, m, kind, now); fault != "" {
		return nil, 0, call.Result{Fault: fault, RetryAfter: wait}
	}
	var files []provider.Attachment
	if kind.OfPayment {
		var fault string
		if files, fault = p.receipts(ctx, m, channel); fault != "" {
			return nil, 0, call.Result{Fault: fault}
		}
	}
	if !kind.Once {
		// Waiting for the payment and making its receipts takes seconds. Another worker may
		// have had the message meanwhile, if this one has lost its partition.
		if r, done := p.ended(ctx, m, kind, reporting, again); done {
			return nil, 0, r
		}
	}
	return &provider.Message{
		ID: m.MessageID, To: private.To, Subject: text.Subject, Text: text.Body, Attachments: files,
		At: m.OccurredAt, NotAfter: m.NotAfter,
	}, text.Segments, call.Result{}
}

// ended reports whether the attempt ends before the call, because the provider has accepted the
// message already or nobody can tell. r is its result then.
func (p *Policy) ended(ctx context.Context, m *record.Message, kind notify.Kind, reporting, again bool) (r call.Result, ended bool) {
	switch done, err := p.done(ctx, m, kind, reporting, again); {
	case err != nil:
		return call.Result{Fault: p.database(ctx, err)}, true
	case done:
		return call.Result{Status: 200}, true
	}
	return call.Result{}, false
}

// begin records that the call is made. ok is false when it must not be made; r then says why.
func (p *Policy) begin(ctx context.Context, m *record.Message, kind notify.Kind, carrier provider.Provider, reporting bool, now time.Time) (r call.Result, ok bool) {
	uncalled := func(fault string) (call.Result, bool) {
		if reporting {
			p.note(ctx, m, p.cfg.Reports.Refused(context.WithoutCancel(ctx), m.MessageID, false, now))
		}
		return call.Result{Fault: fault}, false
	}
	if reporting {
		// The report may come before the provider's answer.
		if err := p.cfg.Reports.Begin(ctx, m.MessageID, m.DestinationID, carrier.Name(), now); err != nil {
			return call.Result{Fault: p.database(ctx, err)}, false
		}
	}
	if kind.Once {
		// After this line nobody sends the message again, unless it is definitely refused.
		switch may, err := p.cfg.Sends.Begin(ctx, m.MessageID, kind, now); {
		case err != nil:
			return call.Result{Fault: p.database(ctx, err)}, false
		case !may:
			return uncalled(faultNotAgain)
		}
	}
	if !m.NotAfter.IsZero() && !p.cfg.Now().Before(m.NotAfter) { // Postgres was slow
		return uncalled(faultExpired)
	}
	return call.Result{}, true
}

// done reports whether the provider has accepted the message: a worker may have ended between this
// record and the outcome, or another worker may have had the message too.
func (p *Policy) done(ctx context.Context, m *record.Message, kind notify.Kind, reporting, again bool) (bool, error) {
	switch {
	case again && !kind.Once:
		return false, nil
	case reporting:
		return p.cfg.Reports.Done(ctx, m.MessageID)
	case kind.Once: // its row in Sends says that it may have been accepted
		return false, nil
	}
	return p.cfg.Sends.Done(ctx, m.MessageID)
}

// accepted records that the provider has accepted the message.
func (p *Policy) accepted(ctx context.Context, m *record.Message, kind notify.Kind, reporting bool) {
	ctx, now := context.WithoutCancel(ctx), p.cfg.Now()
	switch {
	case reporting:
		p.note(ctx, m, p.cfg.Reports.Accepted(ctx, m.MessageID, now))
	case !kind.Once:
		p.note(ctx, m, p.cfg.Sends.Accepted(ctx, m.MessageID, now))
	}
	if !kind.Once && !kind.Unbound {
		p.note(ctx, m, p.cfg.Addresses.Sent(ctx, m.DestinationID, reporting, now))
	}
}

// refused records what an answer other than an acceptance says of the message's address, and
// of the reports to await.
func (p *Policy) refused(ctx context.Context, m *record.Message, e *provider.Error, reporting bool) {
	ctx, now := context.WithoutCancel(ctx), p.cfg.Now()
	switch {
	case reporting && e.Fault.Definite():
		p.note(ctx, m, p.cfg.Reports.Refused(ctx, m.MessageID, e.Unknown, now))
	case e.Unknown:
		p.note(ctx, m, p.cfg.Addresses.Unknown(ctx, provider.Channel(m.Channel), m.DestinationID, now))
	}
}

// receipts returns the files of a message about a payment: in an e-mail the receipt of each due.
// The fault says that the payment was reversed, or that its receipts cannot be made now.
func (p *Policy) receipts(ctx context.Context, m *record.Message, channel provider.Channel) (files []provider.Attachment, fault string) {
	email := channel == provider.ChannelEmail
	s, err := p.cfg.Session(ctx, m.SessionID)
	for n := 0; email && behind(s, err) && n < behindTries; n++ {
		if !consume.Sleep(ctx, behindPause) {
			return nil, call.FaultInterrupted
		}
		s, err = p.cfg.Session(ctx, m.SessionID)
	}
	switch {
	case behind(s, err) && email:
		return nil, faultBehind
	case behind(s, err):
		return nil, "" // an SMS has no file, and is sent without a look at the payment
	case err != nil:
		return nil, p.database(ctx, err)
	case !s.ReversedAt.IsZero():
		return nil, faultReversed
	case !email:
		return nil, ""
	}
	for _, due := range s.Dues() {
		r, err := p.cfg.Papers.Receipt(ctx, papers.Request{Session: s, TransactionID: due.TransactionID, Language: money.Language(m.Locale)})
		if err != nil && !errors.Is(err, document.ErrIncomplete) {
			return nil, p.database(ctx, err)
		}
		var pdf []byte
		if err == nil {
			pdf, err = r.PDF()
		}
		if err != nil { // the text has the address of the receipt's page
			p.cfg.Log.LogAttrs(ctx, slog.LevelError, "a receipt is sent without its file", slog.String("message_id", m.MessageID), slog.Any("error", err))
			continue
		}
		files = append(files, provider.Attachment{Name: r.Name + ".pdf", ContentType: papers.ContentType, Content: pdf})
	}
	return files, ""
}

// behind reports whether the read model does not have the payment of a session yet.
func behind(s checkout.Session, err error) bool {
	return errors.Is(err, sessions.ErrNotFound) || err == nil && s.Status != checkout.StatusCompleted
}

// admit returns the fault of a message that may not be sent now because its address gets
// nothing, or nothing now. wait is the time until it gets something.
func (p *Policy) admit(ctx context.Context, m *record.Message, kind notify.Kind, now time.Time) (fault string, wait time.Duration) {
	if kind.Once {
		return "", 0
	}
	switch a, err := p.cfg.Addresses.Admit(ctx, m.DestinationID, now); {
	case err != nil:
		return p.database(ctx, err), 0
	case a.Suppressed:
		return faultSuppressed, 0
	case !a.FreeAt.IsZero() && !kind.Unbound:
		return faultLimited, a.FreeAt.Sub(now)
	}
	return "", 0
}

// note logs that the result of a call is not recorded: the limits of the address are then too
// generous by one message, and a worker that reads the message again sends it again.
func (p *Policy) note(ctx context.Context, m *record.Message, err error) {
	if err != nil {
		p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the result of a call is not recorded", slog.String("message_id", m.MessageID), slog.Any("error", err))
	}
}

// unopened returns the fault of a personal part that does not open.
func (p *Policy) unopened(ctx context.Context, m *record.Message, err error) string {
	switch {
	case errors.Is(err, personal.ErrErased):
		return faultErased
	case errors.Is(err, personal.ErrMalformed):
		p.cfg.Log.LogAttrs(ctx, slog.LevelError, "a message does not open", slog.String("message_id", m.MessageID), slog.Any("error", err))
		return faultUnusable
	case errors.Is(err, secret.ErrUnknownKey), errors.Is(err, secret.ErrSealed):
		p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a message does not open with the master keys of this process", slog.String("message_id", m.MessageID), slog.Any("error", err))
		return faultLocked
	}
	return p.database(ctx, err)
}

func (p *Policy) database(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return call.FaultInterrupted
	}
	p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a message waits for Postgres", slog.Any("error", err))
	return faultDatabase
}

// forget deletes the key of a message that is never sent again.
func (p *Policy) forget(ctx context.Context, messageID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), erasePatience)
	defer cancel()
	if err := p.cfg.Personal.Forget(ctx, messageID); err != nil {
		p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the key of a message is deleted later", slog.String("message_id", messageID), slog.Any("error", err))
	}
}

// own reports whether the fault is the installation's and not the provider's: no provider was
// called.
func own(fault string) bool {
	switch fault {
	case faultNoProvider, faultDatabase, faultLocked, faultBehind:
		return true
	}
	return false
}

// mayPass reports whether a message of a kind with Once may be sent after the fault.
func (p *Policy) mayPass(fault string) bool {
	switch provider.Fault(fault) {
	case provider.FaultBusy, provider.FaultNotSent, provider.FaultCredentials:
		return true
	case provider.FaultRefused, provider.FaultUnknown:
	}
	return own(fault) || fault == call.FaultInterrupted
}

// Judge decides what follows an attempt. A provider's acceptance is final. A refusal that may
// pass is tried again after the kind's delays. So is an unknown result, except for a kind with
// Once. A fault of the installation is tried again as long as the message is worth it, at
// most with the steps of webhooks.
func (p *Policy) Judge(d *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	exhausted := delivery.Verdict{Outcome: deliveries.OutcomeExhausted}
	kind, known := notify.KindOfEvent(d.Event)
	var m record.Message
	switch {
	case r.Fault == "":
		return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
	case !known || p.cfg.Codec.Decode(d.Body, &m) != nil:
		return exhausted
	case r.Fault == faultLimited && kind.Money:
		// Kind.Retries are for failures. The wait for the address's limits uses none of them up.
		if next := now.Add(r.RetryAfter); next.Before(m.NotAfter) {
			return delivery.Verdict{Outcome: deliveries.OutcomeDeferred, NextAttemptAt: next}
		}
	case own(r.Fault):
		delay := retryConfig
		switch {
		case !kind.Once:
			delay = max(retryConfig, deliveries.RetryDelay(int(d.Attempt), call.Result{}))
		case r.Fault == faultDatabase:
			delay = retryDatabase
		}
		next := now.Add(delay)
		if !m.NotAfter.IsZero() && !next.Before(m.NotAfter) || m.NotAfter.IsZero() && int(d.Attempt) >= deliveries.LastStep {
			return exhausted
		}
		return delivery.Verdict{Outcome: deliveries.OutcomeFailed, NextAttemptAt: next}
	case p.mayPass(r.Fault), r.Fault == string(provider.FaultUnknown) && !kind.Once:
		if next, ok := kind.NextAttempt(int(d.Attempt), d.FirstAttemptAt, now, m.NotAfter, r.RetryAfter); ok {
			return delivery.Verdict{Outcome: deliveries.OutcomeFailed, NextAttemptAt: next}
		}
	}
	return exhausted
}
