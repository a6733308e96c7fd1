-- One row for each thing that happened: an event of a session, the outcome of a
-- delivery attempt, later a line of an operator's statement. entry_id is derived
-- from what the row is about and every column from the record it was read from,
-- so a row written twice is the same row and FINAL shows it once.
--
-- Absent text is empty, absent amounts are 0, absent times are NULL. Amounts are
-- minor units of the row's currency; times are UTC.
CREATE TABLE IF NOT EXISTS journal
(
    entry_id          String,
    entry_type        LowCardinality(String) COMMENT 'event, delivery, statement',
    occurred_at       DateTime64(3, 'UTC'),
    event             LowCardinality(String) COMMENT 'checkout.completed and the like; of a delivery: what it tells of',
    event_id          String COMMENT 'evt_ id; of an ERP confirmation its transaction_id',
    sequence          Int64 COMMENT 'of the event within its session, from 1; 0 for entries that have none',

    tenant_id         String,
    application_id    String,
    livemode          Bool,
    session_id        String,
    order_id          String,
    payment_ref       String,
    notice_id         String,
    notice_ref        String,
    transaction_id    String,
    mode              LowCardinality(String) COMMENT 'hosted, embedded',
    status            LowCardinality(String) COMMENT 'of the session after the event: open, completed, expired, cancelled, failed',
    amount            Int64 COMMENT 'due amount, without fees',
    currency          LowCardinality(String),
    service_code      LowCardinality(String),
    service_label     String,
    metadata          Map(String, String),
    created_at        Nullable(DateTime64(3, 'UTC')),
    expires_at        Nullable(DateTime64(3, 'UTC')),
    ended_at          Nullable(DateTime64(3, 'UTC')),
    completed_at      Nullable(DateTime64(3, 'UTC')),
    failure_code      LowCardinality(String),

    collection_id     String COMMENT 'the reference that the operator was told',
    collection_status LowCardinality(String),
    channel           LowCardinality(String),
    offer_id          LowCardinality(String),
    operator_ref      String,
    payer_masked      String,
    fee_amount        Int64,
    total_amount      Int64 COMMENT 'what the citizen pays: amount and fee',
    detail            Map(String, String) COMMENT 'what this event adds to the session',

    delivery_id       String,
    destination_kind  LowCardinality(String) COMMENT 'webhook, erp',
    endpoint_id       String,
    attempt           Int32,
    outcome           LowCardinality(String) COMMENT 'delivered, failed, deferred, needs_operator, exhausted',
    http_status       Int32,
    duration_ms       Int64,
    reason            String,
    next_attempt_at   Nullable(DateTime64(3, 'UTC')),

    INDEX by_session session_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (tenant_id, toDate(occurred_at), entry_id)
