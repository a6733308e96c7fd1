package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/listening"
	"quittance/cmd/internal/roles"
	dev "quittance/dev/listen"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas/record"
)

func listen() cli.Command {
	l := &listener{}
	return cli.Command{
		Use: "listen", Short: "Show signed events as they occur, and forward them to a server on this machine",
		Examples: []string{"listen --port 8080 --forward-to http://127.0.0.1:3000/webhooks"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&l.ForwardTo, "forward-to", "", "where to post each event: http or https on 127.0.0.1, [::1] or localhost; nowhere when empty")
			f.StringVar(&l.application, "application", "", "only events of this application: its id, or its name if no other application has the same")
			f.StringSliceVar(&l.events, "events", nil, "only these events: "+strings.Join(listening.Events(), ", "))
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

// listener is a `listen`.
type listener struct {
	listening.Terminal
	application string
	events      []string
}

func (l *listener) run(ctx context.Context, s *roles.Settings, log *slog.Logger) error {
	w := dev.Listener{Log: log, Events: l.events, Test: l.Mode != "live", Live: l.Mode != "test", Since: l.Since}
	to, err := l.check()
	if err != nil {
		return err
	}
	if err := s.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	// Otherwise OpenKeys would make new keys, which are not the installation's.
	if _, err := os.Stat(filepath.Join(s.Data, "master.keys")); s.MasterKeys == "" && err != nil {
		return errors.New("the installation's master keys are not known: set --data to the data folder of its `" + name + " up`, or set QUITTANCE_MASTER_KEYS")
	}
	keys, err := s.OpenKeys()
	if err != nil {
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
	signing := secret.ListenSecret(keys, w.ApplicationID)
	forwarder := listening.NewForwarder(to)
	defer forwarder.Close()
	w.Started = func() { l.Announce(whose, signing) }
	w.Hear = func(ctx context.Context, n *record.Notification) error {
		heard, err := forwarder.Forward(ctx, n, signing)
		if err != nil || ctx.Err() != nil {
			return err
		}
		return l.Hear(heard)
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	l.Sum()
	return nil
}

// check refuses invalid flags. It returns the address of --forward-to, nil when empty.
func (l *listener) check() (*url.URL, error) {
	if err := listening.CheckEvents(l.events); err != nil {
		return nil, err
	}
	if l.Mode != "" && l.Mode != "test" && l.Mode != "live" {
		return nil, errors.New("--mode: must be test or live")
	}
	if l.Since < 0 {
		return nil, errors.New("--since: must not be negative")
	}
	if l.ForwardTo == "" {
		return nil, nil
	}
	to, err := listening.ParseForward(l.ForwardTo)
	if err != nil {
		return nil, fmt.Errorf("--forward-to: %w", err)
	}
	return to, nil
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
