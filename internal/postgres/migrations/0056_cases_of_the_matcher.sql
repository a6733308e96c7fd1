-- Breaks and proposals of the matcher are cases (internal/cases). It may end them without people.

-- +goose Up
ALTER TABLE cases
    ADD COLUMN ended_as text, -- null while the finding is open, and for other cases
    ADD COLUMN ended_at timestamptz;
CREATE INDEX cases_ended ON cases (ended_at, id) WHERE ended_at IS NOT NULL AND resolution IS NULL;

-- +goose Down
ALTER TABLE cases DROP COLUMN ended_as, DROP COLUMN ended_at;
