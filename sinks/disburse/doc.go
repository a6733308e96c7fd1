// Package disburse has operators pay the lines of disbursement batches, and asks them about attempts that are not decided.
// It reads disbursements.requests and tells the processor each answer as a signed command; the loop is package sinks/calls.
//
// Names asks operators for the names of payees before a batch is sealed, and keeps how they compare, not the names.
//
// It decides nothing. Before each request to pay it opens the line and compares it with what the approvers signed: another
// content is never sent. What an operator answers becomes a word (package disbursement), and the processor says what the
// word means for the line.
package disburse
