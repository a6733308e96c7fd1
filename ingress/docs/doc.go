// Package docs serves the documentation for integrators, whole without JavaScript and to
// anybody:
//
//	GET /                     leads to /docs, or to /docs/fr for a French browser
//	GET /openapi.yaml         the description of the API, OpenAPI 3.1
//	GET /openapi.json         the same as JSON
//	GET /docs                 the first page; /docs/NAME the others (pages.go)
//	GET /docs/fr              the same in French, /docs/fr/NAME the others
//	GET /docs/changelog.atom  the changelog as an Atom feed
//	GET /llms.txt             the pages, for programs that read for people
//	GET /docs/docs.js         search and copy buttons: our own script, without which pages are whole
//	GET /docs/search.json     the sections that it searches; /docs/fr/search.json in French
//	GET /docs/errors/         all error codes
//	GET /docs/errors/{code}   the meaning of a code, its likely causes, what to do, and an
//	                          example; the type of a problem is this address. In French
//	                          below /docs/fr/errors/
//
// A page is one file in each language, pages/LANGUAGE/NAME.html, and one line of the table
// in pages.go. Its headings of the second level make its part of the navigation.
//
// The references are made from the OpenAPI files: openapi.go reads them, reference.go
// arranges them. The pages of the error codes are made from the catalogue of package
// problem, the samples of events by package payload, which writes the real bodies. [New]
// fails when the schema ProblemCode and the catalogue differ, and when the webhooks of the
// OpenAPI file and those of the domain differ. The pages show the programs under quickstart/
// unchanged; the acceptance tests run them.
//
// french.yaml has the French of what the pages take from the OpenAPI files and from the domain,
// found by the English text. A page shows a text without French in English, and
// TestEverythingIsInFrench names it, also after the English has changed.
//
// The guides are files of the folder docs in each language: analysts, views, cash-in, erp and
// receipts. Their links lead to files of the repository, and where they are served to the pages
// of these files (guide.go). The changelog is CHANGELOG.md (changelog.go).
//
// Everything is rendered once, in [New].
package docs
