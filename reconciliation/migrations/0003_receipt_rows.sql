-- Money: one row for each item and movement (completed, late, reversal), or for each
-- collection (orphan, mismatch, and their reversals). The sink journal writes it from
-- checkout.events, never a materialized view. Every column is derived from the event, so
-- a row that is written twice is the same row, in the same partition.
--
-- The key begins with what reports ask for. An index of each reference finds single
-- payments. A granule that a filter names wrongly costs more than its filter, because FINAL
-- reads all columns of the query there: so one in a thousand. Ids of sessions begin with
-- their time, which an index uses. Days of approvals and times run with the local date.
CREATE TABLE IF NOT EXISTS receipt_rows
(
    row_id         UUID COMMENT 'Derived from the event and the item; the same whenever the row is written',
    movement       LowCardinality(String) COMMENT 'completed, late, reversal, orphan, mismatch',
    occurred_at    DateTime64(3, 'UTC') COMMENT 'When the service recorded the movement, UTC' CODEC(Delta, ZSTD),
    local_date     Date COMMENT 'Day of occurred_at in Africa/Brazzaville',
    approved_on    Date COMMENT 'Local day of the approval: the operator''s own date, or the day on which its approval became known. Of a reversal, that of the money given back',

    tenant_id      LowCardinality(String) COMMENT 'Agency',
    application_id LowCardinality(String) COMMENT 'Application that created the session',
    livemode       Bool COMMENT 'false for test payments',
    account        LowCardinality(String) COMMENT 'Fingerprint of the merchant account that has the money; of cash, the counter',
    mode           LowCardinality(String) COMMENT 'hosted, embedded',
    channel        LowCardinality(String) COMMENT 'MOBILE_MONEY, CARD, CASH; empty if the report of an orphan does not tell',
    offer_id       LowCardinality(String) COMMENT 'momo, momo_b, card, cash_agency; empty as channel',

    session_id     String COMMENT 'Session; empty for an orphan of no known session' CODEC(ZSTD),
    order_id       String COMMENT 'Order of the integrator' CODEC(ZSTD),
    payment_ref    String COMMENT 'Payment reference, 16 digits' CODEC(ZSTD),
    collection_id  String COMMENT 'The reference that the operator was told' CODEC(ZSTD),
    operator_ref   String COMMENT 'The operator''s own reference; of cash, the number of the receipt' CODEC(ZSTD),
    item           UInt16 COMMENT 'Position of the item in its session, from 1; 0 for a whole collection',
    erp_due_ref    String COMMENT 'Due of the agency''s ERP; empty for none' CODEC(ZSTD),
    transaction_id String COMMENT 'Transaction of the item; empty for a whole collection' CODEC(ZSTD),
    notice_ref     String COMMENT 'Reference of the item''s notice; empty for a whole collection' CODEC(ZSTD),
    service_code   LowCardinality(String) COMMENT 'Service of the item',
    service_label  LowCardinality(String) COMMENT 'Name of the service when the session was created',

    currency       LowCardinality(String) COMMENT 'ISO 4217',
    amount         Int64 COMMENT 'Due without fee, minor units; of a whole collection, what was reported. Negative in a reversal' CODEC(ZSTD),
    fee_amount     Int64 COMMENT 'Fee, minor units; 0 for a whole collection. Negative in a reversal' CODEC(ZSTD),
    total_amount   Int64 COMMENT 'amount and fee_amount' CODEC(ZSTD),

    reason         LowCardinality(String) COMMENT 'Of a reversal: cash_returned, refunded, superseded (the operator replaced its report). Of a mismatch: amount, currency',
    reference      String COMMENT 'Reference of the refund' CODEC(ZSTD),
    case_id        String COMMENT 'Operator case of the money; see the view cases' CODEC(ZSTD),
    recorded_by    LowCardinality(String) COMMENT 'Clerk who took or gave back cash, or staff who resolved the case',

    INDEX approvals approved_on TYPE minmax GRANULARITY 1,
    INDEX times occurred_at TYPE minmax GRANULARITY 1,
    INDEX session_times session_id TYPE minmax GRANULARITY 1,
    INDEX by_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_order order_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_payment_ref payment_ref TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_operator_ref operator_ref TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(local_date)
ORDER BY (tenant_id, local_date, account, row_id)
COMMENT 'Money by movement. Read the view receipts, which shows each row once'
