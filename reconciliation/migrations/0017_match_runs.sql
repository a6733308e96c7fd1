-- Runs of the matcher. A run reads the rows of records below its watermarks.
CREATE TABLE IF NOT EXISTS match_runs
(
    run_id           String COMMENT 'Run' CODEC(ZSTD),
    tenant_id        LowCardinality(String) COMMENT 'Agency',
    livemode         Bool COMMENT 'false for test accounts',
    account          LowCardinality(String) COMMENT 'Code of the account in the registry',
    today            Date COMMENT 'Local day for which it ran',
    horizon          Date COMMENT 'Earliest local day of a source that still waits for its line; today if none waits',
    rule             UInt32 COMMENT 'Version of the rules',
    watermarks       Map(String, Int64) COMMENT 'Offset by topic/partition: the run read the rows of the records below it' CODEC(ZSTD),
    rows             Int64 COMMENT 'Rows that it read',
    matches          Int64 COMMENT 'New matches',
    proposals        Int64 COMMENT 'New proposals',
    breaks           Int64 COMMENT 'New breaks',
    ended            Int64 COMMENT 'Findings that it ended',
    at               DateTime64(3, 'UTC') COMMENT 'When it wrote its findings, UTC' CODEC(Delta, ZSTD),
    source_partition Int32 COMMENT 'Partition of reconciliation.events',
    source_offset    Int64 COMMENT 'Offset of the record there' CODEC(Delta, ZSTD)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(today)
ORDER BY (tenant_id, account, livemode, today, source_offset)
COMMENT 'Runs of the matcher, with their watermarks'
