-- When rows of earlier records were written again. A process of the matcher keeps in memory what it has
-- read of the history; after such a time it reads that again.
CREATE TABLE IF NOT EXISTS rewrites
(
    what LowCardinality(String) COMMENT 'rebuild or replay, of the sink journal',
    step LowCardinality(String) COMMENT 'begun, ended',
    at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When, UTC, by ClickHouse''s clock'
)
ENGINE = MergeTree
ORDER BY at
COMMENT 'Times at which rows of earlier records were written again'
