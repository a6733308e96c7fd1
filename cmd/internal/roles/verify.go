package roles

import (
	"quittance/ingress/verify"
	"quittance/internal/batchseal"
)

// verifySurface verifies receipts and papers of batches, and serves the keys that sign them.
func verifySurface(e *edge, at Host) (Surface, error) {
	papers, err := batchseal.Keys(e.Keys)
	if err != nil {
		return Surface{}, err
	}
	v, err := verify.New(verify.Config{
		Keys: e.receipts, Papers: papers, Sessions: e.reader, Slug: e.agencySlug, Agencies: e.agencyNames, Gate: e.gate, PublicURL: at.URL, Now: e.Now, Log: e.Log,
	})
	return Surface{at, v.Routes}, err
}
