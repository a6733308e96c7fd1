package roles

import (
	"github.com/go-chi/chi/v5"

	"quittance/ingress/ministry"
	"quittance/internal/deliveries"
	"quittance/internal/secret"
	"quittance/sinks/webhook"
)

// ministrySurface is the ministry API.
func ministrySurface(e *edge, at Host) (Surface, error) {
	drafted, err := e.sessionDrafts()
	if err != nil {
		return Surface{}, err
	}
	hosted, err := e.hostedPages(at)
	if err != nil {
		return Surface{}, err
	}
	bodies, err := e.Keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		return Surface{}, err
	}
	api, err := ministry.New(ministry.Config{
		Commands: e.processor, Registry: e.configuration(), Identities: e.Identities, Sessions: e.reader,
		Reads: e.reads, Drafts: drafted, Papers: e.maker,
		ListenSecret: func(owner string) secret.Text { return secret.ListenSecret(e.Keys, owner) },
		Deliveries:   deliveries.NewStore(e.Pool, DeliveryKinds(nil)), Webhooks: webhook.Kind, Bodies: bodies,
		IDs: e.ids, Gate: e.gate, CheckoutURL: at.URL, Done: e.ctx.Done(), Now: e.Now, Log: e.Log, Partition: e.partition,
	})
	// A page that frames a session may also ask for its completion token.
	return Surface{at, func(r chi.Router) { api.Routes(r.With(hosted.CrossOrigin)) }}, err
}
