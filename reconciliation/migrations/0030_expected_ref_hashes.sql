-- As in 0029, for expected money.
ALTER TABLE expected_money
    ADD COLUMN IF NOT EXISTS ref_hashes Array(UInt64) MATERIALIZED arrayMap(ref -> cityHash64(ref), arrayFilter(ref -> ref != '', arrayConcat([operator_ref, payment_ref], notice_refs))) COMMENT 'cityHash64 of the references of the entry that are not empty' CODEC(LZ4)
