package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/spf13/cobra"

	"quittance/checkout"
	"quittance/ingress/callbacks"
	cash "quittance/ingress/counter"
	"quittance/ingress/docs"
	"quittance/ingress/ministry"
	"quittance/ingress/pages"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/clickhouse"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/quota"
	"quittance/internal/reference"
	readmodel "quittance/internal/sessions"
	"quittance/processors/runtime"
	"quittance/processors/session"
	"quittance/reconciliation"
	"quittance/schemas"
	"quittance/sdk"
	"quittance/sinks/collect"
	"quittance/sinks/erp"
	"quittance/sinks/journal"
	sinkreadmodel "quittance/sinks/readmodel"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
)

// Groups and transactional ids of an installation; its prefix comes before them.
const (
	groupProcessor = "processor"
	transactional  = "checkout-"
)

func ingress() *cobra.Command {
	s := &Settings{}
	cmd := command("ingress", "Run the HTTP edge: ministry API, citizen's pages, operators' callbacks", s, func(cmd *cobra.Command, _ []string) error {
		return runRole(cmd, *s, (*base).ingress)
	})
	s.runFlags(cmd.Flags())
	s.ingressFlags(cmd)
	return cmd
}

func (s *Settings) ingressFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Listen, "listen", "127.0.0.1:8080", "address to listen on, host:port")
	cmd.Flags().StringVar(&s.CheckoutURL, "checkout-url", "", "where citizens reach the checkout pages; http://<listen> when empty")
	cmd.Flags().StringVar(&s.CallbackURL, "callback-url", "", "where operators reach /callbacks; the checkout URL when empty")
}

func processor() *cobra.Command {
	s := &Settings{}
	cmd := command("processor", "Run the session processor", s, func(cmd *cobra.Command, _ []string) error {
		return runRole(cmd, *s, (*base).processor)
	})
	s.runFlags(cmd.Flags())
	cmd.Flags().StringVar(&s.Store, "store", "", "folder of this instance's local stores; <data>/store-<instance> when empty")
	return cmd
}

// sinks are the roles of `quittance sink NAME`.
var sinks = map[string]func(*base) error{
	"collect": (*base).collect, "webhook": (*base).webhook, "erp": (*base).erp,
	"schedule": (*base).schedule, "readmodel": (*base).readmodel, "journal": (*base).journal,
}

func sinkNames() []string {
	return []string{"collect", "webhook", "erp", "schedule", "readmodel", "journal"}
}

func sink() *cobra.Command {
	s := &Settings{}
	cmd := command("sink NAME", "Run a sink: "+strings.Join(sinkNames(), ", "), s, func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(sinkNames(), args[0]) {
			return fmt.Errorf("no sink is called %q; the sinks are %s", args[0], strings.Join(sinkNames(), ", "))
		}
		return runRole(cmd, *s, sinks[args[0]])
	})
	cmd.Args = cobra.ExactArgs(1)
	s.runFlags(cmd.Flags())
	cmd.Flags().StringVar(&s.CallbackURL, "callback-url", "http://127.0.0.1:8080", "where operators reach /callbacks (sink collect)")
	cmd.Flags().StringVar(&s.CheckoutURL, "checkout-url", "http://127.0.0.1:8080", "where citizens reach the checkout pages (sink collect)")
	return cmd
}

// runRole opens the base, starts the role and waits for its end.
func runRole(cmd *cobra.Command, s Settings, start func(*base) error) error {
	b, err := newBase(cmd, s)
	if err != nil {
		return err
	}
	if err = start(b); err == nil {
		err = b.serveHealth()
	}
	if err != nil {
		// What has been started ends with the group's context.
		b.group.Go(func() error { return err })
	}
	return b.wait()
}

func (b *base) ingress() error {
	if err := b.openRegistry(); err != nil {
		return err
	}
	if b.CheckoutURL == "" {
		b.CheckoutURL = "http://" + b.Listen
	}
	checkoutURL := strings.TrimSuffix(b.CheckoutURL, "/")
	h, err := commands.New(b.ctx, commands.Config{Kafka: b.kafkaConfig(), Space: b.space, Codec: b.codec, Log: b.log, Metrics: b.metrics})
	if err != nil {
		return err
	}
	b.run("commands", h.Run)
	b.run("commands probe", b.probe(h))
	refs, err := reference.New(b.ctx, reference.Config{Postgres: b.pool, Key: b.keys.PermutationKey("reference"), Now: b.now, Log: b.log})
	if err != nil {
		return err
	}
	b.run("references", refs.Run)
	sessions, err := readmodel.New(readmodel.Config{Pool: b.pool, Kafka: b.kafkaConfig(), Space: b.space, Log: b.log, Metrics: b.metrics})
	if err != nil {
		return err
	}
	b.run("read model", sessions.Run)

	reads, err := quota.New(quota.Config{Postgres: b.pool, Now: b.now, Metrics: b.metrics})
	if err != nil {
		return err
	}
	api, err := ministry.New(ministry.Config{
		Commands: h, Registry: b.reg, Sessions: sessions, Reads: reads, References: refs, Keys: b.keys, CheckoutURL: checkoutURL, Now: b.now, Log: b.log,
		Partition: func(app string) int32 { return b.space.Partition(schemas.TopicCommands, app) },
	})
	if err != nil {
		return err
	}
	connectors, err := b.connectors()
	if err != nil {
		return err
	}
	citizen, err := pages.New(pages.Config{
		Commands: h, Sessions: sessions, Agencies: b.configuration(), MobileMoney: mobileMoney(connectors),
		Opener: b.keys, FrameScript: sdk.Frame(),
		Now: b.now, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}
	b.run("pages", citizen.Run)
	collectors := asked(connectors)
	reports, err := callbacks.New(callbacks.Config{
		Sender: h, Verifier: b.keys, Connectors: operators(collectors), Account: b.accountOfReport(sessions, collectors),
		Now: b.now, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}

	counters, err := cash.New(cash.Config{
		Commands: h, Sessions: sessions, Registry: b.reg, Reads: reads, Keys: b.keys, PublicURL: checkoutURL,
		Now: b.now, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}

	manual, err := docs.New(docs.Config{OpenAPI: ministry.OpenAPI()})
	if err != nil {
		return err
	}

	r := chi.NewRouter()
	r.Use(web.Measure(b.metrics), problem.WithRequestID)
	// The completion token is asked for from a frame too, by the same origins.
	api.Routes(r.With(citizen.CrossOrigin))
	citizen.Routes(r)
	sdk.Routes(r)
	reports.Routes(r)
	counters.Routes(r)
	manual.Routes(r)
	return b.serve("ingress", b.Listen, http.Handler(r))
}

// probe makes the ingress ready once every partition has answered a question
// about a session that does not exist: the whole way there and back works.
func (b *base) probe(h *commands.Client) func(context.Context) error {
	var answered atomic.Int32
	partitions := b.space.Count(schemas.TopicCommands)
	b.readyWhen("ingress", func() error {
		if n := answered.Load(); n < partitions {
			return fmt.Errorf("%d of %d partitions answer; is a processor running?", n, partitions)
		}
		return nil
	})
	return func(ctx context.Context) error {
		for p := range partitions {
			for {
				id := checkout.NewSessionID(b.now(), p, [16]byte{})
				_, err := h.Ask(ctx, checkout.Command{At: b.now(), SessionID: id, Do: checkout.Enquire{}})
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					return nil
				}
				b.log.Debug("waiting for a processor", slog.Int("partition", int(p)), slog.Any("error", err))
			}
			answered.Add(1)
		}
		return nil
	}
}

// connectors by offer id.
func (b *base) connectors() (map[string]connector.Connector, error) {
	momo, err := mtn.New(mtn.Config{Now: b.now})
	if err != nil {
		return nil, err
	}
	momoB, err := airtel.New(airtel.Config{Now: b.now})
	if err != nil {
		return nil, err
	}
	// Signatures carry the machine's time, also where a developer's clock jumps.
	acquirer, err := card.New(card.Config{Now: func() time.Time { return time.Now().UTC() }})
	if err != nil {
		return nil, err
	}
	return map[string]connector.Connector{checkout.OfferMomo: momo, checkout.OfferMomoB: momoB, checkout.OfferCard: acquirer}, nil
}

// accountOfReport finds the merchant account that signs an operator's reports about
// a collection: the one that was asked for the money, as it is configured now. Of a
// collection that is not the session's it is the agency's own, whatever it was then:
// such a report changes no session, and an operator case must come of it.
func (b *base) accountOfReport(sessions *readmodel.Reader, collectors map[string]connector.Collector) func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error) {
	return func(ctx context.Context, operator, sessionID, collectionID string) (connector.Account, error) {
		s, err := sessions.ByID(ctx, sessionID)
		if err != nil {
			return connector.Account{}, err
		}
		var offer, fingerprint string
		if c := s.Collection; c != nil && c.ID == collectionID {
			offer, fingerprint = c.OfferID, c.Account
			if collects, ok := collectors[offer]; !ok || collects.Operator() != operator {
				return connector.Account{}, errors.New("the collection is another operator's")
			}
		} else {
			for id, c := range collectors {
				if c.Operator() == operator {
					offer = id
				}
			}
		}
		account, ok := b.configuration().Account(s.TenantID, s.Live, offer)
		switch {
		case !ok:
			return connector.Account{}, errors.New("the agency has no account for the offer")
		case fingerprint != "" && account.Fingerprint() != fingerprint:
			return connector.Account{}, errors.New("the collection was begun with another account")
		}
		return account, nil
	}
}

// asked are those connectors whose operators are asked for the money.
func asked(connectors map[string]connector.Connector) map[string]connector.Collector {
	out := map[string]connector.Collector{}
	for offer, c := range connectors {
		if collector, ok := c.(connector.Collector); ok {
			out[offer] = collector
		}
	}
	return out
}

// operators are the same by their operator's name.
func operators(collectors map[string]connector.Collector) map[string]connector.Collector {
	out := map[string]connector.Collector{}
	for _, c := range collectors {
		out[c.Operator()] = c
	}
	return out
}

// ussd has the code that shows pending payments at an operator, where it is known.
var ussd = map[string]string{checkout.OfferMomo: "*105#"}

// mobileMoney are the connectors that reach payers by their number.
func mobileMoney(connectors map[string]connector.Connector) map[string]pages.MobileMoney {
	out := map[string]pages.MobileMoney{}
	for offer, c := range connectors {
		if payers, ok := c.(connector.PayerReader); ok {
			out[offer] = pages.MobileMoney{Payer: payers, USSD: ussd[offer]}
		}
	}
	return out
}

func (b *base) processor() error {
	if b.Store == "" {
		b.Store = filepath.Join(b.Data, "store-"+b.Instance)
	}
	r, err := runtime.New(runtime.Config{
		Brokers: b.kafkaConfig().Brokers, Group: b.TopicPrefix + groupProcessor, TransactionalID: b.TopicPrefix + transactional + b.Instance,
		InputTopic: b.space.Name(schemas.TopicCommands), StateTopic: b.space.Name(schemas.TopicState), PoisonTopic: b.space.Name(schemas.TopicPoisonCommands),
		StoreDir: b.Store, Processor: session.New(b.codec, b.space), Now: b.now, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}
	b.readyWhen("processor", func() error {
		if !r.Ready() {
			return errors.New("partitions are being assigned or restored")
		}
		return nil
	})
	b.run("processor", r.Run)
	return nil
}

func (b *base) collect() error {
	if err := b.openRegistry(); err != nil {
		return err
	}
	connectors, err := b.connectors()
	if err != nil {
		return err
	}
	c, err := collect.New(collect.Config{
		Kafka: b.kafkaConfig(), Space: b.space, Codec: b.codec, Account: b.configuration().Account, Connectors: asked(connectors), Signer: b.keys,
		PublicURL: strings.TrimSuffix(b.CallbackURL, "/"), Sealer: b.keys, CheckoutURL: strings.TrimSuffix(b.CheckoutURL, "/"), Now: b.now, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}
	b.run("collect", c.Run)
	return nil
}

func (b *base) webhook() error {
	if err := b.openRegistry(); err != nil {
		return err
	}
	history, err := b.history()
	if err != nil {
		return err
	}
	cfg := webhook.Config{
		Kafka: b.kafkaConfig(), Codec: b.codec, Endpoints: b.reg, History: history, Now: b.now, Timestamp: time.Now, Developer: b.Developer, Log: b.log, Metrics: b.metrics,
	}
	planner, err := webhook.NewPlanner(cfg)
	if err != nil {
		return err
	}
	worker, err := webhook.NewWorker(cfg)
	if err != nil {
		return err
	}
	b.run("webhook planner", planner.Run)
	b.run("webhook worker", worker.Run)
	return nil
}

func (b *base) erp() error {
	if err := b.openRegistry(); err != nil {
		return err
	}
	history, err := b.history()
	if err != nil {
		return err
	}
	cfg := erp.Config{
		Kafka: b.kafkaConfig(), Codec: b.codec, ERPs: b.reg, History: history, Now: b.now, Developer: b.Developer, Log: b.log, Metrics: b.metrics,
	}
	planner, err := erp.NewPlanner(cfg)
	if err != nil {
		return err
	}
	worker, err := erp.NewWorker(cfg)
	if err != nil {
		return err
	}
	prober, err := b.erpProber()
	if err != nil {
		return err
	}
	b.run("erp planner", planner.Run)
	b.run("erp worker", worker.Run)
	b.run("erp prober", prober.Run)
	return nil
}

func (b *base) erpProber() (*erp.Prober, error) {
	policy, err := erp.NewPolicy(erp.Config{ERPs: b.reg, Developer: b.Developer})
	if err != nil {
		return nil, err
	}
	return erp.NewProber(erp.ProberConfig{Agencies: b.reg, Policy: policy, Log: b.log, Metrics: b.metrics})
}

// history is what the schedule knows of deliveries that may have been sent.
func (b *base) history() (*schedule.History, error) {
	cl, err := b.kafkaConfig().Client()
	if err != nil {
		return nil, err
	}
	b.close = append(b.close, cl.Close)
	return schedule.NewHistory(b.kafkaConfig(), cl, b.pool), nil
}

func (b *base) schedule() error {
	if err := b.openRegistry(); err != nil {
		return err
	}
	s, err := schedule.New(schedule.Config{
		Kafka: b.kafkaConfig(), Codec: b.codec, Pool: b.pool, MaxInFlight: maxInFlight(b.reg), Now: b.now, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}
	b.run("schedule", s.Run)
	return nil
}

func (b *base) readmodel() error {
	if err := b.openPostgres(); err != nil {
		return err
	}
	r, err := sinkreadmodel.New(sinkreadmodel.Config{Kafka: b.kafkaConfig(), Space: b.space, Codec: b.codec, Pool: b.pool, Log: b.log, Metrics: b.metrics})
	if err != nil {
		return err
	}
	b.run("readmodel", r.Run)
	return nil
}

func (b *base) journal() error {
	if err := b.need("clickhouse"); err != nil {
		return err
	}
	conn, err := clickhouse.Open(b.ctx, b.ClickHouse)
	if err != nil {
		return err
	}
	b.close = append(b.close, func() { _ = conn.Close() })
	if err := reconciliation.Check(b.ctx, conn); err != nil {
		return fmt.Errorf("%w; run `quittance migrate`", err)
	}
	j, err := journal.New(journal.Config{
		Kafka: b.kafkaConfig(), Codec: b.codec, ClickHouse: conn, Log: b.log, Metrics: b.metrics,
	})
	if err != nil {
		return err
	}
	b.run("journal", j.Run)
	return nil
}
