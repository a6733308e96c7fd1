// Package callbacks is where operators report what became of a collection:
//
//	PUT|POST /callbacks/{operator}/{session_id}/{collection_id}/{mac}
//
// A report proves nothing by itself. It counts when its address carries our MAC
// (connector.CallbackURL): that address was told to the operator alone. Where the
// operator signs its reports (connector.ReportVerifier), the signature must be that
// of the collection's merchant account as well. Whatever else arrives at most causes
// an enquiry.
//
//	valid address, decided     the outcome becomes a command       200
//	valid address, undecided   nothing changed                     200
//	valid address, decided,
//	but without amount or
//	reason at this operator    the operator is asked instead       202
//	valid address, unreadable  the operator is asked instead       202
//	valid address,             the operator is asked, at the
//	wrong signature            same bounded rate                   401
//	valid address, signed, and
//	the account is not to be
//	told now                   the operator is asked instead       202
//	wrong or no MAC            the operator is asked, at a bounded
//	                           rate; the body is not read          202, 429 when shed
//	no such id can be          (malformed id, unknown operator)    404
//	body over 64 KiB                                               413
//	broker away                the operator reports again          503
//
// 200 and 202 mean that the broker has the command. An unreadable report is
// answered 202 and not 400, since the same bytes again would be no more readable:
// the enquiry brings what they meant to say. It is counted and logged.
//
// Amounts are compared where the collection is known, in the processor. The
// address is a secret and the body holds a number: neither belongs in a log.
package callbacks
