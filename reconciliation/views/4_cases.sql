-- One row for each operator case: money that fits no open session, an ERP that has not
-- accepted a confirmation, or a record that could not be processed, and the exit.
CREATE OR REPLACE VIEW cases
(
    case_id             String COMMENT 'Operator case (case_)',
    kind                String COMMENT 'late_payment, mismatch, orphan, undecided, refund_request, reversal, confirmation, poison (a record that could not be processed, no money), break and match_proposal (the matcher: see open_breaks), close (of a period of an account)',
    state               String COMMENT 'open, closed',
    tenant_id           String COMMENT 'Agency; empty for poison and for an orphan of no known session',
    agency              String COMMENT 'Present name of the agency',
    application_id      String COMMENT 'Application that created the session',
    application         String COMMENT 'Present name of the application',
    livemode            Bool COMMENT 'false for tests and for poison',
    session_id          String COMMENT 'Session of the money; of an orphan of no known session, the id that its report named; empty for poison',
    session_key         String COMMENT 'Key of the session, the same in all views; of an orphan of no known session, of the id that its report named; empty for poison',
    order_id            String COMMENT 'Order of the integrator',
    amount              Int64 COMMENT 'Money as it was reported, minor units; of a case about the session''s own payment, its total; of a break, the lines less the money that is expected; 0 for poison',
    currency            String COMMENT 'ISO 4217; empty for poison',
    operator_ref        String COMMENT 'The operator''s own reference; of cash, the number of the receipt',
    opened_by_event     String COMMENT 'Event that opened the case',
    opened_by           String COMMENT 'Clerk or staff; empty for a report of an operator',
    reason              String COMMENT 'Why the case was opened; of poison, the error',
    resolution          String COMMENT 'honour, refund, approved, refused, write_off, acknowledge, retry, recorded_by_hand, cash_returned, superseded, accepted, explain, match, match_by_hand, close, cleared, withdrawn; empty while the case is open',
    reference           String COMMENT 'Reference of the refund or of the evidence',
    resolved_reason     String COMMENT 'Why it was resolved so',
    resolved_by         String COMMENT 'Who proposed the resolution; policy for the agency''s policy, matcher for a later run of it',
    approved_by         String COMMENT 'Second member of staff',
    proposals           UInt64 COMMENT 'Number of proposals of staff',
    proposed_resolution String COMMENT 'Resolution of the last proposal',
    proposed_by         String COMMENT 'Who made the last proposal',
    proposed_at         Nullable(DateTime64(3, 'UTC')) COMMENT 'Time of the last proposal, UTC; NULL for none',
    approved_at         Nullable(DateTime64(3, 'UTC')) COMMENT 'Time of the last approval, UTC; NULL for none',
    rejected_at         Nullable(DateTime64(3, 'UTC')) COMMENT 'Time of the last rejection, UTC; NULL for none',
    lapsed_at           Nullable(DateTime64(3, 'UTC')) COMMENT 'When the last proposal that nobody approved in time lapsed, UTC; NULL for none',
    refused_at          Nullable(DateTime64(3, 'UTC')) COMMENT 'When an approved proposal was last refused when it was carried out, UTC; NULL for none',
    refusal             LowCardinality(String) COMMENT 'Code of that refusal; empty for none',
    opened_at           Nullable(DateTime64(3, 'UTC')) COMMENT 'UTC',
    closed_at           Nullable(DateTime64(3, 'UTC')) COMMENT 'UTC; NULL while the case is open'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies,
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'application') AS applications,
    j.event NOT IN ('case.resolved', 'case.proposed', 'case.approved', 'case.rejected', 'case.lapsed', 'case.refused') AS opens,
    -- An orphan of no known session has one or several reports, which may differ, and then
    -- case.opened, which says what the first one said.
    (NOT opens, j.event != 'case.opened', j.occurred_at) AS rank
SELECT
    j.case_id AS case_id,
    any(j.detail['case_kind']) AS kind,
    if(countIf(j.event = 'case.resolved') > 0, 'closed', 'open') AS state,
    j.tenant_id AS tenant_id,
    transform(j.tenant_id, agencies.1, agencies.2, '') AS agency,
    any(j.application_id) AS application_id,
    transform(any(j.application_id), applications.1, applications.2, '') AS application,
    -- The events of an orphan of no known session have its mode in their own fields.
    argMin(j.livemode OR j.detail['livemode'] = 'true', rank)::Bool AS livemode,
    any(j.session_id) AS session_id,
    any(if(empty(j.session_id), '', substring(lower(hex(SHA256(j.session_id))), 1, 32))) AS session_key,
    any(j.order_id) AS order_id,
    -- Money as it was reported; of a case about the session's own payment, its total.
    argMinIf(if(j.detail['reported_amount'] != '', toInt64OrZero(j.detail['reported_amount']), j.total_amount), rank, opens) AS amount,
    argMinIf(if(j.detail['reported_currency'] != '', j.detail['reported_currency'], j.currency), rank, opens) AS currency,
    argMinIf(if(j.detail['operator_ref'] != '', j.detail['operator_ref'], j.operator_ref), rank, opens) AS operator_ref,
    maxIf(j.event, opens) AS opened_by_event,
    argMinIf(j.detail['by'], rank, opens) AS opened_by,
    argMinIf(j.detail['reason'], rank, opens) AS reason,
    anyIf(j.detail['resolution'], j.event = 'case.resolved') AS resolution,
    anyIf(j.detail['reference'], j.event = 'case.resolved') AS reference,
    anyIf(j.detail['reason'], j.event = 'case.resolved') AS resolved_reason,
    anyIf(j.detail['by'], j.event = 'case.resolved') AS resolved_by,
    anyIf(j.detail['approved_by'], j.event = 'case.resolved') AS approved_by,
    -- What staff did before: the last proposal, and its approval or rejection.
    uniqExactIf(j.detail['proposal'], j.event = 'case.proposed') AS proposals,
    argMaxIf(j.detail['resolution'], toUInt32OrZero(j.detail['proposal']), j.event = 'case.proposed') AS proposed_resolution,
    argMaxIf(j.detail['by'], toUInt32OrZero(j.detail['proposal']), j.event = 'case.proposed') AS proposed_by,
    maxOrNullIf(j.occurred_at, j.event = 'case.proposed') AS proposed_at,
    maxOrNullIf(j.occurred_at, j.event = 'case.approved') AS approved_at,
    maxOrNullIf(j.occurred_at, j.event = 'case.rejected') AS rejected_at,
    maxOrNullIf(j.occurred_at, j.event = 'case.lapsed') AS lapsed_at,
    maxOrNullIf(j.occurred_at, j.event = 'case.refused') AS refused_at,
    argMaxIf(j.detail['reason'], toUInt32OrZero(j.detail['proposal']), j.event = 'case.refused') AS refusal,
    minOrNullIf(j.occurred_at, opens) AS opened_at,
    minOrNullIf(j.occurred_at, j.event = 'case.resolved') AS closed_at
-- Without FINAL: a row that is written twice changes none of these columns. All events of a
-- case are of one agency, so that a filter by tenant_id reads the rows of that agency only.
FROM case_rows AS j
GROUP BY j.tenant_id, j.case_id
COMMENT 'Operator cases: money that fits no open session, an ERP that has not accepted a confirmation, a difference to a statement, or a record that could not be processed, and the exit. It reads the events of cases only'
