-- Webhooks and ERP confirmations that were attempted in a month and are not accepted until now.
-- It reads the deliveries from that month on, without FINAL: a row that is written twice
-- changes none of these columns.
WITH undelivered AS
(
    SELECT
        j.tenant_id AS tenant_id,
        j.destination_kind AS kind,
        j.endpoint_id AS destination,
        j.event_id AS event_id,
        any(j.event) AS event,
        any(j.session_key) AS session_key,
        argMax(j.delivery_id, (j.occurred_at, j.attempt)) AS delivery_id,
        argMax(j.outcome, (j.occurred_at, j.attempt)) AS outcome,
        argMax(j.http_status, (j.occurred_at, j.attempt)) AS http_status,
        argMax(j.reason, (j.occurred_at, j.attempt)) AS reason,
        max(j.attempt) AS attempts,
        min(j.occurred_at) AS first_at,
        max(j.occurred_at) AS last_at
    FROM journal AS j
    WHERE j.entry_type = 'delivery'
        AND j.livemode = {livemode:Bool}
        AND j.occurred_at >= toDateTime(toStartOfMonth({month:Date}), 'Africa/Brazzaville')
        AND ({agency:String} = ''
            OR j.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
    GROUP BY j.tenant_id, j.destination_kind, j.endpoint_id, j.event_id
    HAVING countIf(j.outcome = 'delivered') = 0
        AND first_at < toDateTime(addMonths(toStartOfMonth({month:Date}), 1), 'Africa/Brazzaville')
)
SELECT
    a.name AS agency,
    u.kind AS kind,
    u.destination AS destination,
    u.event AS event,
    s.order_id AS order_id,
    s.payment_ref AS payment_ref,
    s.currency AS currency,
    s.total AS total_minor,
    u.outcome AS outcome,
    u.http_status AS http_status,
    u.reason AS reason,
    u.attempts AS attempts,
    formatDateTime(u.first_at, '%F %T', 'Africa/Brazzaville') AS first_at,
    formatDateTime(u.last_at, '%F %T', 'Africa/Brazzaville') AS last_at,
    u.delivery_id AS delivery_id
FROM undelivered AS u
LEFT JOIN agencies AS a ON a.tenant_id = u.tenant_id
LEFT JOIN
(
    SELECT
        j.session_key AS session_key,
        any(j.order_id) AS order_id,
        any(j.payment_ref) AS payment_ref,
        any(j.currency) AS currency,
        argMax(j.amount + j.fee_amount, j.sequence) AS total
    FROM journal AS j
    WHERE j.entry_type = 'event' AND j.session_key IN (SELECT session_key FROM undelivered WHERE session_key != '')
    GROUP BY j.session_key
) AS s ON s.session_key = u.session_key
ORDER BY agency, kind, destination, first_at, delivery_id
