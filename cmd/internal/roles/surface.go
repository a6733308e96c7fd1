package roles

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/ingress/pages"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/drafts"
	"quittance/internal/erp"
	"quittance/internal/papers"
	"quittance/internal/quota"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	readmodel "quittance/internal/sessions"
	"quittance/schemas"
)

// Host is where HTTP is answered.
type Host struct {
	// Name is the server's name in errors and metrics.
	Name string
	// Listen is the address to listen on, host:port. URL is the public one, without a slash at its end.
	Listen, URL string
	Limits      Limits
}

// Surface is a part of what is answered at a host. Surfaces of the same host share its listener.
type Surface struct {
	Host   Host
	Routes func(chi.Router)
}

// opener makes a surface, at the host of its role unless it has one of its own.
type opener func(e *edge, at Host) (Surface, error)

// edge has what the surfaces of a process share.
type edge struct {
	*Base
	processor *commands.Checkout
	reader    *readmodel.Reader
	reads     *quota.Reads
	ids       checkout.IDs
	gate      *web.Gate
	dues      *erp.Dues
	receipts  *receipts.Store
	maker     *papers.Maker
	operators map[string]connector.Connector // by operator
	offers    map[string]connector.Connector // by offer

	drafted once[*drafts.Maker] // after sessionDrafts
	hosted  once[*pages.Pages]  // after hostedPages
}

// openEdge opens what the surfaces of the process share. It needs the registry and the reference key.
func (b *Base) openEdge() (*edge, error) {
	return b.opened.edge.open(func() (e *edge, err error) {
		e = &edge{Base: b, ids: checkout.NewIDs(b.References.MAC("ids"))}
		if e.processor, err = b.commands(ingressRole()); err != nil {
			return nil, err
		}
		if e.reader, err = b.sessionReader(); err != nil {
			return nil, err
		}
		if e.reads, err = quota.New(quota.Config{Postgres: b.Pool, Now: b.Now, Metrics: b.Metrics}); err != nil {
			return nil, err
		}
		e.gate, err = web.NewGate(web.GateConfig{IDs: e.ids, PerClient: b.KeylessPerClient, PerInstance: b.KeylessPerInstance, Lifetime: registry.MaxLifetime, Now: b.Now, Metrics: b.Metrics})
		if err != nil {
			return nil, fmt.Errorf("--keyless-per-client and --keyless-per-instance: %w", err)
		}
		if e.dues, err = b.Dues(); err != nil {
			return nil, err
		}
		if e.receipts, err = b.receiptKeys(); err != nil {
			return nil, err
		}
		if e.maker, err = b.papers(); err != nil {
			return nil, err
		}
		e.operators, e.offers, err = b.connectors()
		return e, err
	})
}

// sessionDrafts makes what creates sessions, and starts the leases of references.
func (e *edge) sessionDrafts() (*drafts.Maker, error) {
	return e.drafted.open(func() (*drafts.Maker, error) {
		var refs *readmodel.References
		err := e.await("reference numbers", func() (err error) {
			refs, err = readmodel.NewReferences(e.ctx, readmodel.ReferencesConfig{
				Postgres: e.Pool, Kafka: e.KafkaConfig(), Topology: e.Topology, Codec: e.Codec,
				Key: e.References.Permutation(), Now: e.Now, Log: e.Log,
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		e.Run("references", refs.Run)
		return drafts.New(drafts.Config{
			Commands: e.processor, References: refs, Personal: e.Personal, Keys: e.Keys, IDs: e.ids, Partition: e.partition,
			RequestID: problem.RequestID, Log: e.Log,
		})
	})
}

// partition returns the partition of the commands of an agency.
func (e *edge) partition(tenantID string) int32 {
	return e.Topology.Partition(schemas.TopicCommands, tenantID)
}

// router returns a router with what all surfaces of a host share.
func (b *Base) router(at Host) (chi.Router, error) {
	proxies, err := b.trustedProxies()
	if err != nil {
		return nil, err
	}
	measure, err := b.opened.measure.open(func() (func(http.Handler) http.Handler, error) { return web.Measure(b.Metrics), nil })
	if err != nil {
		return nil, err
	}
	secure := strings.HasPrefix(at.URL, "https://")
	if len(proxies) == 0 && secure {
		b.Log.Warn("no proxy is trusted: all clients of a proxy share the limits of one client; set --trusted-proxies to its networks")
	}
	r := chi.NewRouter()
	r.Use(web.ClientAddress(proxies))
	if secure {
		r.Use(web.StrictTransport)
	}
	r.Use(problem.WithRequestID, problem.WithPages(strings.TrimSuffix(b.CheckoutURL, "/")), measure, web.Head)
	return r, nil
}

// surfaces makes the surfaces of a role. serve answers at their hosts.
func (b *Base) surfaces(r Role) (serve func() error, err error) {
	at, err := r.Host(b)
	if err != nil {
		return nil, err
	}
	e, err := b.openEdge()
	if err != nil {
		return nil, err
	}
	var hosts []Host
	routers := map[Host]chi.Router{}
	for _, open := range r.Surfaces {
		s, err := open(e, at)
		if err != nil {
			return nil, err
		}
		if routers[s.Host] == nil {
			if routers[s.Host], err = b.router(s.Host); err != nil {
				return nil, err
			}
			hosts = append(hosts, s.Host)
		}
		s.Routes(routers[s.Host])
	}
	return func() error {
		for _, h := range hosts {
			if err := b.Serve(h.Name, h.Listen, routers[h], h.Limits); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
