// Package operations has the pages on which the service's people look after payments of all agencies, and an agency's
// people after their own. The pages of payments, cases and the search are the same for both, below /ops and /agency:
//
//	GET  /work                  what waits for the person
//	POST /ops/search            one box: the shape of what is typed decides; GET shows the result of a search by order
//	GET  /ops/payments          payments, newest first
//	GET  /ops/payments/{place}  one payment: verdict, dues, deliveries, cases, timeline; ?commands=1 reads Kafka, too
//	POST /ops/payments/{place}/deliveries/{delivery}/retry
//	GET  /ops/cases             operator cases
//	GET  /ops/cases/{case}      one case: evidence and proposals
//	POST /ops/cases/{case}/propose/begin, /propose, /approve/begin, /approve/{number}, /reject
//	GET  /ops/endpoints         where deliveries go
//	GET  /ops/endpoints/{kind}/{destination}
//	POST /ops/endpoints/{kind}/{destination}/suspend, /resume, /retry
//	GET  /ops/stuck             what nobody gets on with
//
// A page does nothing that a command cannot do, and shows the command. Its address has no session id, which would open
// the citizen's page and stand in logs: it has the session's place in lists (sessions.Place). A session id that
// somebody types into the search box comes by POST and leads to that address.
//
// A list shows contact data nowhere and the payer's number masked, as the session has it.
//
//	operations.go  configuration and routes
//	view.go        amounts, states and times as people read them
//	payments.go    list and record of payments; search.go finds them
//	cases.go       list and record of cases; propose.go and approve.go are what passkeys sign
//	endpoints.go   list and record of destinations
//	work.go        /work and /ops/stuck
//	words.go       the texts
package operations
