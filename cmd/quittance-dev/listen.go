package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/checkout"
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/roles"
	dev "quittance/dev/listen"
	"quittance/internal/identity"
	"quittance/internal/kafka"
)

func listen() cli.Command {
	l := &listener{}
	return cli.Command{
		Use: "listen", Short: "Show signed events as they occur, and forward them to a server on this machine",
		Examples: []string{"listen --port 8080 --forward-to http://127.0.0.1:3000/webhooks"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&l.ForwardTo, "forward-to", "", "where to post each event: http or https on 127.0.0.1, [::1] or localhost; nowhere when empty")
			f.StringVar(&l.application, "application", "", "only events of this application: its id, or its name if no other application has the same")
			f.StringSliceVar(&l.events, "events", nil, "only these events: "+strings.Join(subscribable(), ", "))
			f.StringVar(&l.Mode, "mode", "", "only events of this mode: test or live")
			f.DurationVar(&l.Since, "since", 0, "begin with the events of the past, up to this age, such as 10m")
			f.BoolVar(&l.JSON, "json", false, "print one JSON object for each event, and everything else on stderr")
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			l.Out, l.Notes = m.Out, m.Out
			if l.JSON {
				l.Notes = m.Err
			}
			return l.run(ctx, &m.Settings, m.Log)
		},
	}
}

// subscribable returns the events that integrators can subscribe to.
func subscribable() (out []string) {
	for _, e := range checkout.EventTypes() {
		if e.Webhook() {
			out = append(out, string(e))
		}
	}
	return out
}

// listener is a `listen`.
type listener struct {
	dev.Terminal
	application string
	events      []string
}

func (l *listener) run(ctx context.Context, s *roles.Settings, log *slog.Logger) error {
	w := dev.Listener{Log: log, Events: l.events, Test: l.Mode != "live", Live: l.Mode != "test", Since: l.Since, Hear: l.Hear}
	if err := l.check(&w); err != nil {
		return err
	}
	if err := s.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	// Otherwise OpenKeys would make new keys, which are not the installation's.
	if _, err := os.Stat(filepath.Join(s.Data, "master.keys")); s.MasterKeys == "" && err != nil {
		return errors.New("the installation's master keys are not known: set --data to the data folder of its `" + name + " up`, or set QUITTANCE_MASTER_KEYS")
	}
	var err error
	if w.Keys, err = s.OpenKeys(); err != nil {
		return err
	}
	whose := "all applications"
	if l.application != "" {
		pool, err := s.OpenPostgres(ctx)
		if err != nil {
			return err
		}
		defer pool.Close()
		app, err := identity.FindApplication(ctx, pool, l.application)
		if err != nil {
			return err
		}
		w.ApplicationID, whose = app.ID, app.Name
	}
	w.Kafka = s.KafkaConfig()
	if err := checkTopics(ctx, w.Kafka); err != nil {
		return err
	}
	if w.Codec, err = s.OpenSchemas(ctx, false); err != nil {
		return err
	}
	w.Started = func() { l.Announce(whose, dev.Secret(w.Keys, w.ApplicationID)) }
	if err := w.Run(ctx); err != nil {
		return err
	}
	l.Sum()
	return nil
}

// check refuses invalid flags and sets the listener's ForwardTo.
func (l *listener) check(w *dev.Listener) (err error) {
	for _, e := range l.events {
		if !slices.Contains(subscribable(), e) {
			return fmt.Errorf("--events: there is no event %q; there are %s", e, strings.Join(subscribable(), ", "))
		}
	}
	if l.Mode != "" && l.Mode != "test" && l.Mode != "live" {
		return errors.New("--mode: must be test or live")
	}
	if l.Since < 0 {
		return errors.New("--since: must not be negative")
	}
	if l.ForwardTo != "" {
		if w.ForwardTo, err = dev.ParseForward(l.ForwardTo); err != nil {
			return fmt.Errorf("--forward-to: %w", err)
		}
	}
	return nil
}

// checkTopics returns an error within ten seconds when the broker does not answer or does
// not have our topics.
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
