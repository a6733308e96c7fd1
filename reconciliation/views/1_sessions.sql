-- One row for each session, with its state after its last event. Every column has
-- the journal's alias: without it ClickHouse reads the view's own column.
CREATE OR REPLACE VIEW sessions
(
    session_id     String COMMENT 'Session (chs_)',
    session_key    String COMMENT 'Key of the session, the same in all views',
    tenant_id      String COMMENT 'Agency',
    agency         String COMMENT 'Present name of the agency',
    application_id String COMMENT 'Application that created the session',
    application    String COMMENT 'Present name of the application',
    livemode       Bool COMMENT 'false for tests',
    order_id       String COMMENT 'Order of the integrator',
    payment_ref    String COMMENT 'Payment reference, 16 digits',
    notice_id      String COMMENT 'Notice of the session',
    notice_ref     String COMMENT 'Reference of the notice, as printed',
    transaction_id String COMMENT 'Transaction of the payment',
    mode           String COMMENT 'hosted, embedded',
    status         String COMMENT 'open, completed, expired, cancelled, failed',
    paid           Bool COMMENT 'Completed, and the money was not given back',
    amount         Int64 COMMENT 'Due without fee, minor units',
    currency       String COMMENT 'ISO 4217',
    channel        String COMMENT 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER, SWITCH; empty before the citizen chose',
    offer_id       String COMMENT 'momo, momo_b, card, cash_agency, bank_transfer, switch',
    operator_ref   String COMMENT 'The operator''s own reference; of cash, the number of the receipt',
    fee_amount     Int64 COMMENT 'Fee, minor units',
    total_amount   Int64 COMMENT 'What the citizen pays: amount and fee_amount',
    failure_code   String COMMENT 'Why the session failed',
    service_code   String COMMENT 'Service in the agency''s catalogue',
    service_label  String COMMENT 'Name of the service when the session was created',
    metadata       Map(String, String) COMMENT 'The integrator''s own fields',
    late_payment   Bool COMMENT 'Money arrived after the session ended',
    created_at     Nullable(DateTime64(3, 'UTC')) COMMENT 'When the session was created, UTC',
    expires_at     Nullable(DateTime64(3, 'UTC')) COMMENT 'When the session expires or would have expired, UTC',
    ended_at       Nullable(DateTime64(3, 'UTC')) COMMENT 'When the session ended, UTC; NULL while it is open',
    completed_at   Nullable(DateTime64(3, 'UTC')) COMMENT 'When the session was completed, UTC; NULL if it was not',
    clerk          String COMMENT 'Clerk who took the cash',
    reversed_by    String COMMENT 'Clerk or staff who recorded that the money was given back',
    reversed_at    Nullable(DateTime64(3, 'UTC')) COMMENT 'When the money was given back, UTC; NULL if it was not. The session stays completed',
    updated_at     DateTime64(3, 'UTC') COMMENT 'Time of the last event, UTC',
    sequence       Int64 COMMENT 'Number of the last event'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies,
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'application') AS applications
SELECT
    j.session_id AS session_id,
    substring(lower(hex(SHA256(j.session_id))), 1, 32) AS session_key,
    argMax(j.tenant_id, j.sequence) AS tenant_id,
    transform(argMax(j.tenant_id, j.sequence), agencies.1, agencies.2, '') AS agency,
    argMax(j.application_id, j.sequence) AS application_id,
    transform(argMax(j.application_id, j.sequence), applications.1, applications.2, '') AS application,
    argMax(j.livemode, j.sequence) AS livemode,
    argMax(j.order_id, j.sequence) AS order_id,
    argMax(j.payment_ref, j.sequence) AS payment_ref,
    argMax(j.notice_id, j.sequence) AS notice_id,
    argMax(j.notice_ref, j.sequence) AS notice_ref,
    argMax(j.transaction_id, j.sequence) AS transaction_id,
    argMax(j.mode, j.sequence) AS mode,
    argMax(j.status, j.sequence) AS status,
    -- Completed, and the money was not given back.
    (argMax(j.status, j.sequence) = 'completed' AND countIf(j.event IN ('checkout.reversed', 'collection.reversed')) = 0)::Bool AS paid,
    argMax(j.amount, j.sequence) AS amount,
    argMax(j.currency, j.sequence) AS currency,
    argMax(j.channel, j.sequence) AS channel,
    argMax(j.offer_id, j.sequence) AS offer_id,
    argMax(j.operator_ref, j.sequence) AS operator_ref,
    argMax(j.fee_amount, j.sequence) AS fee_amount,
    argMax(j.total_amount, j.sequence) AS total_amount,
    argMax(j.failure_code, j.sequence) AS failure_code,
    argMax(j.service_code, j.sequence) AS service_code,
    argMax(j.service_label, j.sequence) AS service_label,
    argMax(j.metadata, j.sequence) AS metadata,
    (countIf(j.event = 'checkout.late_payment') > 0)::Bool AS late_payment,
    -- In a tuple, because argMax ignores NULL and would return the time of an
    -- earlier event.
    argMax(tuple(j.created_at), j.sequence).1 AS created_at,
    argMax(tuple(j.expires_at), j.sequence).1 AS expires_at,
    argMax(tuple(j.ended_at), j.sequence).1 AS ended_at,
    argMax(tuple(j.completed_at), j.sequence).1 AS completed_at,
    -- The codes of the clerks who took cash and gave it back.
    anyIf(j.detail['by'], j.event IN ('checkout.completed', 'checkout.late_payment') AND j.channel = 'CASH') AS clerk,
    anyIf(j.detail['by'], j.event IN ('checkout.reversed', 'collection.reversed')) AS reversed_by,
    -- When the money was given back. The session stays completed.
    minOrNullIf(j.occurred_at, j.event IN ('checkout.reversed', 'collection.reversed')) AS reversed_at,
    argMax(j.occurred_at, j.sequence) AS updated_at,
    max(j.sequence) AS sequence
FROM journal AS j FINAL
WHERE j.entry_type = 'event' AND j.session_id != '' AND j.sequence > 0
GROUP BY j.session_id
COMMENT 'State of each session after its last event, for support. It groups all events ever recorded, also for one row: seconds for a million entries, minutes for a hundred million. For money read receipts'
