-- Dues of a completed session whose money was given back while others stayed paid, with their times
-- (internal/sessions). Null unless there are such dues. Earlier releases had none.
-- +goose Up
ALTER TABLE sessions ADD COLUMN returned text[], ADD COLUMN returned_at timestamptz[];
CREATE INDEX sessions_partly_reversed ON sessions (livemode, paid_at) WHERE returned IS NOT NULL;

-- +goose Down
ALTER TABLE sessions DROP COLUMN returned, DROP COLUMN returned_at;
