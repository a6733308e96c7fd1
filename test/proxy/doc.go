// Package proxy runs the examples of deploy/proxy, with the real nginx and Caddy, before an
// ingress: payments, live streams, and what their logs hold.
package proxy
