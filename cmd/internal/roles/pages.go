package roles

import (
	"quittance/ingress/pages"
	"quittance/ingress/watch"
	"quittance/internal/quota"
	"quittance/sdk"
)

// pagesSurface are the hosted pages of sessions and notices.
func pagesSurface(e *edge, at Host) (Surface, error) {
	hosted, err := e.hostedPages(at)
	return Surface{at, hosted.Routes}, err
}

// hostedPages makes the hosted pages and starts their live status.
func (e *edge) hostedPages(at Host) (*pages.Pages, error) {
	return e.hosted.open(func() (*pages.Pages, error) {
		messages, err := e.Messages()
		if err != nil {
			return nil, err
		}
		live := watch.New(watch.Config{Sessions: e.reader, Ending: e.ending.streams, Log: e.Log, Metrics: e.Metrics})
		e.Run("live status", live.Run)
		return pages.New(pages.Config{
			Commands: e.processor, Sessions: e.reader, Live: live, Dues: e.dues, Agencies: e.configuration(),
			MobileMoney: mobileMoney(e.offers), Gate: e.gate, Opener: e.Keys, Personal: e.Personal, Papers: e.maker,
			FrameScript: sdk.Frame(), Keys: e.Keys, PublicURL: at.URL,
			Lookups:  &quota.Lookups{Postgres: e.Pool, Now: e.Now, PerClient: pages.LookupsPerClient, Unknown: pages.UnknownLookups},
			Prompts:  &quota.Prompts{Postgres: e.Pool, Hash: e.References.MAC("prompts"), Now: e.Now},
			Messages: messages, Asked: &quota.Receipts{Postgres: e.Pool, Hash: e.References.MAC("receipts asked for"), Now: e.Now},
			Now: e.Now, Log: e.Log, Metrics: e.Metrics,
		})
	})
}
