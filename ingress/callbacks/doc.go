// Package callbacks receives the reports of operators about collections:
//
//	PUT|POST /callbacks/{operator}/{session_id}/{collection_id}/{mac}
//
// A report proves nothing by itself. It decides only when its address has our MAC
// (connector.CallbackURL) and the operator is its author: it has the signature of the
// collection's merchant account, where the operator signs its reports
// (connector.ReportVerifier), or it comes from the networks that the account names as the
// operator's own (callback_networks). An address alone is not enough, because addresses
// end up in logs. Any other report causes an enquiry at most, and the operator's answer
// decides; a collection is asked about for such reports once in 10 s.
//
//	valid address, decided     the outcome becomes a command       200
//	valid address, decided,
//	from another network       the operator is asked               202
//	valid address, undecided   nothing changes                     200
//	valid address, decided,
//	but without amount or
//	reason at this operator    the operator is asked               202
//	valid address, unreadable  the operator is asked               202
//	valid address,             the operator is asked, at a
//	wrong signature            limited rate                        401
//	valid address, signed,
//	account unknown now        the operator is asked               202
//	wrong or no MAC            the operator is asked, at a limited
//	                           rate; the body is not read          202, or 429
//	malformed id or
//	unknown operator                                               404
//	body over 64 KiB                                               413
//	broker unavailable         the operator reports again          503
//
// 200 and 202 mean that the broker has the command. An unreadable report is answered
// 202 and not 400, because the operator would send the same bytes again; the enquiry
// finds out what they mean. Such reports are counted and logged.
//
// The processor compares amounts, because it knows the collection. The address is a
// secret and the body has a phone number: neither may be logged.
//
// # Messages
//
// Messages receives the delivery reports of providers of SMS:
//
//	POST /callbacks/messages/{provider}/{message_id}/{mac}    on this message
//	POST /callbacks/messages/{provider}/{mac}                 on any, for a provider that takes one address
//
// The address is the proof (notify.ReportURL): providers do not sign. A forged report could
// stop messages besides codes to a number at most.
//
//	reports recorded, also those that say nothing new         200
//	unreadable body, with the reason                          400
//	unknown provider, wrong MAC, or no message of ours        404, without a difference
//	body over 64 KiB                                          413
//	Postgres away                                             503: the provider reports again
package callbacks
