package web_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/ingress/web"
)

var ids = checkout.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) })

// gate returns a function that sends a call of a peer to a gate and returns the status with
// which it would be answered, 200 when the gate admits it.
func gate(t *testing.T, perClient, perInstance float64) func(peer, id string) int {
	t.Helper()
	g, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: perClient, PerInstance: perInstance, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	return func(peer, id string) (status int) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1234"
		r.Header.Set("X-Forwarded-For", peer)
		web.ClientAddress(proxies)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			admit := g.Call
			if id != "" {
				admit = func(r *http.Request) error { return g.Session(r, id) }
			}
			err := admit(r)
			p := problem.From(err)
			switch {
			case p != nil && p.RetryAfter < time.Second:
				t.Errorf("%v without RetryAfter", err)
			case p != nil:
				status = p.Status
			case errors.Is(err, checkout.ErrMalformedID):
				status = http.StatusNotFound
			default:
				status = http.StatusOK
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		return status
	}
}

// count returns how many of n calls have each status.
func count(n int, call func(i int) int) map[int]int {
	out := map[int]int{}
	for i := range n {
		out[call(i)]++
	}
	return out
}

// One visitor, who has a whole /64, could take an ingress.
func TestClientsAreLimited(t *testing.T) {
	t.Parallel()
	call := gate(t, 0.001, 1e6) // one call in a quarter of an hour
	for _, c := range []struct {
		peer string
		want int
	}{
		{"198.51.100.7", 200},
		{"198.51.100.7", 429},
		{"198.51.100.8", 200},
		{"2001:db8:1:2::1", 200},
		{"2001:db8:1:2:ffff::9", 429},
		{"2001:db8:1:2::1", 429},
		{"2001:db8:1:3::1", 200},
	} {
		if got := call(c.peer, ""); got != c.want {
			t.Errorf("a call of %s is answered %d, want %d", c.peer, got, c.want)
		}
	}
}

// A flood of made-up ids from everywhere costs nothing and takes nobody's rate.
func TestMadeUpIDsTakeNoRate(t *testing.T) {
	t.Parallel()
	call := gate(t, 1e6, 0.004)
	made := ids.NewSession(time.Now(), 3, [16]byte{1})
	forged := []byte(made)
	if forged[len(forged)-1]++; forged[len(forged)-1] > 'v' {
		forged[len(forged)-1] = 'u'
	}
	if got := count(1000, func(i int) int { return call(fmt.Sprintf("198.51.%d.%d", i/250, i%250), string(forged)) }); got[404] != 1000 {
		t.Errorf("made-up ids are answered %v, want 404", got)
	}
	// Ids of the old form can be made up. They have a rate of their own.
	old := func(i int) int { return call("203.0.113.1", checkout.NewSessionID(time.Now(), 3, [16]byte{byte(i)})) }
	if got := count(10, old); got[200] != 1 || got[429] != 9 {
		t.Errorf("ids of the old form are answered %v, want one 200", got)
	}
	another := func(i int) int { return call("203.0.113.2", ids.NewSession(time.Now(), 3, [16]byte{byte(i)})) }
	if got := count(10, another); got[200]+got[429] != 10 || got[429] == 0 {
		t.Errorf("beyond the rate of the instance: %v", got)
	}
}

// Strangers took the whole rate of an instance, and people in the middle of a payment read that
// the service gets too many requests.
func TestPayersHaveAReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, payersHaveAReserve) // where calls take no time
}

func payersHaveAReserve(t *testing.T) {
	made := time.Now()
	session := func(n int) string { return ids.NewSession(made, 3, [16]byte{byte(n >> 8), byte(n)}) }
	stranger := func(n int) string { return fmt.Sprintf("%d.%d.0.1", 20+n%180, n/180%250) } // each in a network of its own
	call := gate(t, 100, 2000)
	old := checkout.NewSessionID(time.Now(), 3, [16]byte{1})
	for n := range 20_000 {
		call(stranger(n), []string{"", old}[n%2])
	}
	if got := call("9.9.9.9", ""); got != http.StatusTooManyRequests {
		t.Fatalf("the flood leaves strangers a rate: %d", got)
	}
	if got := count(1000, func(n int) int { return call(stranger(n), session(n)) }); got[200] != 1000 {
		t.Errorf("1000 people who are paying get %v beside a flood of strangers", got)
	}
	// Their neighbours behind one address flood, too.
	call = gate(t, 100, 2000)
	for range 5000 {
		call("198.51.100.7", "")
	}
	if got := count(500, func(n int) int { return call("198.51.100.7", session(n)) }); got[200] != 500 {
		t.Errorf("500 people who are paying behind the address of a flood get %v", got)
	}
	// One session is no key to the reserve, from however many addresses.
	call = gate(t, 100, 2000)
	if got := count(20_000, func(n int) int { return call(stranger(n), session(1)) }); got[200] > 100 {
		t.Errorf("one session gets %v", got)
	}
	if got := call("203.0.113.1", session(2)); got != http.StatusOK {
		t.Errorf("another session is answered %d", got)
	}
}

// The id of a session that can no longer be paid is no key to the reserve.
func TestOldSessionsHaveNoReserve(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: 1, PerInstance: 0.004, Lifetime: time.Hour, Now: func() time.Time { return now }, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	admitted := func(made time.Time, n byte) bool {
		return g.Session(httptest.NewRequest(http.MethodGet, "/", nil), ids.NewSession(made, 3, [16]byte{n})) == nil
	}
	if !admitted(now.Add(-time.Hour), 1) || admitted(now.Add(-time.Hour), 2) {
		t.Error("ids of an hour ago have another rate than strangers")
	}
	if !admitted(now.Add(-59*time.Minute), 3) {
		t.Error("a session that can be paid has no reserve")
	}
	if _, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: 1, PerInstance: 1, Lifetime: time.Hour, Metrics: prometheus.NewRegistry()}); err == nil {
		t.Error("a lifetime without a clock is taken")
	}
}

func TestGateNeedsLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range [][2]float64{{0, 1}, {1, 0}, {-1, 1}} {
		if _, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: limits[0], PerInstance: limits[1], Metrics: prometheus.NewRegistry()}); err == nil {
			t.Errorf("%v is taken", limits)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	g, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: 1e9, PerInstance: 1e9, Metrics: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	id := ids.NewSession(time.Now(), 3, [16]byte{1})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := g.Session(r, id); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A subscriber has a /48 for the asking, and whoever registers as a provider a /32: counted by
// the /64, 200,000 addresses were 200,000 clients, and took the whole instance.
func TestNetworksAreLimited(t *testing.T) {
	t.Parallel()
	const instance = 100 // a second, for strangers; a site has a tenth, a provider a quarter, and each the burst of two seconds
	for name, c := range map[string]struct {
		flood func(n int) string
		share float64
		other string
	}{
		"a /48": {func(n int) string { return fmt.Sprintf("2001:db8:1:%x::1", n%65536) }, instance / 10, "2001:db8:2::1"},
		"a /32": {func(n int) string { return fmt.Sprintf("2001:db8:%x:%x::1", n%65536, n/65536) }, instance / 4, "2001:db9::1"},
		"a /24": {func(n int) string { return fmt.Sprintf("198.51.100.%d", n%256) }, instance / 10, "198.51.101.1"},
		"a /16": {func(n int) string { return fmt.Sprintf("198.51.%d.%d", n/256%256, n%256) }, instance / 4, "198.52.0.1"},
	} {
		call := gate(t, 1, 2*instance)
		began := time.Now()
		got := count(20_000, func(n int) int { return call(c.flood(n), "") })
		if most := int(c.share * (2 + time.Since(began).Seconds())); got[200] < 1 || got[200] > max(10, most)+1 {
			t.Errorf("a flood of %s gets %v, want at most %d", name, got, most)
		}
		if got := call(c.other, ""); got != http.StatusOK {
			t.Errorf("beside a flood of %s another network is answered %d", name, got)
		}
	}
}

// A flood from one network leaves the others their rate, and takes no memory.
func TestAFloodLeavesTheOthers(t *testing.T) {
	t.Parallel()
	call := gate(t, 100, 4000)
	citizens := 0
	began := time.Now()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := count(200_000, func(n int) int {
		if n%2000 == 0 && call(fmt.Sprintf("203.0.%d.7", n/2000), "") == http.StatusOK {
			citizens++
		}
		return call(fmt.Sprintf("2001:db8:%x:%x::1", n%65536, n/65536), "")
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	// The share of a provider's network, with its burst.
	if most := 1000 + int(500*(time.Since(began).Seconds()+1)); got[200] > most {
		t.Errorf("200,000 addresses of a /32 get %v, want at most %d", got, most)
	}
	if citizens != 100 {
		t.Errorf("%d of 100 citizens get through beside a flood", citizens)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the flood takes %d bytes", grown)
	}
}
