-- One row for each session, with its state after its last event. Every column has
-- the journal's alias: without it ClickHouse reads the view's own column.
CREATE OR REPLACE VIEW sessions AS
SELECT
    j.session_id AS session_id,
    argMax(j.tenant_id, j.sequence) AS tenant_id,
    argMax(j.application_id, j.sequence) AS application_id,
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
