// Package oversight has the pages on which people see what the service and its people do:
//
//	GET  /admin/audit, /agency/audit   who did what to what; POST takes the conditions that people type
//	GET  /ops/reports, /agency/reports a report of a month; /ops/reports/file, /agency/reports/file as a file
//	GET  /ops/health                   what the service has recorded of operators, ERPs, providers, consumers and itself
//
// The service's people see all agencies, an agency's their own. A page does nothing that a command cannot do, and shows the
// command. No page and no address has a session id: a session is named by its place in lists (sessions.Place).
//
//	oversight.go  configuration and routes
//	audit.go      the audit table, and the part of it that the record of a payment or a case shows
//	health.go     the page of health
//	reports.go    reports; reportwords.go has their texts
//	words.go      the texts; actions.go has those of the audit table's actions
package oversight
