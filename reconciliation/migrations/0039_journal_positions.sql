-- How far this database has what Kafka's records make. The sink journal begins there: a database that was
-- restored from a backup gets the records after it again. The last row of a partition counts.
CREATE TABLE IF NOT EXISTS journal_positions
(
    topic      LowCardinality(String) COMMENT 'Topic with the prefix of the installation',
    partition  Int32 COMMENT 'Partition of the topic',
    position   Int64 COMMENT 'All records below this offset have their rows in the tables, but those that were set aside',
    goal       Int64 COMMENT 'The highest position that the tables had; higher than position while a restored database is written again',
    written_at DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC') COMMENT 'When, UTC, by ClickHouse''s clock'
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (topic, partition)
COMMENT 'Positions of the sink journal. Read it with FINAL'
