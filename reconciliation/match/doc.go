// Package match decides which line of a statement proves which money. It is pure: rows in,
// results out; no I/O, no clock. The caller gives the day.
//
//	hop          proves        by
//	Receipts     a receipt     a line of its operator, one to one
//	Settlements  a batch of an operator's lines, or a deposit slip   a line of the bank
//
// # Stages
//
//	operator  operator_ref, gross amount, currency                  match
//	own       payment_ref or notice_ref, gross amount, currency     match
//	batch     settlement batch id; sum of gross less fees = line    match
//	day       amount and local day                                  proposal
//	window    amount and cut-off window, without a batch id         proposal
//
// The payouts on an operator's own statement take part in batch and window: their sum must be that of the lines. Without a
// batch id, a payout is put into the window or windows whose sum it is, or else those with the nearest sum, or one around its time.
//
// What no stage takes is a break, or waits for its line until the days of grace are over.
//
// # Rules
//
// A pair counts only if each is the other's only candidate. Otherwise all candidates are one
// break. A line whose reference names a row belongs to that stage: if the amount differs, it
// is a break and never tries a weaker stage. A line whose references name different rows is
// a break. Nothing is netted.
//
// Payouts to people are found by their references alone, among lines that can be payouts: salaries repeat amounts on one day. A
// payout that its operator refused is no money and waits for nothing; a line that names it is a break.
//
// So the result depends on the set of rows only, not on their order. Adding rows may replace
// results: Compare tells which ended and which are new. Ids are hashes of the sorted row ids,
// so the same result has the same id in every run.
//
// # Which rows a run needs
//
// Rows that share a reference (Refs) decide about each other, and all rows without a match
// do. So a run takes the new rows, all open ones (waiting, proposed, broken), and the
// matched ones that a reference reaches from these, repeatedly. Matched rows that it does
// not reach keep their results. The daily cost thus follows the new and the open rows, not
// the history. Rows of closed periods (Closed) are only named: a duplicate of one is a
// break.
package match
