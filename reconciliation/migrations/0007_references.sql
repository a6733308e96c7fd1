-- A call about a payment begins with the operator's reference, or with the one that the
-- operator was told.
ALTER TABLE journal
    ADD INDEX IF NOT EXISTS by_operator_ref operator_ref TYPE bloom_filter GRANULARITY 4,
    ADD INDEX IF NOT EXISTS by_collection collection_id TYPE bloom_filter GRANULARITY 4
