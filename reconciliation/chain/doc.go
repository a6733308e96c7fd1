// Package chain follows a sum of money from its due to the line of the bank (Find, which reads
// ClickHouse), and proves that a payment was part of a closed period. The proof is pure: rows in,
// a root and proofs out; no I/O, no clock.
//
// A Row has the ids of a due's hops: due, session, operator reference, transaction,
// confirmation by the ERP, line of the operator, line of the bank. A period that is closed
// keeps the root of the tree over all its rows. Whoever has a row, its Proof and the root
// recomputes the root (Proof.Verify), without the other rows.
//
// # Canonical form, version 1
//
// The fields of a row in the order of the type, each as a netstring: the length in bytes in
// decimal, a colon, the UTF-8 bytes, a comma. The first is quittance-chain/1. A hop that is
// missing is empty (0:,). Amounts are decimal minor units. For example:
//
//	17:quittance-chain/1,36:0198…,…,3:XAF,15:momo/OP-2211-01,0:,
//
// A change of the fields or of their order is a new version. Roots of an earlier version stay
// valid in their own form.
//
// # Tree
//
// The rows are sorted by the bytes of their canonical form and hashed as RFC 6962, section
// 2.1, says, with SHA-256. So the root depends on the set of rows only, not on their order,
// and any implementation of that RFC can check a proof.
package chain
