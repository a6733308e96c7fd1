-- The events of operator cases, which are few among those of the journal: a row for each, with
-- what the view cases shows. The sink journal writes it with the entries, never a materialized
-- view. Every column is derived from the event, so a row that is written twice is the same row.
CREATE TABLE IF NOT EXISTS case_rows
(
    case_id        String COMMENT 'Operator case (case_)',
    entry_id       String COMMENT 'Entry of the journal',
    occurred_at    DateTime64(3, 'UTC') COMMENT 'When it occurred, UTC' CODEC(Delta, ZSTD),
    event          LowCardinality(String) COMMENT 'case.opened, checkout.late_payment and the like',
    tenant_id      LowCardinality(String) COMMENT 'Agency',
    application_id LowCardinality(String) COMMENT 'Application that created the session',
    livemode       Bool COMMENT 'false for tests',
    session_id     String COMMENT 'Session of the money' CODEC(ZSTD),
    order_id       String COMMENT 'Order of the integrator' CODEC(ZSTD),
    operator_ref   String COMMENT 'The operator''s own reference of the session''s collection' CODEC(ZSTD),
    currency       LowCardinality(String) COMMENT 'ISO 4217',
    total_amount   Int64 COMMENT 'What the citizen pays, minor units' CODEC(ZSTD),
    detail         Map(LowCardinality(String), String) COMMENT 'The event''s own facts, such as case_kind, reason, by' CODEC(ZSTD)
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant_id, case_id, occurred_at, entry_id)
COMMENT 'Events of operator cases. Read the view cases, which has a row for each case'
