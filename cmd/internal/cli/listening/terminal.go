package listening

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quittance/cmd/internal/cli/render"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/secret"
)

// Terminal prints events and what became of them.
type Terminal struct {
	// Out receives events. Notes receives everything else.
	Out, Notes io.Writer
	// JSON prints one JSON object for each event.
	JSON bool
	// ForwardTo, Mode and Since are the values of the flags.
	ForwardTo, Mode string
	Since           time.Duration

	heard, accepted, missed int
}

// Announce prints the signing secret and which events are shown. whose is the name of the
// application, or "all applications".
func (t *Terminal) Announce(whose string, signing secret.Text) {
	from := "from now on"
	if t.Since > 0 {
		from = "from " + span(t.Since) + " ago on"
	}
	modes := cmp.Or(t.Mode, "test and live")
	_, _ = fmt.Fprintf(t.Notes, "Signing secret: %s\n", signing.Reveal())
	_, _ = fmt.Fprintf(t.Notes, "Only this command signs with it: events to registered endpoints are signed with the secrets of those endpoints.\n\n")
	_, _ = fmt.Fprintf(t.Notes, "Listening to the events of %s, %s, %s. ", whose, modes, from)
	if t.ForwardTo != "" {
		_, _ = fmt.Fprintf(t.Notes, "Each is posted to %s, once. ", t.ForwardTo)
	}
	_, _ = fmt.Fprint(t.Notes, "Ctrl-C ends.\n\n")
}

// Sum prints the numbers of events.
func (t *Terminal) Sum() {
	_, _ = fmt.Fprintf(t.Notes, "\n%s", render.Counted(t.heard, "event"))
	if t.ForwardTo != "" {
		_, _ = fmt.Fprintf(t.Notes, ", %d accepted, %d not", t.accepted, t.missed)
	}
	_, _ = fmt.Fprintln(t.Notes, ".")
}

// heardJSON is an event as --json prints it. Body is a string, because its bytes are signed.
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
	// Meaning is the consequence that this answer of a real endpoint would have.
	Meaning string `json:"meaning,omitempty"`
}

// Hear prints an event and the result of forwarding it.
func (t *Terminal) Hear(h Heard) error {
	t.heard++
	n := h.Notification
	switch {
	case !h.Forwarded:
	case h.Result.OK():
		t.accepted++
	default:
		t.missed++
	}
	if t.JSON {
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
		e := json.NewEncoder(t.Out)
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
	_, err := fmt.Fprintln(t.Out, line)
	return err
}

// answered describes the answer of the integrator's server.
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

// meaning returns the consequence that this answer of a real endpoint would have; empty if
// the event was accepted.
func meaning(h Heard) string {
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

// span formats a duration for people.
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

// plain quotes a text with control characters, which could move the cursor.
func plain(s string) string {
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
