package roles

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"quittance/internal/cases"
	"quittance/internal/deliveries"
	client "quittance/internal/erp"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/reconciliation/matcher"
	sinkcases "quittance/sinks/cases"
	"quittance/sinks/cashin"
	"quittance/sinks/collect"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	sinkjournal "quittance/sinks/journal"
	"quittance/sinks/notify"
	sinkreadmodel "quittance/sinks/readmodel"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
)

// add makes a part of a role and runs it.
func add[C any, P interface {
	Run(ctx context.Context) error
}](b *Base, name string, make func(C) (P, error), cfg C) error {
	part, err := make(cfg)
	if err == nil {
		b.Run(name, part.Run)
	}
	return err
}

func (b *Base) collect() error {
	if err := errors.Join(b.checkPublicURL("checkout-url", b.CheckoutURL), b.checkPublicURL("callback-url", b.CallbackURL)); err != nil {
		return err
	}
	_, connectors, err := b.connectors()
	if err != nil {
		return err
	}
	return add(b, "collect", collect.New, collect.Config{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Account: b.configuration().AccountOfCollection, Payer: b.Personal.Payer, HonoursLate: b.configuration().HonoursLate, Connectors: connectors, Signer: b.Keys,
		PublicURL: strings.TrimSuffix(b.CallbackURL, "/"), Sealer: b.Keys, CheckoutURL: strings.TrimSuffix(b.CheckoutURL, "/"), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

func (b *Base) webhook() error {
	policy, err := webhook.NewPolicy(webhook.Config{Endpoints: b.Registry, Now: b.Now, Timestamp: time.Now, Loopback: b.Loopback})
	if err != nil {
		return err
	}
	return b.deliver(webhook.Kind, policy)
}

func (b *Base) erp() error {
	calls := b.ERPs()
	err := add(b, "erp prober", erp.NewProber, erp.ProberConfig{Agencies: b.Registry, Client: calls, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	processor, err := b.commands()
	if err != nil {
		return err
	}
	err = add(b, "erp reporter", erp.NewReporter, erp.ReporterConfig{Kafka: b.KafkaConfig(), Codec: b.Codec, Processor: processor, Now: b.Now, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	return b.deliver(erp.Kind, erp.NewPolicy(b.Registry, calls))
}

// ERPs returns a client of the agencies' ERPs.
func (b *Base) ERPs() *client.Client { return client.New(client.Config{Loopback: b.Loopback}) }

// Dues returns the reader of what the agencies' ERPs say that citizens owe, which all roles of
// the process share. It needs the registry.
func (b *Base) Dues() (d *client.Dues, err error) {
	if b.dues == nil {
		b.dues, err = client.NewDues(client.DuesConfig{Client: b.ERPs(), Registry: b.Registry, Now: b.Now, Metrics: b.Metrics})
	}
	return b.dues, err
}

// DeliveryKinds returns the kinds of deliveries. reg may be nil for operations that need
// no destinations.
func DeliveryKinds(reg *registry.Registry) deliveries.Kinds {
	return deliveries.Kinds{webhook.Registration(reg), cashin.Registration(reg), erp.Registration(reg), notify.Registration()}
}

// deliver runs the planner and the worker of a kind of deliveries.
func (b *Base) deliver(name deliveries.Kind, policy delivery.Policy) error {
	kinds := DeliveryKinds(b.Registry)
	kind, err := kinds.Of(name)
	if err != nil {
		return err
	}
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return err
	}
	b.close = append(b.close, cl.Close)
	err = add(b, string(name)+" planner", delivery.NewPlanner, delivery.PlannerConfig{Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	return add(b, string(name)+" worker", delivery.NewWorker, delivery.WorkerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Policy: policy, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		History: deliveries.NewHistory(b.KafkaConfig(), cl, deliveries.NewStore(b.Pool, kinds)),
	})
}

func (b *Base) schedule() error {
	return add(b, "schedule", schedule.New, schedule.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Deliveries: deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry)), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

func (b *Base) cases() error {
	processor, err := b.commands()
	if err != nil {
		return err
	}
	cl, err := b.KafkaConfig().Producer()
	if err != nil {
		return err
	}
	b.close = append(b.close, cl.Close)
	return add(b, "cases", sinkcases.New, sinkcases.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: cases.NewStore(b.Pool), Processor: processor, Events: cases.NewEvents(cl, b.Topology, b.Codec), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// sweepEvery is the pause between two deletions of old keys of personal data.
const sweepEvery = time.Hour

// sweepPersonalData deletes the keys of personal data that no event deletes, and the files of statements
// that are old enough.
func (b *Base) sweepPersonalData(ctx context.Context) error {
	for {
		n, err := personal.Sweep(ctx, b.Pool, b.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			b.Log.LogAttrs(ctx, slog.LevelWarn, "old keys of personal data are not deleted", slog.Any("error", err))
		case n > 0:
			b.Log.LogAttrs(ctx, slog.LevelInfo, "deleted old keys of personal data", slog.Int64("keys", n))
		}
		n, err = intake.SweepOriginals(ctx, b.Pool, b.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			b.Log.LogAttrs(ctx, slog.LevelWarn, "old files of statements are not deleted", slog.Any("error", err))
		case n > 0:
			b.Log.LogAttrs(ctx, slog.LevelInfo, "deleted old files of statements", slog.Int64("files", n))
		}
		if !consume.Sleep(ctx, sweepEvery) {
			return nil
		}
	}
}

func (b *Base) readmodel() error {
	b.Run("personal data sweep", b.sweepPersonalData)
	if err := b.watchCitizens(); err != nil {
		return err
	}
	return add(b, "readmodel", sinkreadmodel.New, sinkreadmodel.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log, Metrics: b.Metrics})
}

func (b *Base) journal() error {
	conn, err := b.OpenClickHouse()
	if err != nil {
		return err
	}
	store := journal.NewStore(conn)
	if err := add(b, "names", sinkjournal.NewNames, sinkjournal.NamesConfig{Read: b.names, Store: store, Log: b.Log}); err != nil {
		return err
	}
	return add(b, "journal", sinkjournal.New, sinkjournal.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: store, Log: b.Log, Metrics: b.Metrics})
}

func (b *Base) match() error {
	conn, err := b.OpenClickHouse()
	if err != nil {
		return err
	}
	return add(b, "match", matcher.New, matcher.Config{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, ClickHouse: conn, Pool: b.Pool, Registry: b.Registry, JournalGroup: sinkjournal.Group, Now: b.Now, Log: b.Log, Metrics: b.Metrics, Kept: keepMatch,
	})
}

// names returns the present names of agencies and applications.
func (b *Base) names(ctx context.Context) (out []journal.Name, err error) {
	s, err := registry.Read(ctx, b.Pool)
	if err != nil {
		return nil, err
	}
	for _, a := range s.Agencies {
		out = append(out,
			journal.Name{Kind: journal.NameAgency, ID: a.ID, TenantID: a.ID, Name: a.Name},
			journal.Name{Kind: journal.NameSlug, ID: a.ID, TenantID: a.ID, Name: a.Slug})
	}
	for _, a := range s.Applications {
		out = append(out, journal.Name{Kind: journal.NameApplication, ID: a.ID, TenantID: a.AgencyID, Name: a.Name})
	}
	return out, nil
}
