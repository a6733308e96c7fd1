-- One row for each completed session, with the state of its confirmation to the
-- agency's ERP: none (nothing was sent yet, or there is no ERP), pending, accepted,
-- needs_operator, recorded (people say that the ERP knows, which has not accepted it). A
-- session that pays several dues is accepted when the confirmation of each due is accepted
-- whose money was not given back.
CREATE OR REPLACE VIEW payments
(
    session_id         String COMMENT 'Session (chs_)',
    session_key        String COMMENT 'Key of the session, the same in all views',
    tenant_id          String COMMENT 'Agency',
    agency             String COMMENT 'Present name of the agency',
    application_id     String COMMENT 'Application that created the session',
    application        String COMMENT 'Present name of the application',
    livemode           Bool COMMENT 'false for tests',
    order_id           String COMMENT 'Order of the integrator',
    payment_ref        String COMMENT 'Payment reference, 16 digits',
    notice_id          String COMMENT 'Notice of the session',
    notice_ref         String COMMENT 'Reference of the notice, as printed',
    transaction_id     String COMMENT 'Transaction of the payment',
    status             String COMMENT 'completed',
    amount             Int64 COMMENT 'Due without fee, minor units',
    currency           String COMMENT 'ISO 4217',
    fee_amount         Int64 COMMENT 'Fee, minor units',
    total_amount       Int64 COMMENT 'What the citizen paid: amount and fee_amount',
    channel            String COMMENT 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER, SWITCH',
    offer_id           String COMMENT 'momo, momo_b, card, cash_agency, bank_transfer, switch',
    operator_ref       String COMMENT 'The operator''s own reference; of cash, the number of the receipt',
    service_code       String COMMENT 'Service in the agency''s catalogue',
    service_label      String COMMENT 'Name of the service when the session was created',
    erp_due_ref        String COMMENT 'Due of the agency''s ERP, or several with spaces between them; empty for none',
    confirmation_state String COMMENT 'Confirmation to the ERP: none, pending, accepted, recorded (by people, not by the ERP), needs_operator',
    confirmed_at       Nullable(DateTime64(3, 'UTC')) COMMENT 'When the ERP accepted the last confirmation, UTC; NULL before',
    metadata           Map(String, String) COMMENT 'The integrator''s own fields',
    created_at         Nullable(DateTime64(3, 'UTC')) COMMENT 'When the session was created, UTC',
    completed_at       Nullable(DateTime64(3, 'UTC')) COMMENT 'When the session was completed, UTC',
    clerk              String COMMENT 'Clerk who took the cash',
    reversed_by        String COMMENT 'Clerk or staff who recorded that the money was given back',
    reversed_at        Nullable(DateTime64(3, 'UTC')) COMMENT 'When the money was given back, UTC; NULL if it was not'
)
SQL SECURITY INVOKER
AS
SELECT
    s.session_id     AS session_id,
    s.session_key    AS session_key,
    s.tenant_id      AS tenant_id,
    s.agency         AS agency,
    s.application_id AS application_id,
    s.application    AS application,
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
    if(p.refs = '', s.metadata['erp_due_ref'], p.refs) AS erp_due_ref,
    multiIf(
        c.confirmations = 0, 'none',
        c.parked > 0, 'needs_operator',
        c.waiting > 0 OR c.accepted + c.recorded < p.kept, 'pending',
        c.recorded > 0, 'recorded',
        'accepted') AS confirmation_state,
    if(confirmation_state = 'accepted', c.last_accepted_at, NULL) AS confirmed_at,
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
        countIf(d.outcome IN ('needs_operator', 'exhausted')) AS parked,
        countIf(d.outcome NOT IN ('needs_operator', 'exhausted', 'delivered')) AS waiting,
        countIf(d.outcome = 'delivered' AND d.reason = 'recorded_by_hand') AS recorded,
        countIf(d.outcome = 'delivered' AND d.reason != 'recorded_by_hand') AS accepted,
        max(d.delivered_at) AS last_accepted_at
    FROM deliveries AS d
    WHERE d.destination_kind = 'erp' AND d.session_id != ''
    GROUP BY d.session_id
) AS c ON c.session_id = s.session_id
LEFT JOIN
(
    -- The dues of a session, by the money of each: what was given back is not kept.
    SELECT
        of.session_id AS session_id,
        arrayStringConcat(arrayMap(x -> x.2, arraySort(groupArray((of.item, of.erp_due_ref)))), ' ') AS refs,
        countIf(of.left > 0) AS kept
    FROM
    (
        SELECT r.session_id AS session_id, r.item AS item, r.erp_due_ref AS erp_due_ref, sum(r.total_amount) AS left
        FROM receipt_rows AS r FINAL
        WHERE r.item > 0 AND r.erp_due_ref != ''
        GROUP BY r.session_id, r.item, r.erp_due_ref
    ) AS of
    GROUP BY of.session_id
) AS p ON p.session_id = s.session_id
WHERE s.status = 'completed'
COMMENT 'Completed sessions with the state of their ERP confirmation, for support. It costs as much as sessions and deliveries. For money read receipts'
