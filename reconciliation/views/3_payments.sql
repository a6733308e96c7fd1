-- One row for each completed session, with the state of its confirmation to the
-- agency's ERP: none (nothing was sent yet, or there is no ERP), pending, accepted,
-- needs_operator. A session that pays several dues is accepted when each of its
-- confirmations is accepted.
CREATE OR REPLACE VIEW payments AS
SELECT
    s.session_id     AS session_id,
    s.tenant_id      AS tenant_id,
    s.application_id AS application_id,
    s.livemode       AS livemode,
    s.order_id       AS order_id,
    s.payment_ref    AS payment_ref,
    s.notice_id      AS notice_id,
    s.notice_ref     AS notice_ref,
    s.transaction_id AS transaction_id,
    s.status         AS status,
    s.amount         AS amount,
    s.currency       AS currency,
    s.fee_amount     AS fee_amount,
    s.total_amount   AS total_amount,
    s.channel        AS channel,
    s.offer_id       AS offer_id,
    s.operator_ref   AS operator_ref,
    s.service_code   AS service_code,
    s.service_label  AS service_label,
    s.metadata['erp_due_ref'] AS erp_due_ref,
    if(c.confirmations = 0, 'none', c.state) AS confirmation_state,
    c.confirmed_at   AS confirmed_at,
    s.metadata       AS metadata,
    s.created_at     AS created_at,
    s.completed_at   AS completed_at,
    s.clerk          AS clerk,
    s.reversed_by    AS reversed_by,
    s.reversed_at    AS reversed_at
FROM sessions AS s
LEFT JOIN
(
    SELECT
        d.session_id AS session_id,
        count() AS confirmations,
        multiIf(
            countIf(d.outcome IN ('needs_operator', 'exhausted')) > 0, 'needs_operator',
            countIf(d.outcome != 'delivered') > 0, 'pending',
            'accepted') AS state,
        if(state = 'accepted', max(d.delivered_at), NULL) AS confirmed_at
    FROM deliveries AS d
    WHERE d.destination_kind = 'erp' AND d.session_id != ''
    GROUP BY d.session_id
) AS c ON c.session_id = s.session_id
WHERE s.status = 'completed'
