-- As in 0034, for expected money.
ALTER TABLE expected_money
    ADD INDEX IF NOT EXISTS by_ref_hash ref_hashes TYPE bloom_filter(0.001) GRANULARITY 1
