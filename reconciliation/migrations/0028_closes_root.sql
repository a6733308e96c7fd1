-- The root over the chain rows of a closed period, and what is needed to compute it again from Kafka.
ALTER TABLE closes
    ADD COLUMN IF NOT EXISTS chain_version UInt32 COMMENT 'Version of the canonical form of the chain rows; 0 for a close without a root',
    ADD COLUMN IF NOT EXISTS chain_rows Int64 COMMENT 'Number of chain rows',
    ADD COLUMN IF NOT EXISTS chain_root String COMMENT 'Root of the Merkle tree over the chain rows (RFC 6962), hexadecimal' CODEC(ZSTD),
    ADD COLUMN IF NOT EXISTS money_of Array(String) COMMENT 'Whose money arrives on the account: agency/currency/offer/merchant account or counter' CODEC(ZSTD),
    ADD COLUMN IF NOT EXISTS settling Array(String) COMMENT 'Accounts that settle to this one' CODEC(ZSTD),
    MODIFY COLUMN previous COMMENT 'Hash of the close before, over its digest and its root; empty for the first'
