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
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
)

func listen() cli.Command {
	l := &listener{}
	return cli.Command{
		Use: "listen", Short: "Show signed events as they come, and forward them to a server on this machine",
		Examples: []string{"listen --port 8080 --forward-to http://127.0.0.1:3000/webhooks"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&l.ForwardTo, "forward-to", "", "where to post each event: http or https on 127.0.0.1, [::1] or localhost; nowhere when empty")
			f.StringVar(&l.application, "application", "", "only events of this application, by id or by its name if no other has it")
			f.StringSliceVar(&l.events, "events", nil, "only these events: "+strings.Join(subscribable(), ", "))
			f.StringVar(&l.Mode, "mode", "", "only events of this mode: test or live")
			f.DurationVar(&l.Since, "since", 0, "begin with the events of this long ago, such as 10m")
			f.BoolVar(&l.JSON, "json", false, "print one JSON object an event, and everything else on stderr")
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

// subscribable are the events that integrators can subscribe to.
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
	// OpenKeys would make new ones, which are not the installation's.
	if _, err := os.Stat(filepath.Join(s.Data, "master.keys")); s.MasterKeys == "" && err != nil {
		return errors.New("the installation's master keys are not known: give --data, the folder of its `" + name + " up`, or set QUITTANCE_MASTER_KEYS")
	}
	var err error
	if w.Keys, err = s.OpenKeys(); err != nil {
		return err
	}
	whose := "all applications"
	if l.application != "" {
		app, err := findApplication(ctx, s, w.Keys, l.application)
		if err != nil {
			return err
		}
		w.ApplicationID, whose = app.ID, app.Name
	}
	w.Kafka = s.KafkaConfig()
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
	w.Started = func() { l.Announce(whose, dev.Secret(w.Keys, w.ApplicationID)) }
	if err := w.Run(ctx); err != nil {
		return err
	}
	l.Sum()
	return nil
}

// check refuses flags that make no sense, and fills in the listener.
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
func findApplication(ctx context.Context, s *roles.Settings, keys *secret.Keys, named string) (registry.Application, error) {
	pool, err := s.OpenPostgres(ctx)
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
