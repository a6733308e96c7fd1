-- The cases of earlier releases.
INSERT INTO case_rows (case_id, entry_id, occurred_at, event, tenant_id, application_id, livemode, session_id, order_id, operator_ref, currency, total_amount, detail)
SELECT detail['case_id'], entry_id, occurred_at, event, tenant_id, application_id, livemode, session_id, order_id, operator_ref, currency, total_amount, detail
FROM journal
WHERE entry_type = 'event' AND detail['case_id'] != '' AND detail['case_kind'] != ''
