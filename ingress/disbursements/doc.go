// Package disbursements has the pages on which an agency's people approve batches of disbursements: the list, the record of a
// batch, and the people and the policy by which batches are approved. They are a part of the frame of package staff.
//
// The pages decide nothing. They show what is signed, collect signatures of passkeys and send commands; the processor of
// batches verifies each signature again and decides (docs/design/disbursement.md).
package disbursements
