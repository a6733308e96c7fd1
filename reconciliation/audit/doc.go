// Package audit computes the closes of an agency's accounts again, from Kafka alone, and proves that a
// payment is part of one. ClickHouse, from which the matcher computed them, is not asked.
//
// # What a close covers
//
// A close of an operator's, an acquirer's or a counter's account has the rows (package chain) of
//
//   - the expected money that is new in the period: of its days, or of earlier ones and not known to
//     the close before;
//   - the expected money whose match came about or ended in the period.
//
// A row names the operator's lines of the match that is in force, and no line of the bank: that line
// comes later. A close of a bank's account has the rows of the expected money behind the operators'
// lines that are new in the period, or whose match with a line of the bank came about or ended in it.
// Its rows name the lines of both. Money that was withdrawn has no row from then on. So the last close
// that has rows of a payment says what is known of it, and the earlier ones what was known before.
//
// Everything is taken from the records below the watermarks of the close, which are in its record.
package audit
