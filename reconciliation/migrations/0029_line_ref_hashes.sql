-- What a run of the matcher looks older rows up by: hashes of the references of a row. A million
-- new references are compared with every older row. A number is compared ten times as fast as a
-- text. Rows of earlier releases have no stored hashes: they are computed when they are read, and
-- stored with the next merge.
ALTER TABLE statement_lines
    ADD COLUMN IF NOT EXISTS ref_hashes Array(UInt64) MATERIALIZED arrayMap(ref -> cityHash64(ref), arrayFilter(ref -> ref != '', [operator_ref, payment_ref, notice_ref, batch])) COMMENT 'cityHash64 of the references of the line that are not empty' CODEC(LZ4)
