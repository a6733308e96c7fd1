// Package docs serves what an integrator reads, without JavaScript and to
// anybody:
//
//	GET /openapi.yaml         the description of the API, OpenAPI 3.1
//	GET /docs                 one page: quickstarts, reference, webhooks, errors, limits
//	GET /docs/errors/         every error code
//	GET /docs/errors/{code}   what a code means, its likely causes, the mend, an
//	                          example; a problem's type leads there
//
// The reference is made from the OpenAPI file (openapi.go reads it, reference.go
// shapes it), the pages of the error codes from errors.go: a code of the schema
// ProblemCode without a page, or a page without a code, is an error of [New].
// The programs under quickstart/ are shown as they stand and run by the
// acceptance tests.
//
// Everything is rendered once, in [New].
package docs
