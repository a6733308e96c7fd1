-- Requests to pay on a phone count apart by how sure it is that the phone is the payer's (quota.Share). Those
-- that an earlier release counts are of somebody who typed the number.
-- +goose Up
ALTER TABLE payment_prompts ADD COLUMN share text NOT NULL DEFAULT 'typed';

-- +goose Down
ALTER TABLE payment_prompts DROP COLUMN share;
