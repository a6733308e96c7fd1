package roles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quittance/checkout"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/sinks/webhook"
)

func listen() *cobra.Command {
	s := &Settings{}
	var l listener
	cmd := command("listen", "Show signed events as they come and forward them to this machine: developer mode", s, func(cmd *cobra.Command, _ []string) error {
		l.out, l.notes = cmd.OutOrStdout(), cmd.OutOrStdout()
		if l.json {
			l.notes = cmd.ErrOrStderr()
		}
		log, err := s.logger(cmd)
		if err != nil {
			return err
		}
		return l.run(cmd.Context(), s, log)
	})
	f := cmd.Flags()
	f.StringVar(&l.forwardTo, "forward-to", "", "where to post each event, http or https on 127.0.0.1, [::1] or localhost; nowhere when empty")
	f.StringVar(&l.application, "application", "", "only events of this application, by id or by its name if no other has it")
	f.StringSliceVar(&l.events, "events", nil, "only these events: "+strings.Join(subscribable(), ", "))
	f.StringVar(&l.mode, "mode", "", "only events of this mode: test or live")
	f.DurationVar(&l.since, "since", 0, "also events of this long ago, such as 10m")
	f.BoolVar(&l.json, "json", false, "print one JSON object an event, and everything else on stderr")
	return cmd
}

// subscribable are the events that integrators can subscribe to.
func subscribable() (out []string) {
	for _, e := range checkout.EventTypes() {
		if e.Webhook() {
			out = append(out, string(e))
		}
	}
	return out
}

// listener is a `quittance listen`.
type listener struct {
	forwardTo, application, mode string
	events                       []string
	since                        time.Duration
	json                         bool

	out, notes              io.Writer
	heard, accepted, missed int
}

func (l *listener) run(ctx context.Context, s *Settings, log *slog.Logger) error {
	w := webhook.Listener{Log: log, Events: l.events, Test: l.mode != "live", Live: l.mode != "test", Since: l.since, Hear: l.hear}
	if err := l.check(&w); err != nil {
		return err
	}
	if err := s.locate(); err != nil {
		return err
	}
	if !s.Developer {
		return errors.New("listen is for developer mode alone: give --port N of the `quittance up` that runs on this machine, or --developer with --kafka and --schema-registry; elsewhere register an endpoint, and events are sent to it")
	}
	if err := s.need("kafka", "schema-registry"); err != nil {
		return err
	}
	// Made here they would be another installation's.
	if _, err := os.Stat(filepath.Join(s.Data, "master.keys")); s.MasterKeys == "" && err != nil {
		return errors.New("the installation's master keys are not known: give --data, the folder of its `quittance up`, or set QUITTANCE_MASTER_KEYS")
	}
	var err error
	if w.Keys, err = s.masterKeys(); err != nil {
		return err
	}
	whose := "all applications"
	if l.application != "" {
		app, err := s.findApplication(ctx, w.Keys, l.application)
		if err != nil {
			return err
		}
		w.ApplicationID, whose = app.ID, app.Name
	}
	w.Kafka = s.kafkaConfig()
	if err := checkTopics(ctx, w.Kafka); err != nil {
		return err
	}
	schema, err := schemas.NewClient(s.SchemaRegistry)
	if err != nil {
		return err
	}
	if w.Codec, err = schemas.NewCodec(ctx, schema, false); err != nil {
		return err
	}
	w.Started = func() { l.announce(whose, webhook.ListenSecret(w.Keys, w.ApplicationID)) }
	if err := w.Run(ctx); err != nil {
		return err
	}
	l.sum()
	return nil
}

// check refuses what cannot be meant, and fills in the listener.
func (l *listener) check(w *webhook.Listener) (err error) {
	for _, e := range l.events {
		if !slices.Contains(subscribable(), e) {
			return fmt.Errorf("--events: there is no event %q; there are %s", e, strings.Join(subscribable(), ", "))
		}
	}
	if l.mode != "" && l.mode != "test" && l.mode != "live" {
		return errors.New("--mode: must be test or live")
	}
	if l.since < 0 {
		return errors.New("--since: must not be negative")
	}
	if l.forwardTo != "" {
		if w.ForwardTo, err = webhook.ParseForward(l.forwardTo); err != nil {
			return fmt.Errorf("--forward-to: %w", err)
		}
	}
	return nil
}

// checkTopics says at once when the broker is away or is none of ours.
func checkTopics(ctx context.Context, cfg kafka.Config) error {
	cl, err := cfg.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = kafka.Load(ctx, cfg, cl)
	return err
}

// findApplication finds an application by its id or, if no other has it, its name.
func (s *Settings) findApplication(ctx context.Context, keys *secret.Keys, named string) (registry.Application, error) {
	if err := s.need("postgres"); err != nil {
		return registry.Application{}, err
	}
	pool, err := postgres.Open(ctx, s.Postgres)
	if err != nil {
		return registry.Application{}, err
	}
	defer pool.Close()
	reg, err := registry.Open(ctx, registry.Config{Pool: pool, Keys: keys, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		return registry.Application{}, err
	}
	var found []registry.Application
	var all []string
	for _, a := range reg.Applications() {
		if strings.EqualFold(a.ID, named) {
			return a, nil
		}
		if a.Name == named {
			found = append(found, a)
		}
		all = append(all, a.ID+" "+a.Name)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return registry.Application{}, fmt.Errorf("--application: no application has this id or name; there are:\n  %s", strings.Join(all, "\n  "))
	}
	return registry.Application{}, fmt.Errorf("--application: several applications have this name, give the id:\n  %s", strings.Join(all, "\n  "))
}

// announce is printed once nothing is missed any more.
func (l *listener) announce(whose string, signing secret.Text) {
	from := "from now on"
	if l.since > 0 {
		from = "from " + span(l.since) + " ago on"
	}
	modes := cmp.Or(l.mode, "test and live")
	_, _ = fmt.Fprintf(l.notes, "Signing secret: %s\n", signing.Reveal())
	_, _ = fmt.Fprintf(l.notes, "It is of this command alone: what is sent to registered endpoints is signed with theirs.\n\n")
	_, _ = fmt.Fprintf(l.notes, "Listening to the events of %s, %s, %s. ", whose, modes, from)
	if l.forwardTo != "" {
		_, _ = fmt.Fprintf(l.notes, "Each is posted to %s, once. ", l.forwardTo)
	}
	_, _ = fmt.Fprint(l.notes, "Ctrl-C ends.\n\n")
}

func (l *listener) sum() {
	_, _ = fmt.Fprintf(l.notes, "\n%s", count(l.heard, "event"))
	if l.forwardTo != "" {
		_, _ = fmt.Fprintf(l.notes, ", %d accepted, %d not", l.accepted, l.missed)
	}
	_, _ = fmt.Fprintln(l.notes, ".")
}

// heardJSON is an event as --json prints it. Body is a string: its bytes are what
// is signed.
type heardJSON struct {
	Time          time.Time         `json:"time"`
	Event         string            `json:"event"`
	EventID       string            `json:"event_id"`
	ApplicationID string            `json:"application_id"`
	SessionID     string            `json:"session_id"`
	OrderID       string            `json:"order_id,omitempty"`
	Livemode      bool              `json:"livemode"`
	Headers       map[string]string `json:"headers"`
	Body          string            `json:"body"`
	Forward       *forwardJSON      `json:"forward,omitempty"`
}

type forwardJSON struct {
	Status     int    `json:"status,omitempty"`
	Fault      string `json:"fault,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Accepted   bool   `json:"accepted"`
	// Meaning is what a real endpoint's answer would have led to.
	Meaning string `json:"meaning,omitempty"`
}

func (l *listener) hear(h webhook.Heard) error {
	l.heard++
	n := h.Notification
	switch {
	case !h.Forwarded:
	case h.Result.OK():
		l.accepted++
	default:
		l.missed++
	}
	if l.json {
		j := heardJSON{
			Time: n.OccurredAt.UTC(), Event: n.Event, EventID: n.EventID, ApplicationID: n.ApplicationID, SessionID: n.SessionID,
			OrderID: h.OrderID, Livemode: n.Livemode, Headers: map[string]string{}, Body: string(n.Body),
		}
		for name := range h.Header {
			j.Headers[strings.ToLower(name)] = h.Header.Get(name)
		}
		if h.Forwarded {
			j.Forward = &forwardJSON{
				Status: h.Result.Status, Fault: h.Result.Fault, DurationMS: h.Result.Duration.Milliseconds(), Accepted: h.Result.OK(), Meaning: meaning(h),
			}
		}
		e := json.NewEncoder(l.out)
		e.SetEscapeHTML(false)
		return e.Encode(j)
	}
	line := fmt.Sprintf("%s  %s  %s", n.OccurredAt.UTC().Format(time.RFC3339), n.Event, n.SessionID)
	if h.OrderID != "" {
		line += "  order " + plain(h.OrderID)
	}
	if h.Forwarded {
		line += "  → " + answered(h.Result)
		if m := meaning(h); m != "" {
			line += "\n    " + m
		}
	}
	_, err := fmt.Fprintln(l.out, line)
	return err
}

// answered is what the integrator's server said.
func answered(r call.Result) string {
	switch r.Fault {
	case "":
		text := strconv.Itoa(r.Status)
		if known := http.StatusText(r.Status); known != "" {
			text += " " + known
		}
		return fmt.Sprintf("%s in %d ms", text, r.Duration.Milliseconds())
	case call.FaultTimeout:
		return "no answer within " + span(r.Duration)
	case call.FaultConnect:
		return "nothing listens there"
	case call.FaultTLS:
		return "TLS failed: is the certificate one that this machine trusts?"
	case call.FaultAddress:
		return "not sent: the name does not lead to this machine"
	case call.FaultInterrupted:
		return "broken off"
	default:
		return "the connection broke"
	}
}

// meaning is what a real endpoint's answer would have led to, if it is not that
// all is well.
func meaning(h webhook.Heard) string {
	r := h.Result
	if !h.Forwarded || r.OK() || r.Fault == call.FaultInterrupted {
		return ""
	}
	switch {
	case h.Verdict.Gone:
		return "A real endpoint would be suspended after this: its events are held until it is resumed."
	case h.Verdict.Outcome == deliveries.OutcomeExhausted:
		return "A real endpoint would not be sent this again."
	}
	again := "A real endpoint would be sent this again after about " + span(h.Verdict.NextAttemptAt.Sub(h.Tried)) + ", and then ever more rarely for 30 days."
	if r.Status >= 300 && r.Status <= 399 {
		again = "Redirects are not followed. " + again
	}
	return again
}

// span is a duration as people say it.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return d.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// plain keeps what a caller made up from moving the cursor.
func plain(s string) string {
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
