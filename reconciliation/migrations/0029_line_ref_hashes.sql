-- Hashes of the references of a row, by which a run of the matcher looks older rows up. It compares
-- the references of a day, up to a million, with all rows of the history; with the hashes that takes
-- a quarter of the CPU time of the texts (docs/benchmarks.md, "Matching"). Rows of earlier releases
-- have no stored hashes: ClickHouse computes them when it reads the rows, and stores them with the
-- next merge.
ALTER TABLE statement_lines
    ADD COLUMN IF NOT EXISTS ref_hashes Array(UInt64) MATERIALIZED arrayMap(ref -> cityHash64(ref), arrayFilter(ref -> ref != '', [operator_ref, payment_ref, notice_ref, batch])) COMMENT 'cityHash64 of the references of the line that are not empty' CODEC(LZ4)
