// Package conformance checks an ERP against the contract's "ERP REST", as its vendor does
// before the agency's citizens pay there. It calls the ERP through package erp, so that what
// passes here works in production, and says in words what is wrong and how to mend it.
//
// Unless Config.ReadOnly is set, it posts confirmations of payments that never took place.
// Run it against a test system.
package conformance
