-- The matcher refuses what people agreed on when its rows have changed meanwhile, and says why
-- (internal/cases).

-- +goose Up
ALTER TABLE cases ADD COLUMN ended_reason text; -- the code of the refusal; null if it is none

-- +goose Down
ALTER TABLE cases DROP COLUMN ended_reason;
