package roles

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/ingress/callbacks"
	"quittance/ingress/citizen"
	"quittance/ingress/counter"
	"quittance/ingress/docs"
	"quittance/ingress/ministry"
	"quittance/ingress/pages"
	"quittance/ingress/problem"
	"quittance/ingress/verify"
	"quittance/ingress/watch"
	"quittance/ingress/web"
	"quittance/internal/commands"
	"quittance/internal/drafts"
	"quittance/internal/notify"
	"quittance/internal/provider/all"
	"quittance/internal/quota"
	readmodel "quittance/internal/sessions"
	"quittance/internal/tills"
	"quittance/schemas"
	"quittance/sdk"
)

func (b *Base) ingress() error {
	if b.CheckoutURL == "" && b.Developer() {
		b.CheckoutURL = "http://" + b.Listen
	}
	if err := b.checkPublicURL("checkout-url", b.CheckoutURL); err != nil {
		return err
	}
	checkoutURL := strings.TrimSuffix(b.CheckoutURL, "/")
	h, err := b.commands()
	if err != nil {
		return err
	}
	b.Run("commands probe", b.probe(h))
	b.readyWithNews()
	refs, sessions, err := b.readModel()
	if err != nil {
		return err
	}
	reads, err := quota.New(quota.Config{Postgres: b.Pool, Now: b.Now, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	ids := checkout.NewIDs(b.References.MAC("ids"))
	partition := func(tenantID string) int32 { return b.Topology.Partition(schemas.TopicCommands, tenantID) }
	drafted, err := drafts.New(drafts.Config{
		Commands: h, References: refs, Personal: b.Personal, Keys: b.Keys, IDs: ids, Partition: partition, RequestID: problem.RequestID, Log: b.Log,
	})
	if err != nil {
		return err
	}
	gate, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: b.KeylessPerClient, PerInstance: b.KeylessPerInstance, Metrics: b.Metrics})
	if err != nil {
		return fmt.Errorf("--keyless-per-client and --keyless-per-instance: %w", err)
	}
	dues, err := b.Dues()
	if err != nil {
		return err
	}
	keys, err := b.receiptKeys()
	if err != nil {
		return err
	}
	maker, err := b.papers()
	if err != nil {
		return err
	}
	api, err := ministry.New(ministry.Config{
		Commands: h, Registry: b.configuration(), Identities: b.Identities, Sessions: sessions, Reads: reads, Drafts: drafted, Papers: maker, IDs: ids, Gate: gate, Partition: partition,
		CheckoutURL: checkoutURL, Now: b.Now, Log: b.Log,
	})
	if err != nil {
		return err
	}
	connectors, err := b.connectors()
	if err != nil {
		return err
	}
	if err := b.tellCitizens(); err != nil {
		return err
	}
	live := watch.New(watch.Config{Sessions: sessions, Log: b.Log, Metrics: b.Metrics})
	b.Run("live status", live.Run)
	hosted, err := pages.New(pages.Config{
		Commands: h, Sessions: sessions, Live: live, Dues: dues, Agencies: b.configuration(), MobileMoney: mobileMoney(connectors),
		Gate: gate, Opener: b.Keys, Personal: b.Personal, Papers: maker, FrameScript: sdk.Frame(), Keys: b.Keys, PublicURL: checkoutURL,
		Lookups: &quota.Lookups{Postgres: b.Pool, Now: b.Now, PerClient: pages.LookupsPerClient, Unknown: pages.UnknownLookups},
		Now:     b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	reports, err := callbacks.New(callbacks.Config{
		Sender: h, Gate: gate, Verifier: b.Keys, Connectors: byOperator(connectors), Merchant: b.merchantOfReport(sessions), HonoursLate: b.honoursLate(sessions),
		Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	delivered, err := callbacks.NewMessages(callbacks.MessagesConfig{
		Providers: all.Providers(), Reports: notify.NewReports(b.Pool), Verifier: b.Keys, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	cash, err := tills.New(tills.Config{Pool: b.Pool, ReadModel: sessions, Now: b.Now})
	if err != nil {
		return err
	}
	counters, err := counter.New(counter.Config{
		Commands: h, Sessions: sessions, Dues: dues, Registry: b.Registry, Identities: b.Identities, Tills: cash, Papers: maker, Reads: reads, Keys: b.Keys, PublicURL: checkoutURL,
		Unknown: &quota.Unknown{Postgres: b.Pool, Now: b.Now, Most: counter.MaxUnknown},
		Now:     b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	partners, err := b.cashinSurface(h, drafted, reads, connectors, checkoutURL)
	if err != nil {
		return err
	}
	taxpayers, portal, err := b.citizenSurface(drafted, sessions, reads, checkoutURL)
	if err != nil {
		return err
	}
	manual, err := docs.New(ministry.OpenAPI(), counter.OpenAPI(), citizen.OpenAPI())
	if err != nil {
		return err
	}
	papers, err := verify.New(verify.Config{
		Keys: keys, Sessions: sessions, Slug: b.agencySlug, Gate: gate, PublicURL: checkoutURL, Now: b.Now, Log: b.Log,
	})
	if err != nil {
		return err
	}

	r, err := b.router(checkoutURL)
	if err != nil {
		return err
	}
	// A page that frames a session may also ask for its completion token.
	api.Routes(r.With(hosted.CrossOrigin))
	sdk.Routes(r)
	for _, part := range []interface{ Routes(chi.Router) }{hosted, reports, delivered, counters, partners, taxpayers, portal, papers, manual} {
		part.Routes(r)
	}
	return b.Serve("ingress", b.Listen, http.Handler(r), Limits{Connections: b.MaxConnections, Write: writeTimeout})
}

// readModel starts the leases of references and the reads of sessions.
func (b *Base) readModel() (*readmodel.References, *readmodel.Reader, error) {
	refs, err := readmodel.NewReferences(b.ctx, readmodel.ReferencesConfig{
		Postgres: b.Pool, Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Key: b.References.Permutation(), Now: b.Now, Log: b.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	b.Run("references", refs.Run)
	sessions, err := b.sessionReader()
	return refs, sessions, err
}

// sessionReader starts the reads of sessions, which all roles of the process share.
func (b *Base) sessionReader() (*readmodel.Reader, error) {
	if b.sessions != nil {
		return b.sessions, nil
	}
	r, err := readmodel.New(readmodel.Config{Pool: b.Pool, Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Log: b.Log, Metrics: b.Metrics})
	if err == nil {
		b.sessions = r
		b.Run("read model", r.Run)
	}
	return r, err
}

// router returns a router with what all parts of the ingress share.
func (b *Base) router(checkoutURL string) (chi.Router, error) {
	proxies, err := b.trustedProxies()
	if err != nil {
		return nil, err
	}
	if len(proxies) == 0 && strings.HasPrefix(checkoutURL, "https://") {
		b.Log.Warn("no proxy is trusted: all clients of a proxy share the limits of one client; set --trusted-proxies to its networks")
	}
	r := chi.NewRouter()
	r.Use(web.ClientAddress(proxies))
	if strings.HasPrefix(checkoutURL, "https://") {
		r.Use(web.StrictTransport)
	}
	r.Use(problem.WithRequestID, web.Measure(b.Metrics))
	return r, nil
}

// readyWithNews makes the ingress unready while it cannot tell which keys are revoked.
func (b *Base) readyWithNews() { b.readyWhen("registry", b.Identities.Fresh) }

// probe makes the ingress ready once every partition has answered a command about a
// session that does not exist. Then requests reach the processors and answers return.
func (b *Base) probe(h *commands.Checkout) func(context.Context) error {
	var answered atomic.Int32
	partitions := b.Topology.Count(schemas.TopicCommands)
	b.readyWhen("ingress", func() error {
		if n := answered.Load(); n < partitions {
			return fmt.Errorf("%d of %d partitions answer; is a processor running?", n, partitions)
		}
		return nil
	})
	return func(ctx context.Context) error {
		for p := range partitions {
			for {
				id := checkout.NewSessionID(b.Now(), p, [16]byte{})
				_, err := h.Ask(ctx, checkout.Command{At: b.Now(), SessionID: id, Do: checkout.Enquire{}})
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					return nil
				}
				b.Log.Debug("waiting for a processor", slog.Int("partition", int(p)), slog.Any("error", err))
			}
			answered.Add(1)
		}
		return nil
	}
}
