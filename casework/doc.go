// Package casework is what operator cases of all domains share: kinds, the resolutions of
// each kind, a case, and the decision of two people about it.
//
// A domain declares its kinds of cases in a Catalog. It adds what only its own cases have
// beside a Case.
package casework
