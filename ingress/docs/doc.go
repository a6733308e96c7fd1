// Package docs serves the documentation for integrators, without JavaScript and to
// anybody:
//
//	GET /openapi.yaml         the description of the API, OpenAPI 3.1
//	GET /openapi.json         the same as JSON
//	GET /docs                 one page: quickstarts, reference, webhooks, errors, limits
//	GET /docs/errors/         all error codes
//	GET /docs/errors/{code}   the meaning of a code, its likely causes, what to do, and an
//	                          example; the type of a problem is this address
//
// The reference is made from the OpenAPI file: openapi.go reads it, reference.go
// arranges it. The pages of the error codes are made from the catalogue of package
// problem. [New] fails when the schema ProblemCode and the catalogue differ. The pages
// show the programs under quickstart/ unchanged; the acceptance tests run them.
//
// Everything is rendered once, in [New].
package docs
