-- The signature of a closed period (docs/design/reconciliation.md, "Signed closes").
ALTER TABLE closes
    ADD COLUMN IF NOT EXISTS signature String COMMENT 'Ed25519 signature (RFC 8032) of the statement of the close, base64; empty for a refused close and for those of earlier releases' CODEC(ZSTD),
    ADD COLUMN IF NOT EXISTS signed_with LowCardinality(String) COMMENT 'Id of the key of the signature, as periods keys prints it'
