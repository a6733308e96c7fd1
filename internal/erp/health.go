package erp

import (
	"context"

	"quittance/internal/call"
	"quittance/internal/registry"
)

// Agencies is the registry, which answers from memory. Safe for concurrent use.
type Agencies interface {
	// ERP is the agency's ERP for live or test payments; false when it has none.
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
	// Agencies are all of them.
	Agencies() []registry.Agency
}

// Health is how an ERP answered.
type Health struct {
	// Agency by its slug.
	Agency string
	Live   bool
	Result call.Result
}

// Name is the agency and the mode: impots/test.
func (h Health) Name() string { return ID(h.Agency, h.Live) }

// Probe asks every ERP for its health, all at the same time.
func (c *Client) Probe(ctx context.Context, registry Agencies) []Health {
	answers, n := make(chan Health), 0
	for _, a := range registry.Agencies() {
		for _, live := range []bool{false, true} {
			if s, ok := registry.ERP(a.ID, live); ok {
				n++
				go func() { answers <- Health{Agency: a.Slug, Live: live, Result: c.Health(ctx, s)} }()
			}
		}
	}
	out := make([]Health, n)
	for i := range out {
		out[i] = <-answers
	}
	return out
}
