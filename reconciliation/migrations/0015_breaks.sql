-- Breaks and proposals that the matcher found: what a person must clear up or confirm. One row for
-- each record of reconciliation.events: a finding that ends gets another row. So what a reader
-- finds below an offset never changes.
CREATE TABLE IF NOT EXISTS breaks
(
    finding_id       String COMMENT 'Hash of the sorted ids of its rows; the same in each run' CODEC(ZSTD),
    state            LowCardinality(String) COMMENT 'open, or how it ended: superseded, withdrawn, cleared (by a run), resolved (by people)',
    type             LowCardinality(String) COMMENT 'match, proposal, break',
    hop              LowCardinality(String) COMMENT 'receipt: money and a line of its operator; settlement: lines of operators and a line of the bank',
    stage            LowCardinality(String) COMMENT 'Rule that found it: operator_ref, own_ref, batch, amount_day, cut_off_window, none, hand',
    kind             LowCardinality(String) COMMENT 'Of a break: unmatched_line, missing_line, amount, fee, duplicate_line, reversed_line, statement',
    reason           LowCardinality(String) COMMENT 'Of a break, in a few words',
    action           LowCardinality(String) COMMENT 'What it asks of a person: match, decide_approved, refund_request, explain',
    key              String COMMENT 'Reference that both sides have' CODEC(ZSTD),
    day              Date COMMENT 'Latest local day of its rows; of a break the earliest',

    tenant_id        LowCardinality(String) COMMENT 'Agency',
    livemode         Bool COMMENT 'false for test accounts',
    account          LowCardinality(String) COMMENT 'Code of the account in the registry; of a settlement, the bank account',
    currency         LowCardinality(String) COMMENT 'ISO 4217',
    amount           Int64 COMMENT 'Minor units; of a break, the lines less the sources' CODEC(ZSTD),
    sources          Array(String) COMMENT 'Expected money, DAY/entry_id; of a settlement, lines of operators, DAY/line_id' CODEC(ZSTD),
    lines            Array(String) COMMENT 'Lines of the account, DAY/line_id' CODEC(ZSTD),
    not_taken        Array(String) COMMENT 'Rows with the same reference that were no candidates' CODEC(ZSTD),
    part             UInt32 COMMENT 'A finding with very many rows is in several parts, from 1',
    parts            UInt32 COMMENT 'Number of its parts',

    rule             UInt32 COMMENT 'Version of the rules',
    run_id           String COMMENT 'Run that wrote the row' CODEC(ZSTD),
    case_id          String COMMENT 'Operator case in which people agreed' CODEC(ZSTD),
    resolution       LowCardinality(String) COMMENT 'What they agreed on',
    at               DateTime64(3, 'UTC') COMMENT 'When the run wrote it, UTC' CODEC(Delta, ZSTD),

    source_partition Int32 COMMENT 'Partition of reconciliation.events',
    source_offset    Int64 COMMENT 'Offset of the record there. Of several rows of a finding the highest tells its state' CODEC(Delta, ZSTD),

    INDEX by_source sources TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_line lines TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (tenant_id, account, livemode, day, finding_id, source_offset)
COMMENT 'Breaks and proposals, and how they ended. Read the view open_breaks: one is in force while its last row is open'
