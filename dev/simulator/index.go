package simulator

import (
	"fmt"
	"net/http"
	"strings"
)

// index is GET /: what there is, with commands to paste.
func (s *Simulator) index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	//nolint:gosec // plain text: nothing in it is markup
	_, _ = fmt.Fprint(w, strings.ReplaceAll(indexText, "{base}", "http://"+r.Host))
}

const indexText = `Simulators of Quittance: the world outside, for development only.

MOBILE MONEY A (MTN MoMo Collections)          /mtn
  POST /mtn/collection/token/
  POST /mtn/collection/v1_0/requesttopay
  GET  /mtn/collection/v1_0/requesttopay/{reference}

  What the payer does depends on the number; any other number waits for /control.
  06 600 00 01  approves at once
  06 600 00 02  approves after 5 s
  06 600 00 03  never answers
  06 600 00 04  rejects
  06 600 00 05  has too little money
  06 600 00 06  has reached a limit
  06 600 00 07  is not known
  06 600 00 08  approves; the callback is lost
  06 600 00 09  approves; the callback comes twice
  06 600 00 10  approves after the approval window has ended
  06 600 00 11  the first request gets a 500 and is not taken, then approves
  06 600 00 12  neither yes nor no for a while, then approves
  06 600 00 13  mistypes the PIN (here: a rejection)

MOBILE MONEY B (Airtel Money, Congo)           /airtel
  POST /airtel/auth/oauth2/token
  POST /airtel/merchant/v1/payments/
  GET  /airtel/standard/v1/payments/{id}

  The same numbers as above with 05 500 00 in front, but
  05 500 00 07  is not known: the request itself is refused
  05 500 00 13  mistypes the PIN: DP00800001002

CARD ACQUIRER                                  /card
  POST /card/v1/transactions                   signed, see the package connector/card
  GET  /card/v1/transactions/{reference}?merchant=…
  GET  /card/pay/{transaction_id}?token=…      the page: its address is in the answer

  The citizen decides on the page, with a button or by a card number; the last two
  digits of 4000 0000 0000 00NN mean the same as above, but
  4000 0000 0000 0003  no answer: expired when its time is over
  4000 0000 0000 0004  declined, as are 05 (insufficient funds), 06 (limit), 07 (unknown)
  4000 0000 0000 0010  approved after its time is over
  4000 0000 0000 0013  authentication failed
  4000 0000 0000 0014  abandoned
  A total of 1111 minor units: the first request gets a 500 and is not taken.
  Any other card waits for /control. Amounts are in minor units.

CASH AT A COUNTER                              /control/counter
  A citizen comes to an agency's counter with the payment_ref, whose desk software
  looks it up at the service and says there what became of it:

  curl -X POST {base}/control/counter/PAYMENT_REF -d '{"number": "01"}'
  curl -X POST {base}/control/counter/PAYMENT_REF
  curl -X POST {base}/control/counter/PAYMENT_REF/reverse

  The numbers mean the same as above, without one it waits for /control, but
  03  the clerk leaves it: the reservation ends after ten minutes
  04  given up, as are 05 (not enough cash), 06 and 13
  07  the clerk mistypes the reference: the look-up is refused
  08  taken; the line is away, and the desk says it two seconds later
  09  taken, and said twice
  10  taken after the reservation has ended
  11  the answer to the first look-up is lost, and the clerk looks up again
  "key" names a clerk by the key; a reversal is by another one than took the cash.

ALL OF THEM
  curl '{base}/control/collections?status=pending'
  curl -X POST {base}/control/collections/ID/approve
  curl -X POST {base}/control/collections/ID/approve -d '{"amount": "1"}'
  curl -X POST {base}/control/collections/ID/reject -d '{"reason": "EXPIRED"}'
  curl -X POST {base}/control/mtn -d '{"status": 503, "times": 3}'
  curl -X POST {base}/control/mtn -d '{"delay": "20s"}'
  curl -X POST {base}/control/mtn -d '{"reset": true}'
  curl -X POST {base}/control/collections/ID/reject -d '{"reason": "DP00800001029"}'
  curl -X POST {base}/control/airtel -d '{"status": 503, "times": 3}'
  curl -X POST {base}/control/collections/ID/reject -d '{"reason": "authentication_failed"}'
  curl -X POST {base}/control/card -d '{"status": 503, "times": 3}'

AN AGENCY'S ERP                                /erp/{agency}
  GET  /erp/{agency}/health
  GET  /erp/{agency}/dues?subject_ref=…
  GET  /erp/{agency}/disbursements?batch_ref=…
  POST /erp/{agency}/payment-confirmations

  curl '{base}/control/erp/impots'
  curl '{base}/control/erp/impots?after=120&attempts_after=130&limit=50'
  curl -X POST {base}/control/erp/impots -d '{"dues": {"NIU-1": [{"erp_due_ref": "D-1", "label": "Patente 2026", "amount_minor": 5000, "outstanding_minor": 5000, "original_minor": 5000, "currency": "XAF", "allow_partial": false, "revenue_line_code": "4711"}]}}'
  curl -X POST {base}/control/erp/impots -d '{"status": 500, "times": 10}'
  curl -X POST {base}/control/erp/impots -d '{"delay": "20s"}'
  curl -X POST {base}/control/erp/impots -d '{"refuse": {"status": 422, "code": "due_closed"}}'
  curl -X POST {base}/control/erp/impots -d '{"reset": true}'
  curl -X DELETE {base}/control/erp/impots

WEBHOOK INBOXES                                /inbox/{name}
  curl '{base}/inbox/guichet'
  curl '{base}/inbox/guichet?after=17&limit=100'
  curl -X DELETE {base}/inbox/guichet
  curl -X POST {base}/control/inbox/guichet -d '{"status": 410}'
  curl -X POST {base}/control/inbox/guichet -d '{"retry_after": 120, "times": 1}'
  curl -X POST {base}/control/inbox/guichet -d '{"hang": true}'
  curl -X POST {base}/control/inbox/guichet -d '{"drip": true}'
  curl -X POST {base}/control/inbox/guichet -d '{"redirect": "http://127.0.0.1:8081/inbox/other"}'
  curl -X POST {base}/control/inbox/guichet -d '{"delay": "3s", "status": 500}'
  curl -X POST {base}/control/inbox/guichet -d '{"reset": true}'

THE CLOCK of the whole service
  curl -X POST {base}/control/clock -d '{"advance": "24h"}'

A call to /control that sets status, delay, times or the like describes the
whole behaviour from then on; "times" limits it to the next so many requests,
"status": 200 or "reset": true ends it.
`
