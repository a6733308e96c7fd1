// Package money knows currencies, writes amounts for people and for machines,
// and computes service fees.
//
// An amount is always an int64 in minor units of its currency: 5000 in XAF is
// five thousand francs, 5000 in EUR is fifty euros (contract, "Amount
// semantics"). Nothing here uses floating point, and nothing takes decimals,
// symbols or separators from a locale library: those give 0 decimals for HUF,
// COP and IDR, which a citizen would pay a hundredfold (contract decisions
// § 7).
//
// Everything in this package is pure and safe for concurrent use.
package money
