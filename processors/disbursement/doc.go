// Package disbursement is the processor of disbursement batches. It has the domain decide each command of
// disbursement.commands over the state of one partition, and writes state, events, requests to operators and the reply in
// the transaction of the runtime.
//
// Questions to ERPs have no topic of their own: the event batch.erp_asked is the question.
package disbursement
