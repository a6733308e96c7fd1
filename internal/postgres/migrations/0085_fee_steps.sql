-- What the total of due and fee is a multiple of (docs/design/decisions.md § 7). 1 raises nothing.
-- +goose Up
ALTER TABLE fees ADD COLUMN step bigint NOT NULL DEFAULT 1 CHECK (step >= 1);

-- +goose Down
ALTER TABLE fees DROP COLUMN step;
