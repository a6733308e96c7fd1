package roles

import (
	"quittance/ingress/citizen"
	"quittance/ingress/counter"
	"quittance/ingress/docs"
	"quittance/ingress/ministry"
	"quittance/sdk"
)

// sdkSurface serves the browser SDK.
func sdkSurface(_ *edge, at Host) (Surface, error) { return Surface{at, sdk.Routes}, nil }

// docsSurface is the documentation.
func docsSurface(e *edge, at Host) (Surface, error) {
	return Surface{at, docs.Routes(e.Log, func() (*docs.Handler, error) {
		return docs.New(at.URL, ministry.OpenAPI(), counter.OpenAPI(), citizen.OpenAPI())
	})}, nil
}
