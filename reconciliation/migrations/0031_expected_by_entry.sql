-- What a run of the matcher reads single entries of older days by. Without it, one entry of each day
-- costs the reading of all days. Rows of earlier releases get it with their next merge.
ALTER TABLE expected_money
    ADD INDEX IF NOT EXISTS by_entry entry_id TYPE bloom_filter(0.001) GRANULARITY 1
