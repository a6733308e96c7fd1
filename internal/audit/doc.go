// Package audit proves the audit table, whose rows package operation writes.
//
// Postgres can be edited and restored; the topic audit cannot. A Relay numbers the committed
// rows without gaps and writes a record of each to the topic, with ids and a salted hash of
// the row. Verify compares the two and names each row that is missing, changed, added or
// recorded late. Accept records that people know of such rows, for example after a restore.
//
// # Order
//
// Ids of rows are taken before their transactions commit, so a reader that goes by ids can
// miss a row. The relay looks for committed rows that have no number, and numbers them in one
// transaction with its position in the topic, which it locks. The number is the key of the
// record. If the transaction fails after the record is written, the next round reads the
// record and gives the row its number. If a relay loses its lock while it writes, the topic
// can have two records of a number or of a row: the first one counts.
//
// # Restored databases
//
// A restored database has an older position. The relay reads what the topic has beyond it and
// goes on above its highest number, so that no number is given twice. The rows between are
// lost: Verify names them.
package audit
