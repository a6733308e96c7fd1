package simulator

import (
	"fmt"
	"net/http"
	"strings"
)

// index is GET /: all surfaces, with commands to paste.
func (s *Simulator) index(w http.ResponseWriter, r *http.Request) {
	var parts, numbers strings.Builder
	for _, o := range operators() {
		parts.WriteString(o.index)
	}
	for _, m := range magicNumbers {
		if m.phone != "" {
			fmt.Fprintf(&numbers, "  %s%s  %s\n", mtnSpelled, m.digits, m.phone)
		}
	}
	text := strings.Replace(indexText, "{operators}\n", parts.String(), 1)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	//nolint:gosec // the answer is plain text
	_, _ = fmt.Fprint(w, strings.NewReplacer("{misbehaviours}", strings.Join(misbehaviours, ", "), "{idp_faults}", strings.Join(idpFaults, ", "), "{line_faults}", strings.Join(lineFaults, ", "), "{file_faults}", strings.Join(fileFaults, ", "), "{numbers}\n", numbers.String(), "{batch}", StandardBatch, "{base}", "http://"+r.Host).Replace(text))
}

const indexText = `Simulators of Quittance: the world outside, for development only.

{operators}
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

STATEMENTS of operators, acquirer, counters and bank   /control/statements
  curl '{base}/control/statements'             (the accounts and the planted faults)
  curl '{base}/control/statements/mtn?day=2026-11-23'
  curl '{base}/control/statements/banque?day=2026-11-23&agency=impots'
  curl -X POST {base}/control/statements/mtn -d '{"fault": "drop"}'
  curl -X POST {base}/control/statements/mtn -d '{"fault": "one_more", "line": "100000000000001"}'
  curl -X POST {base}/control/statements/mtn -d '{"fault": "truncated", "day": "2026-11-23"}'
  curl -X POST {base}/control/statements/mtn -d '{"reset": true}'

  Faults of a line, the day's first payment unless named: {line_faults}.
  Faults of a day's file: {file_faults}.
  Operators pay out at the account's cut-off. Today's statement has what happened so far.

AN AGENCY'S ERP                                /erp/{agency}
  GET  /erp/{agency}/health
  GET  /erp/{agency}/dues?subject_ref=…
  GET  /erp/{agency}/disbursements?batch_ref=…
  POST /erp/{agency}/payment-confirmations

  Dues from the start: TP-1001 (whole, partial, overdue), TP-1002 (mapped and
  unmapped lines), TP-1003 (none), TP-1004 (a broken one), TP-1005 (EUR),
  TP-1006 (due in a week and tomorrow, for reminders).
  Confirmations are taken off their balances. The batch {batch} has lines from the start.

  curl '{base}/control/erp/impots'
  curl '{base}/control/erp/impots?after=120&attempts_after=130&limit=50'
  curl -X POST {base}/control/erp/impots -d '{"dues": {"NIU-1": [{"erp_due_ref": "D-1", "label": "Patente 2026", "amount_minor": 5000, "outstanding_minor": 5000, "original_minor": 5000, "currency": "XAF", "allow_partial": false, "revenue_line_code": "4711"}]}}'
  curl -X POST {base}/control/erp/impots -d '{"status": 500, "times": 10}'
  curl -X POST {base}/control/erp/impots -d '{"delay": "20s"}'
  curl -X POST {base}/control/erp/impots -d '{"away": true}'
  curl -X POST {base}/control/erp/impots -d '{"change": {"TP-1001-A": {"outstanding_minor": 40000}, "TP-1001-C": null}}'
  curl -X POST {base}/control/erp/impots -d '{"disbursements": {"B-7": [{"line_ref": "B7-0001", "beneficiary": {"name": "A. Beneficiary", "msisdn": "+242066010001"}, "payment_mode": "MTN", "amount_minor": 25000, "currency": "XAF"}]}}'
  curl -X POST {base}/control/erp/impots -d '{"cut": 3}'      (breaks lines of batches off after 3)
  curl -X POST {base}/control/erp/impots -d '{"misbehave": ["duplicate_refs"]}'
    {misbehaviours}
  curl -X POST {base}/control/erp/impots -d '{"refuse": {"status": 422, "code": "due_closed"}}'
  curl -X POST {base}/control/erp/impots -d '{"reset": true}'
  curl -X DELETE {base}/control/erp/impots

  "reset" also brings the dues and the batch of the start back.

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

IDENTITY PROVIDERS OF STAFF                    /idp/{provider}
  GET  /idp/{provider}/.well-known/openid-configuration

  curl -X POST {base}/control/idp/impots -d '{"fault": "no_nonce"}'
    {idp_faults}
  curl -X POST {base}/control/idp/impots -d '{"rotate": true}'
  curl -X POST {base}/control/idp/impots -d '{"algorithm": "EdDSA"}'
  curl -X POST {base}/control/idp/impots/logout -d '{"client_id": "quittance", "subject": "agent-1"}'
  curl -X POST {base}/control/idp/impots -d '{"reset": true}'

  "logout" answers with a logout token, to send to the service.

SMS AND E-MAIL                                 /inbox/sms, /inbox/mail
  POST /sms/infobip/sms/3/messages
  POST /sms/mtn/v3/sms/messages/sms/outbound
  POST /sms/mtn/v3/sms/messages/sms/subscription
  SMTP on a port of its own: with up and simulate it is the ninth after the first

  curl '{base}/inbox/sms'                      (a browser gets a page)
  curl '{base}/inbox/mail?after=17'
  curl -X DELETE {base}/inbox/sms
  curl -X POST {base}/control/sms -d '{"status": 503, "times": 1}'
  curl -X POST {base}/control/sms -d '{"refuse": "permanent"}'
  curl -X POST {base}/control/sms -d '{"refuse": "temporary", "times": 1}'
  curl -X POST {base}/control/sms -d '{"hang": true}'
  curl -X POST {base}/control/sms -d '{"report": "undelivered", "times": 1}'
  curl -X POST {base}/control/mail -d '{"status": 451, "at": "rcpt", "times": 1}'
  curl -X POST {base}/control/mail -d '{"status": 550, "at": "data"}'
  curl -X POST {base}/control/mail -d '{"delay": "20s"}'
  curl -X POST {base}/control/mail -d '{"reset": true}'

  "hang" and "delay" take the message first: the sender does not know it.
  Delivery reports follow an SMS that asks for them. "report" chooses which:
  delivered (the default), undelivered (no such number), absent (phone off),
  twice, disordered (a failure after "delivered"), stranger (of a message that
  was never sent), early (before the answer) or none.

THE CLOCK of the whole service
  curl -X POST {base}/control/clock -d '{"advance": "24h"}'

  The answer comes when all processes have the new time.

A call to /control that sets status, delay, times or the like describes the
whole behaviour from then on; "times" limits it to the next so many requests,
"status": 200 or "reset": true ends it.
`
