// Package signed signs the rows of Postgres that decide where secrets and money go and whom the
// service believes, and finds those that somebody else has written.
//
// Tables lists the tables. Each of their rows has a column signature: an Ed25519 signature under
// secret.LabelRegistryRows over the table and the whole row, as Read has read it. Whoever can write to
// Postgres and has no master key cannot make one. A transaction that changes such rows begins with
// Begin and ends with Set.Sign, which signs the rows that this transaction has changed and no others.
//
// A signed manifest holds the number and a digest of the signatures of each table. It finds what a
// signature cannot: a row that was deleted, or put back to an earlier state. It refuses nothing,
// because a restored database must work.
package signed
