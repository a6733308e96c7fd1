-- What an agency writes on its receipts; empty: the default.

-- +goose Up
ALTER TABLE agencies
    ADD COLUMN receipt_title text NOT NULL DEFAULT '',
    ADD COLUMN receipt_mention text NOT NULL DEFAULT '',
    ADD COLUMN receipt_accountant text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE agencies DROP COLUMN receipt_title, DROP COLUMN receipt_mention, DROP COLUMN receipt_accountant;
