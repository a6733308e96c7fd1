// Package quittance is the client of the Quittance checkout API for back ends.
//
//	client, err := quittance.New(quittance.Config{URL: "https://…", Key: os.Getenv("QUITTANCE_KEY")})
//	session, err := client.CreateSession(ctx, quittance.SessionCreate{OrderID: "DOSSIER-1", Amount: 5000}, "")
//	// Send the citizen to session.CheckoutURL.
//
//	receiver, err := quittance.NewReceiver(os.Getenv("QUITTANCE_WEBHOOK_SECRET"))
//	event, err := receiver.Read(request) // in the handler of the webhook endpoint
//	// Compare its mode, order, amount and currency with the case, store it, and answer 2xx only
//	// then: README.md has such a receiver.
//
// Calls are repeated when no answer came, or one that asks for it (429, 502, 503, 504). A
// repeated creation has the same Idempotency-Key, so that it happens once. An answer that
// refuses is a [*Problem].
//
// The types are generated from the service's openapi.yaml. The package has no dependencies.
package quittance
