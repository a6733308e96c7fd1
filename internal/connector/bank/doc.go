// Package bank makes the files by which an agency's bank pays people, delivers them and reads the bank's answers:
// pain.001 out, pain.002 in, over SFTP and PGP.
//
// A bank has no enquiry by our id, so a file is delivered at most once: whoever delivers has a permit, which is given
// once. Whoever has none may only look (Mailbox.Look). See docs/design/payouts.md, "Bank files".
package bank
