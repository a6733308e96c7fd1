package roles

import "quittance/ingress/verify"

// verifySurface verifies receipts and serves the keys that sign them.
func verifySurface(e *edge, at Host) (Surface, error) {
	v, err := verify.New(verify.Config{
		Keys: e.receipts, Sessions: e.reader, Slug: e.agencySlug, Agencies: e.agencyNames, Gate: e.gate, PublicURL: at.URL, Now: e.Now, Log: e.Log,
	})
	return Surface{at, v.Routes}, err
}
