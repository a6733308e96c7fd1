-- What a run of the matcher finds lines of statements by.
ALTER TABLE statement_lines
    ADD INDEX IF NOT EXISTS by_offset source_offset TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_notice_ref notice_ref TYPE bloom_filter(0.001) GRANULARITY 1
