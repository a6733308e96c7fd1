package listening

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/checkout"
	"quittance/cmd/internal/cli"
	"quittance/internal/secret"
	"quittance/internal/transport"
	"quittance/schemas/record"
)

// Events returns the events that integrators can subscribe to.
func Events() (out []string) {
	for _, e := range checkout.EventTypes() {
		if e.Webhook() {
			out = append(out, string(e))
		}
	}
	return out
}

// CheckEvents refuses names that are not of Events.
func CheckEvents(names []string) error {
	for _, e := range names {
		if !slices.Contains(Events(), e) {
			return fmt.Errorf("--events: there is no event %q; there are %s", e, strings.Join(Events(), ", "))
		}
	}
	return nil
}

// Command returns the command `listen`, which needs nothing but a test key.
func Command() cli.Command {
	l := &listener{}
	return cli.Command{
		Use: "listen", Short: "Show the webhooks of a test key's application as they occur, and forward them to a server on this machine", Connection: cli.ConnectionNone,
		Examples: []string{"listen --url https://pay.example --key sk_test_… --forward-to http://127.0.0.1:3000/webhooks"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&l.url, "url", "", "the service's address without a path, such as https://pay.example")
			f.StringVar(&l.key, "key", "", "a test key, sk_test_…; QUITTANCE_KEY hides it from other users of this machine")
			f.StringVar(&l.ForwardTo, "forward-to", "", "where to post each event: http or https on 127.0.0.1, [::1] or localhost; nowhere when empty")
			f.StringSliceVar(&l.events, "events", nil, "only these events: "+strings.Join(Events(), ", "))
			f.DurationVar(&l.Since, "since", 0, "begin with the events of the past, up to this age, such as 10m; at most 24h")
			f.BoolVar(&l.JSON, "json", false, "print one JSON object for each event, and everything else on stderr")
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			l.Out, l.Notes = m.Out, m.Out
			if l.JSON {
				l.Notes = m.Err
			}
			return l.run(ctx)
		},
	}
}

// listener is a `listen`.
type listener struct {
	Terminal
	url, key string
	events   []string
}

func (l *listener) run(ctx context.Context) error {
	service, to, err := l.check()
	if err != nil {
		return cli.Usage("%v", err)
	}
	l.Mode = "test"
	forwarder := NewForwarder(to)
	defer forwarder.Close()
	s := Stream{
		URL: service, Key: secret.NewText(l.key), Since: l.Since,
		Started: func(signing secret.Text) { l.Announce("the key's application", signing) },
		Note:    func(text string) { _, _ = fmt.Fprintln(l.Notes, text) },
		Hear: func(ctx context.Context, n *record.Notification, signing secret.Text) error {
			if len(l.events) > 0 && !slices.Contains(l.events, n.Event) {
				return nil
			}
			heard, err := forwarder.Forward(ctx, n, signing)
			if err != nil {
				return err
			}
			return l.Hear(heard)
		},
	}
	if err := s.Run(ctx); err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	l.Sum()
	return nil
}

// check refuses invalid flags. It returns the addresses of the service and of --forward-to, which is nil
// when empty.
func (l *listener) check() (service, to *url.URL, err error) {
	if err := CheckEvents(l.events); err != nil {
		return nil, nil, err
	}
	service, err = url.Parse(l.url)
	switch {
	case l.url == "":
		return nil, nil, errors.New("say at which service: --url https://pay.example, or QUITTANCE_URL")
	case err != nil || service.Host == "" || service.User != nil || strings.Trim(service.Path, "/") != "" || service.RawQuery != "":
		return nil, nil, errors.New("--url: must be an address without a path, such as https://pay.example")
	case service.Scheme != "https" && (service.Scheme != "http" || !transport.Local(service.Hostname())):
		return nil, nil, errors.New("--url: must use https, because the key is a secret")
	case !strings.HasPrefix(l.key, "sk_test_"):
		return nil, nil, errors.New("--key: must be a test key, sk_test_…; live events come to a registered endpoint only")
	case l.Since < 0 || l.Since >= 24*time.Hour:
		return nil, nil, errors.New("--since: must be below 24h")
	}
	if l.ForwardTo != "" {
		if to, err = ParseForward(l.ForwardTo); err != nil {
			return nil, nil, fmt.Errorf("--forward-to: %w", err)
		}
	}
	return service, to, nil
}
