// Package statements reads the statements of operators, acquirers, banks and cash desks.
// It has readers only: it stores nothing and calls nothing. Package intake imports.
//
// A reader belongs to a profile (Profiles): camt.053 for banks, and delimited text (CSV)
// with columns declared by position, of which mtn, airtel, card-settlement and cash-slip
// are built in. Read streams a file: it keeps one entry or row in memory, and a hash of
// each line id to find repetitions.
//
// # Accepted whole or not at all
//
// Read finds every fault of a file and tells each with its line, its column and the mend.
// One fault that refuses (FaultKind.Refuses) refuses the whole file. Read calls its visitor
// before it knows the end of the file. So read a file twice: without a visitor to validate
// it, then with one to take its lines.
//
// # Money
//
// Amounts are int64 minor units, parsed from text, never from floating point. Line.Amount is
// gross and signed as the account holder sees it: received is positive. Line.Fee is what the
// operator kept of it, so Line.Net moves the balance. In camt.053 the entry (Ntry) is the
// money. Its details (TxDtls) become lines of their own only if their sum, after charges, is
// exactly the entry. Only booked entries count; pending ones, other statuses and entries of
// zero are counted in File.Skipped.
//
// # Personal data
//
// Names, phone numbers and free text never leave a reader. From free text it takes only a
// payment_ref with a correct check, a notice_ref, and what the account's batch pattern
// matches. A fault quotes no cell of the file.
//
// # Continuity
//
// Follow compares a statement with the last accepted one of its account: sequence, balance,
// copies, overlap. The caller keeps that one (Mark) and serialises imports of an account.
package statements
