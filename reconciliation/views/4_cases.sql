-- One row for each operator case: money that fits no open session, and its exit. The
-- cases of poison, and exits of reports of no known session, are in Postgres only.
CREATE OR REPLACE VIEW cases AS
SELECT
    j.detail['case_id'] AS case_id,
    any(j.detail['case_kind']) AS kind,
    if(countIf(j.event = 'case.resolved') > 0, 'closed', 'open') AS state,
    any(j.tenant_id) AS tenant_id,
    any(j.application_id) AS application_id,
    any(j.livemode) AS livemode,
    any(j.session_id) AS session_id,
    any(j.order_id) AS order_id,
    -- Money as it was reported; of a case about the session's own payment, its total.
    anyIf(if(j.detail['reported_amount'] != '', toInt64OrZero(j.detail['reported_amount']), j.total_amount), j.event != 'case.resolved') AS amount,
    anyIf(if(j.detail['reported_currency'] != '', j.detail['reported_currency'], j.currency), j.event != 'case.resolved') AS currency,
    anyIf(if(j.detail['operator_ref'] != '', j.detail['operator_ref'], j.operator_ref), j.event != 'case.resolved') AS operator_ref,
    anyIf(j.event, j.event != 'case.resolved') AS opened_by_event,
    anyIf(j.detail['by'], j.event != 'case.resolved') AS opened_by,
    anyIf(j.detail['reason'], j.event != 'case.resolved') AS reason,
    anyIf(j.detail['resolution'], j.event = 'case.resolved') AS resolution,
    anyIf(j.detail['reference'], j.event = 'case.resolved') AS reference,
    anyIf(j.detail['reason'], j.event = 'case.resolved') AS resolved_reason,
    anyIf(j.detail['by'], j.event = 'case.resolved') AS resolved_by,
    anyIf(j.detail['approved_by'], j.event = 'case.resolved') AS approved_by,
    minOrNullIf(j.occurred_at, j.event != 'case.resolved') AS opened_at,
    minOrNullIf(j.occurred_at, j.event = 'case.resolved') AS closed_at
FROM journal AS j FINAL
-- checkout.completed names the case that it came from.
WHERE j.entry_type = 'event' AND j.detail['case_id'] != '' AND j.detail['case_kind'] != ''
GROUP BY j.detail['case_id']
