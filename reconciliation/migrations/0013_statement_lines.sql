-- Lines of accepted statements. The sink journal writes them from reconciliation.statements,
-- never a materialized view. Every column is derived from the record, so a line that is written
-- twice is the same row. A line that comes again in another statement, with the same content,
-- has the same key: the first one stays, so that what a reader finds below an offset never
-- changes. A line that comes again with other content is a second row.
CREATE TABLE IF NOT EXISTS statement_lines
(
    line_id        String COMMENT 'Code of the account and the id of the operator or the bank, else the statement and the position; a repetition in one file ends in ~2, ~3' CODEC(ZSTD),
    content        UInt64 COMMENT 'Hash of kind, time, day, amounts and references: two rows of a line_id differ in it',
    local_day      Date COMMENT 'Day of the booking in the time zone of the account',
    at             Nullable(DateTime64(3, 'UTC')) COMMENT 'Time, UTC; null if the statement gives only a day' CODEC(ZSTD),

    tenant_id      LowCardinality(String) COMMENT 'Agency',
    livemode       Bool COMMENT 'false for the statements of test accounts',
    account        LowCardinality(String) COMMENT 'Code of the account in the registry',
    statement_id   String COMMENT 'Statement in which the line came first' CODEC(ZSTD),
    import_id      String COMMENT 'Import of that statement' CODEC(ZSTD),
    imported_at    DateTime64(3, 'UTC') COMMENT 'When it was imported, UTC' CODEC(Delta, ZSTD),
    number         UInt64 COMMENT 'Position in the statement, from 1' CODEC(ZSTD),
    occurrence     UInt32 COMMENT 'More than 1 if the file has the id repeatedly',
    source_line    UInt32 COMMENT 'Line of the file' CODEC(ZSTD),
    source_column  UInt32 COMMENT 'Column of the file, in bytes' CODEC(ZSTD),

    kind           LowCardinality(String) COMMENT 'payment, refund, reversal, payout, charge, entry (of a bank)',
    currency       LowCardinality(String) COMMENT 'ISO 4217',
    amount         Int64 COMMENT 'Gross, minor units; negative for money that leaves the account' CODEC(ZSTD),
    fee_amount     Int64 COMMENT 'What the operator kept of it, minor units' CODEC(ZSTD),
    net_amount     Int64 COMMENT 'amount less fee_amount: what the line adds to the balance' CODEC(ZSTD),
    reversal       Bool COMMENT 'The line undoes an earlier one',
    operator_ref   String COMMENT 'The operator''s own reference of the payment' CODEC(ZSTD),
    payment_ref    String COMMENT 'Payment reference, 16 digits, whose check holds' CODEC(ZSTD),
    notice_ref     String COMMENT 'Reference of a notice' CODEC(ZSTD),
    batch          String COMMENT 'Settlement batch or deposit slip' CODEC(ZSTD),
    details_unused UInt32 COMMENT 'Details of a bank''s entry that were not used because their sum is not the entry',

    source_partition Int32 COMMENT 'Partition of reconciliation.statements',
    source_offset    Int64 COMMENT 'Offset of the record there. A run of the matcher reads the rows below its watermark' CODEC(Delta, ZSTD),
    version          UInt64 COMMENT 'Higher for a lower offset: of a line that is written several times the first record counts' CODEC(Delta, ZSTD),

    INDEX by_operator_ref operator_ref TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_payment_ref payment_ref TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_batch batch TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(local_day)
ORDER BY (tenant_id, local_day, account, livemode, line_id, content)
COMMENT 'Lines of the statements of operators, acquirers, banks and counters. Read it with FINAL'
