package web

import (
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5/middleware"

	"quittance/internal/network"
)

// ClientAddress is middleware for the root router of the edge. It determines the address
// of the client for Client. Requests of the trusted proxies name it in X-Forwarded-For; the
// last address that is not a trusted proxy counts, because a client can write any others
// before it. The address of any other peer is its own.
func ClientAddress(proxies []netip.Prefix) func(http.Handler) http.Handler {
	if len(proxies) == 0 {
		return middleware.ClientIPFromRemoteAddr
	}
	trusted := make([]string, len(proxies))
	for i, p := range proxies {
		trusted[i] = p.String()
	}
	return middleware.ClientIPFromXFF(trusted...)
}

// Client returns the client of a request as limits count it (network.Client). It is that of the
// peer if a trusted proxy names no client.
func Client(r *http.Request) string {
	addr := middleware.GetClientIPAddr(r.Context())
	if !addr.IsValid() {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return r.RemoteAddr
		}
		addr = peer.Addr()
	}
	return network.Client(addr)
}

// Caller returns the exact address of the client. certain is false when it may be that of
// a proxy that is not trusted, because the request names another client, or when a trusted
// proxy names none.
func Caller(r *http.Request) (addr netip.Addr, certain bool) {
	addr = middleware.GetClientIPAddr(r.Context()).Unmap().WithZone("")
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	direct := err == nil && addr == peer.Addr().Unmap().WithZone("")
	proxied := len(r.Header.Values("X-Forwarded-For")) > 0 || len(r.Header.Values("Forwarded")) > 0
	return addr, addr.IsValid() && !(direct && proxied)
}
