package erp_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/erp"
	deliverytest "quittance/test/deliveries"
)

// However many confirmations wait, an agency's ERP gets exactly its cap of calls at once:
// four, or the number in the registry.
func TestInFlight(t *testing.T) {
	t.Parallel()
	b := bench(t)
	var mu sync.Mutex
	now, most := map[string]int{}, map[string]int{}
	receiver := func(name string) string {
		r := deliverytest.NewReceiver(t, "Idempotency-Key")
		r.Answer(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			now[name]++
			most[name] = max(most[name], now[name])
			mu.Unlock()
			time.Sleep(50 * time.Millisecond) // long enough for the others to come
			mu.Lock()
			now[name]--
			mu.Unlock()
		})
		return r.URL
	}
	auth := registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("t")}
	cfg := sender(b, &erps{by: map[string]registry.ERPSettings{
		"usual/test": {BaseURL: receiver("usual"), Auth: auth, Networks: loopback},
		"wide/test":  {BaseURL: receiver("wide"), Auth: auth, Networks: loopback, MaxInFlight: 10},
	}})
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	const each = 60
	var all []*record.Notification
	for _, agency := range []string{"usual", "wide"} {
		for i := range each {
			n := b.Notification(fmt.Sprintf("tx-%s-%d", agency, i), "app")
			n.TenantID = agency
			all = append(all, n)
		}
	}
	b.Notify(t, schemas.TopicConfirmations, true, all...)
	deliverytest.Eventually(t, "all accepted", func() bool {
		return b.State(t, erp.Kind, fmt.Sprintf("tx-usual-%d", each-1), "usual/test") == "delivered" &&
			b.State(t, erp.Kind, fmt.Sprintf("tx-wide-%d", each-1), "wide/test") == "delivered"
	})
	mu.Lock()
	defer mu.Unlock()
	if most["usual"] != erp.DefaultMaxInFlight || most["wide"] != 10 {
		t.Errorf("at once: %v, want %d and 10", most, erp.DefaultMaxInFlight)
	}
}
