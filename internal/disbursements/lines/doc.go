// Package lines reads the lines of a disbursement batch from a file that a person gives: CSV or XLSX.
//
//	file ──Read──► lines, or all faults ──Seal──► salts, leaves, root, totals ──Chunks──► AddLines, Seal
//	                        │
//	                        └─► Compare (with the last revision), Warn (with known payees)
//
// It stores nothing and calls nothing. What it must know of the registry comes as Rules, salts and keyed hashes come from
// the caller.
//
// # Accepted whole or not at all
//
// One fault refuses the file, because a batch without one of its lines is another batch. Read finds all faults and tells
// of each the row, the column, what the spreadsheet did and the mend. Nothing is repaired silently. Only the writing of
// names, purposes, phone numbers and account numbers changes, and each Change is returned for the preparer.
//
// # Personal data
//
// Fault.Text quotes the cell: it is for the person who prepares the batch and for nobody else. Fault.String, the form of
// logs and errors, names place and kind only, and so does every error of the package.
//
// The decisions and their reasons are in docs/design/disbursement-lines.md.
package lines
