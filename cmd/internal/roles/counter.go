package roles

import (
	"quittance/ingress/counter"
	"quittance/ingress/web"
	"quittance/internal/quota"
	"quittance/internal/tills"
)

// counterSurface is the counter API and the clerks' pages.
func counterSurface(e *edge, at Host) (Surface, error) {
	cash, err := tills.New(tills.Config{Pool: e.Pool, ReadModel: e.reader, Now: e.Now})
	if err != nil {
		return Surface{}, err
	}
	c, err := counter.New(counter.Config{
		Commands: e.processor, Sessions: e.reader, Dues: e.dues, Registry: e.Registry,
		Identities: e.Identities, Tills: cash, Papers: e.maker, Reads: e.reads, Keys: e.Keys, PublicURL: at.URL,
		Limits:  web.Shares(e.KeylessPerClient, e.KeylessPerInstance),
		Unknown: &quota.Unknown{Postgres: e.Pool, Now: e.Now, Most: counter.MaxUnknown},
		Now:     e.Now, Log: e.Log, Metrics: e.Metrics,
	})
	return Surface{at, c.Routes}, err
}
