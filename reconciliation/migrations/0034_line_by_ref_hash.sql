-- What a run of the matcher finds lines by that have one of a few references.
ALTER TABLE statement_lines
    ADD INDEX IF NOT EXISTS by_ref_hash ref_hashes TYPE bloom_filter(0.001) GRANULARITY 1
