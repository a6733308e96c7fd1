-- One row for each delivery: a webhook to an endpoint, or a confirmation to an ERP.
-- The outcome is "delivered" if it was ever recorded, otherwise the last outcome.
CREATE OR REPLACE VIEW deliveries AS
SELECT
    j.delivery_id AS delivery_id,
    any(j.session_id) AS session_id,
    any(j.tenant_id) AS tenant_id,
    any(j.application_id) AS application_id,
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
