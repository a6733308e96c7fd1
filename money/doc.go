// Package money has the currencies, formats and parses amounts, and computes service
// fees.
//
// An amount is always an int64 in minor units of its currency: 5000 in XAF is five
// thousand francs, 5000 in EUR is fifty euros (contract, "Amount semantics"). The package
// does not use floating point. It takes no decimals, symbols or separators from a locale
// library: locale libraries have 0 decimals for HUF, COP and IDR, and a citizen would pay
// a hundred times the amount (contract docs/design/decisions.md § 7).
//
// Everything in this package is pure and safe for concurrent use.
package money
