ALTER TABLE journal ADD COLUMN IF NOT EXISTS account LowCardinality(String) COMMENT 'Fingerprint of the merchant account that was asked; of cash, the counter' AFTER collection_id
