// Package listen shows the events of an installation in an integrator's terminal,
// signed as webhooks are, and forwards them to a server on the same machine.
package listen

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/webhook"
)

const (
	// quiet is the time without an event after which the listener asks whether the broker
	// is available.
	quiet     = 5 * time.Second
	askWithin = 10 * time.Second
)

// ErrForward is the error of a URL to which events may not be forwarded. Its text has the
// reason.
var ErrForward = errors.New("events are forwarded to this machine alone")

// Listener reads the events of an installation, signs them as for an endpoint, and
// forwards them to a server on the integrator's own machine. It stores nothing,
// commits no offsets and retries nothing.
type Listener struct {
	// Kafka, Codec, Keys, Log and Hear are required.
	Kafka kafka.Config
	Codec *schemas.Codec
	Keys  *secret.Keys
	Log   *slog.Logger
	// ApplicationID of the only application to listen to; empty for all.
	ApplicationID string
	// Events are the only events to listen to; empty for all.
	Events []string
	// Test and Live are the modes to listen to.
	Test, Live bool
	// Since is how far back to begin; 0 begins now.
	Since time.Duration
	// ForwardTo is where to post events, a URL from ParseForward; nil posts nothing.
	ForwardTo *url.URL
	// Started is called once, when the listener reads every later event.
	Started func()
	// Hear is called for each event, one at a time, in the order of its application.
	// An error ends Run.
	Hear func(Heard) error
}

// Heard is an event and the result of forwarding it.
type Heard struct {
	Notification record.Notification
	// OrderID is the integrator's; empty when the body has none.
	OrderID string
	// Header holds the signed headers, as an endpoint receives them.
	Header http.Header
	// Forwarded means that the event was posted at Tried, with Result. Verdict is the
	// delivery worker's decision about such an answer to a first attempt.
	Forwarded bool
	Tried     time.Time
	Result    call.Result
	Verdict   delivery.Verdict
}

// Secret returns the secret that a Listener signs with. It depends on the
// installation and on the application ("" for all) and is not that of an endpoint.
func Secret(keys *secret.Keys, applicationID string) secret.Text {
	return secret.NewText("whsec_" + base64.StdEncoding.EncodeToString(keys.MAC("webhook-listen", []byte(applicationID))))
}

// ParseForward parses an http or https URL of this machine: 127.0.0.1, [::1] or
// localhost. An error wraps ErrForward unless the text is not a URL at all.
func ParseForward(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%q is not an absolute URL, such as http://127.0.0.1:3000/webhooks", raw)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: %s is neither http nor https", ErrForward, u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("%w, as real endpoints are called: without credentials in the URL", ErrForward)
	case u.Fragment != "":
		return nil, fmt.Errorf("%w, as real endpoints are called: without a fragment in the URL", ErrForward)
	}
	switch strings.ToLower(u.Hostname()) {
	case "127.0.0.1", "::1", "localhost":
		return u, nil
	}
	return nil, fmt.Errorf("%w: %s is not 127.0.0.1, [::1] or localhost; register an endpoint for another machine", ErrForward, u.Host)
}

// Run listens until ctx ends, then returns nil.
func (l *Listener) Run(ctx context.Context) error {
	topic := l.Kafka.Prefix + schemas.TopicWebhooks
	cl, err := l.Kafka.Client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	from, err := l.begin(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return err
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	if l.Started != nil {
		l.Started()
	}
	signing := Secret(l.Keys, l.ApplicationID)
	client := call.NewLoopback(ParseForward)
	defer client.Close()
	for gone := false; ; {
		poll, cancel := context.WithTimeout(ctx, quiet)
		fetches := cl.PollFetches(poll)
		silent := poll.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		for i := fetches.RecordIter(); !i.Done(); {
			if err := l.hear(ctx, client, signing, i.Next()); err != nil || ctx.Err() != nil {
				return err
			}
		}
		// The client waits for an unavailable broker without an error.
		if silent {
			ping, cancel := context.WithTimeout(ctx, quiet)
			err := cl.Ping(ping)
			cancel()
			if away := err != nil && ctx.Err() == nil; away != gone {
				gone = away
				if gone {
					l.Log.LogAttrs(ctx, slog.LevelWarn, "the broker does not answer, waiting for it")
				} else {
					l.Log.LogAttrs(ctx, slog.LevelInfo, "the broker is back")
				}
			}
		}
	}
}

// begin returns where to start reading in each partition. Records of a transaction
// that is not committed yet come after these positions.
func (l *Listener) begin(ctx context.Context, adm *kadm.Client, topic string) (map[int32]kgo.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	offsets, err := adm.ListCommittedOffsets(ctx, topic)
	if l.Since > 0 && err == nil {
		offsets, err = adm.ListOffsetsAfterMilli(ctx, time.Now().Add(-l.Since).UnixMilli(), topic)
	}
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the position in %s: %w", topic, err)
	}
	out := map[int32]kgo.Offset{}
	offsets.Each(func(o kadm.ListedOffset) { out[o.Partition] = kgo.NewOffset().At(o.Offset) })
	return out, nil
}

func (l *Listener) hear(ctx context.Context, client *call.Client, signing secret.Text, r *kgo.Record) error {
	var n record.Notification
	if err := l.Codec.Decode(r.Value, &n); err != nil {
		l.Log.LogAttrs(ctx, slog.LevelWarn, "an event cannot be decoded", slog.Int("partition", int(r.Partition)), slog.Int64("offset", r.Offset), slog.Any("error", err))
		return nil
	}
	if !l.wants(&n) {
		return nil
	}
	now := time.Now()
	header, err := webhook.Sign([]secret.Text{signing}, n.EventID, now, n.Body)
	if err != nil {
		return err
	}
	heard := Heard{Notification: n, OrderID: orderID(n.Body), Header: header.Clone()}
	if l.ForwardTo != nil {
		heard.Forwarded, heard.Tried = true, now
		heard.Result = client.Post(ctx, l.ForwardTo.String(), header, n.Body)
		first := deliveries.Plan(webhook.Kind, &n, "")
		first.FirstAttemptAt = now
		heard.Verdict = new(webhook.Policy).Judge(first, heard.Result, now)
	}
	return l.Hear(heard)
}

func (l *Listener) wants(n *record.Notification) bool {
	return (l.ApplicationID == "" || n.ApplicationID == l.ApplicationID) &&
		(len(l.Events) == 0 || slices.Contains(l.Events, n.Event)) &&
		(n.Livemode && l.Live || !n.Livemode && l.Test)
}

func orderID(body []byte) string {
	var of struct {
		OrderID string `json:"order_id"`
	}
	_ = json.Unmarshal(body, &of) // a body without an order is shown without one
	return of.OrderID
}
