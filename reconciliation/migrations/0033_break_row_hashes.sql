-- As in 0032, for breaks and proposals.
ALTER TABLE breaks
    ADD COLUMN IF NOT EXISTS row_hashes Array(UInt64) MATERIALIZED arrayMap(id -> cityHash64(id), arrayConcat(sources, lines)) COMMENT 'cityHash64 of the ids of its sources and lines' CODEC(LZ4),
    ADD INDEX IF NOT EXISTS by_row_hash row_hashes TYPE bloom_filter(0.001) GRANULARITY 1
