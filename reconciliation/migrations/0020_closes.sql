-- Closed periods of accounts. Open at the start, plus new, less matched and resolved, is open at the
-- end, on both sides.
CREATE TABLE IF NOT EXISTS closes
(
    close_id                 String COMMENT 'Hash of the account, the days and the case' CODEC(ZSTD),
    tenant_id                LowCardinality(String) COMMENT 'Agency',
    livemode                 Bool COMMENT 'false for test accounts',
    account                  LowCardinality(String) COMMENT 'Code of the account in the registry',
    from_day                 Date COMMENT 'First local day',
    to_day                   Date COMMENT 'Last local day',
    state                    LowCardinality(String) COMMENT 'closed, refused (what people had approved had changed)',
    reason                   String COMMENT 'Why it was refused' CODEC(ZSTD),
    case_id                  String COMMENT 'Operator case in which people agreed; see the view cases' CODEC(ZSTD),
    digest                   String COMMENT 'SHA-256 of what people approved' CODEC(ZSTD),
    previous                 String COMMENT 'Digest of the close before; empty for the first' CODEC(ZSTD),
    rule                     UInt32 COMMENT 'Version of the rules',
    watermarks               Map(String, Int64) COMMENT 'Offset by topic/partition: the close counts the rows of the records below it' CODEC(ZSTD),
    statements               Array(String) COMMENT 'Id, page and digest of each statement with days of the period' CODEC(ZSTD),
    currency                 LowCardinality(String) COMMENT 'ISO 4217',
    sources_start            Int64 COMMENT 'Expected money, or lines that settle to a bank account. Open when the period began',
    sources_start_amount     Int64 COMMENT 'Their sum, minor units',
    sources_new              Int64 COMMENT 'Expected money, or lines that settle to a bank account. Came to be known since the last close',
    sources_new_amount       Int64 COMMENT 'Their sum, minor units',
    sources_matched          Int64 COMMENT 'Expected money, or lines that settle to a bank account. Matched since, those of matches that do not hold any more subtracted',
    sources_matched_amount   Int64 COMMENT 'Their sum, minor units',
    sources_resolved         Int64 COMMENT 'Expected money, or lines that settle to a bank account. Explained or written off by people',
    sources_resolved_amount  Int64 COMMENT 'Their sum, minor units',
    sources_end              Int64 COMMENT 'Expected money, or lines that settle to a bank account. Open when the period ended',
    sources_end_amount       Int64 COMMENT 'Their sum, minor units',
    lines_start              Int64 COMMENT 'Lines of statements. Open when the period began',
    lines_start_amount       Int64 COMMENT 'Their sum, minor units',
    lines_new                Int64 COMMENT 'Lines of statements. Came to be known since the last close',
    lines_new_amount         Int64 COMMENT 'Their sum, minor units',
    lines_matched            Int64 COMMENT 'Lines of statements. Matched since, those of matches that do not hold any more subtracted',
    lines_matched_amount     Int64 COMMENT 'Their sum, minor units',
    lines_resolved           Int64 COMMENT 'Lines of statements. Explained or written off by people',
    lines_resolved_amount    Int64 COMMENT 'Their sum, minor units',
    lines_end                Int64 COMMENT 'Lines of statements. Open when the period ended',
    lines_end_amount         Int64 COMMENT 'Their sum, minor units',
    open_breaks              Int64 COMMENT 'Open breaks of days until the end',
    open_breaks_amount       Int64 COMMENT 'Sum of their differences, minor units',
    open_breaks_digest       String COMMENT 'SHA-256 of their sorted ids' CODEC(ZSTD),
    corrections              Int64 COMMENT 'Matches and explanations of earlier closes that do not hold any more',
    at                       DateTime64(3, 'UTC') COMMENT 'When the matcher wrote it, UTC' CODEC(Delta, ZSTD),
    source_partition         Int32 COMMENT 'Partition of reconciliation.events',
    source_offset            Int64 COMMENT 'Offset of the record there. Findings of the days until to_day with a lower one never change' CODEC(Delta, ZSTD)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYear(to_day)
ORDER BY (tenant_id, account, livemode, to_day, source_offset)
COMMENT 'Closed periods of accounts, and closes that were refused'
