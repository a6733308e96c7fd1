-- One row for each delivery: a webhook to an endpoint, or a confirmation to an ERP.
-- The outcome is "delivered" if it was ever recorded, otherwise the last outcome.
CREATE OR REPLACE VIEW deliveries
(
    delivery_id      String COMMENT 'Delivery',
    session_id       String COMMENT 'Session; empty for none',
    session_key      String COMMENT 'Key of the session, the same in all views; empty for none',
    tenant_id        String COMMENT 'Agency',
    agency           String COMMENT 'Present name of the agency',
    application_id   String COMMENT 'Application',
    application      String COMMENT 'Present name of the application',
    livemode         Bool COMMENT 'false for tests',
    destination_kind String COMMENT 'webhook, erp',
    endpoint_id      String COMMENT 'Webhook endpoint, or agency/mode of an ERP',
    event            String COMMENT 'What the delivery tells, such as checkout.completed',
    event_id         String COMMENT 'evt_ id; of an ERP confirmation its transaction_id',
    outcome          String COMMENT 'delivered if it ever was; else the last outcome: failed, deferred, needs_operator, exhausted, superseded',
    http_status      Int32 COMMENT 'Status that the destination answered; 0 for no answer',
    duration_ms      Int64 COMMENT 'Duration of that call, milliseconds',
    reason           String COMMENT 'Why it was not accepted',
    next_attempt_at  Nullable(DateTime64(3, 'UTC')) COMMENT 'When the next attempt is due, UTC; NULL for none',
    attempts         Int32 COMMENT 'Number of attempts; a deferral is none',
    first_outcome_at DateTime64(3, 'UTC') COMMENT 'Time of the first outcome, UTC',
    last_outcome_at  DateTime64(3, 'UTC') COMMENT 'Time of the last outcome, UTC',
    delivered_at     Nullable(DateTime64(3, 'UTC')) COMMENT 'When it was accepted, UTC; NULL if it was not'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies,
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'application') AS applications
SELECT
    j.delivery_id AS delivery_id,
    any(j.session_id) AS session_id,
    any(j.session_key) AS session_key,
    any(j.tenant_id) AS tenant_id,
    transform(any(j.tenant_id), agencies.1, agencies.2, '') AS agency,
    any(j.application_id) AS application_id,
    transform(any(j.application_id), applications.1, applications.2, '') AS application,
    any(j.livemode) AS livemode,
    any(j.destination_kind) AS destination_kind,
    any(j.endpoint_id) AS endpoint_id,
    any(j.event) AS event,
    any(j.event_id) AS event_id,
    argMax(j.outcome, (j.outcome = 'delivered', j.attempt, j.occurred_at)) AS outcome,
    argMax(j.http_status, (j.outcome = 'delivered', j.attempt, j.occurred_at)) AS http_status,
    argMax(j.duration_ms, (j.outcome = 'delivered', j.attempt, j.occurred_at)) AS duration_ms,
    argMax(j.reason, (j.outcome = 'delivered', j.attempt, j.occurred_at)) AS reason,
    -- In a tuple, because argMax ignores NULL.
    argMax(tuple(j.next_attempt_at), (j.outcome = 'delivered', j.attempt, j.occurred_at)).1 AS next_attempt_at,
    -- A deferral is not counted as an attempt.
    maxIf(j.attempt, j.outcome != 'deferred') AS attempts,
    min(j.occurred_at) AS first_outcome_at,
    max(j.occurred_at) AS last_outcome_at,
    minOrNullIf(j.occurred_at, j.outcome = 'delivered') AS delivered_at
FROM journal AS j FINAL
WHERE j.entry_type = 'delivery'
GROUP BY j.delivery_id
COMMENT 'Each webhook and each ERP confirmation with its outcome, for support. It groups all outcomes ever recorded, also for one row: seconds for a million entries, minutes for a hundred million.'
