package erp

import (
	"context"

	"quittance/internal/call"
	"quittance/internal/registry"
)

// Agencies is the part of the registry that Probe needs. It answers from memory and is
// safe for concurrent use.
type Agencies interface {
	// ERP returns the agency's ERP for live or test payments; false when it has none.
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
	// Agencies returns all agencies.
	Agencies() []registry.Agency
}

// Health is the answer of an ERP to the question for its health.
type Health struct {
	// Agency by its slug.
	Agency string
	Live   bool
	Result call.Result
}

// Name returns the agency and the mode: impots/test.
func (h Health) Name() string { return ID(h.Agency, h.Live) }

// Probe asks all ERPs for their health at the same time.
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
