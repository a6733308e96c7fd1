-- Keys of personal data that outlive the greatest age of the others: those of the lines of
-- disbursement batches, which are needed for 13 months after their batch has ended
-- (docs/design/payouts.md). The sweep by age leaves them, and another one deletes them.

-- +goose Up
ALTER TABLE personal_keys ADD COLUMN keep_until timestamptz; -- by the service's clock; NULL: the age counts
DROP INDEX personal_keys_age;
CREATE INDEX personal_keys_age ON personal_keys (created_at) WHERE keep_until IS NULL;
CREATE INDEX personal_keys_keep ON personal_keys (keep_until) WHERE keep_until IS NOT NULL;

-- +goose Down
DROP INDEX personal_keys_age;
ALTER TABLE personal_keys DROP COLUMN keep_until; -- with its index
CREATE INDEX personal_keys_age ON personal_keys (created_at);
