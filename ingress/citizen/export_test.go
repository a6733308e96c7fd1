package citizen

import (
	"testing"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/web"
)

// Router is the API's router with all routes, without a service.
func Router(testing.TB) chi.Routes {
	return (&API{service: &Service{}, clients: web.NewClients(web.Multiples(1), web.ClientBurst)}).router()
}
