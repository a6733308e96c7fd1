// Package receipt has the commands of receipts.
package receipt
