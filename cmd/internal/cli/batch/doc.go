// Package batch has the command `batches`: disbursement batches, by which an agency pays people.
package batch
