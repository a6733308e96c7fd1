package roles

import (
	"quittance/ingress/callbacks"
	"quittance/internal/notify"
	"quittance/internal/provider/all"
)

// reportsSurface takes the reports of operators about collections.
func reportsSurface(e *edge, at Host) (Surface, error) {
	h, err := callbacks.New(callbacks.Config{
		Sender: e.processor, Gate: e.gate, Verifier: e.Keys, Connectors: e.operators,
		Merchant: e.merchantOfReport(e.reader), HonoursLate: e.honoursLate(e.reader),
		Now: e.Now, Log: e.Log, Metrics: e.Metrics,
	})
	return Surface{at, h.Routes}, err
}

// messagesSurface takes the reports of providers about messages.
func messagesSurface(e *edge, at Host) (Surface, error) {
	h, err := callbacks.NewMessages(callbacks.MessagesConfig{
		Providers: all.Providers(), Reports: notify.NewReports(e.Pool), Verifier: e.Keys, Now: e.Now, Log: e.Log, Metrics: e.Metrics,
	})
	return Surface{at, h.Routes}, err
}
