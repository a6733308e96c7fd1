-- The dues that expected money pays, for the chain rows of a close.
ALTER TABLE expected_money
    ADD COLUMN IF NOT EXISTS due_refs Array(String) COMMENT 'References of the dues in the ERP, in the order of the session; an element is empty for a due of no ERP' CODEC(ZSTD) AFTER fee,
    ADD COLUMN IF NOT EXISTS transaction_ids Array(String) COMMENT 'Their transactions' CODEC(ZSTD) AFTER due_refs,
    ADD COLUMN IF NOT EXISTS amounts Array(Int64) COMMENT 'Their amounts without fees, minor units; negative in given_back' CODEC(ZSTD) AFTER transaction_ids
