-- What a run of the matcher finds expected money by.
ALTER TABLE expected_money
    ADD INDEX IF NOT EXISTS by_offset source_offset TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_notice_ref notice_refs TYPE bloom_filter(0.001) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_kind kind TYPE set(4) GRANULARITY 1
