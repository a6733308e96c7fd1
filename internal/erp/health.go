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

// Health is the answer of an ERP to a probe.
type Health struct {
	// Agency by its slug.
	Agency string
	Live   bool
	Result call.Result
}

// Name returns the agency and the mode: impots/test.
func (h Health) Name() string { return ID(h.Agency, h.Live) }

// nobody is a subject_ref that no ERP knows.
const nobody = "quittance-doctor"

// Probe asks all ERPs for their health at the same time.
func (c *Client) Probe(ctx context.Context, agencies Agencies) []Health {
	return probe(ctx, agencies, c.Health)
}

// ProbeDues asks all ERPs at the same time for the dues of a subject that does not exist. A
// 2xx means that the answer is valid.
func ProbeDues(ctx context.Context, client Asker, agencies Agencies) []Health {
	return probe(ctx, agencies, func(ctx context.Context, s registry.ERPSettings) call.Result {
		_, _, r := client.Dues(ctx, s, nobody)
		return r
	})
}

func probe(ctx context.Context, agencies Agencies, ask func(context.Context, registry.ERPSettings) call.Result) []Health {
	answers, n := make(chan Health), 0
	for _, a := range agencies.Agencies() {
		for _, live := range []bool{false, true} {
			if s, ok := agencies.ERP(a.ID, live); ok {
				n++
				go func() { answers <- Health{Agency: a.Slug, Live: live, Result: ask(ctx, s)} }()
			}
		}
	}
	out := make([]Health, n)
	for i := range out {
		out[i] = <-answers
	}
	return out
}
