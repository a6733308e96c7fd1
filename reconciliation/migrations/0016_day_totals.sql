-- Sums of a local day of an account. A run of the matcher recomputes the days that changed,
-- and the last row of a day replaces the earlier ones. They are never added up by an insert.
CREATE TABLE IF NOT EXISTS day_totals
(
    day                 Date COMMENT 'Local day of the account',
    tenant_id           LowCardinality(String) COMMENT 'Agency',
    livemode            Bool COMMENT 'false for test accounts',
    account             LowCardinality(String) COMMENT 'Code of the account in the registry',
    currency            LowCardinality(String) COMMENT 'ISO 4217',
    sources             Int64 COMMENT 'Entries of expected money; of a bank account, lines that settle to it',
    sources_amount      Int64 COMMENT 'Their sum, minor units, given back money subtracted' CODEC(ZSTD),
    lines               Int64 COMMENT 'Lines of statements',
    lines_amount        Int64 COMMENT 'Their gross sum, minor units' CODEC(ZSTD),
    lines_fee           Int64 COMMENT 'What the operator kept of it, minor units' CODEC(ZSTD),
    open_sources        Int64 COMMENT 'Sources without a match',
    open_sources_amount Int64 COMMENT 'Their sum, minor units' CODEC(ZSTD),
    open_lines          Int64 COMMENT 'Lines without a match',
    open_lines_amount   Int64 COMMENT 'Their gross sum, minor units' CODEC(ZSTD),
    run_id              String COMMENT 'Run that computed it' CODEC(ZSTD),
    at                  DateTime64(3, 'UTC') COMMENT 'When, UTC' CODEC(Delta, ZSTD),
    source_partition    Int32 COMMENT 'Partition of reconciliation.events',
    source_offset       Int64 COMMENT 'Offset of the record there; the highest counts' CODEC(Delta, ZSTD)
)
ENGINE = ReplacingMergeTree(source_offset)
PARTITION BY toYYYYMM(day)
ORDER BY (tenant_id, account, livemode, day, currency)
COMMENT 'Sums of a local day of an account: expected, found, open. Read it with FINAL'
