-- Clerks who are signed in to the page of the counter. The cookie names the row; without
-- the row it opens nothing. The rows are workflow, not records: without them clerks sign
-- in again.

-- +goose Up
CREATE TABLE clerk_sessions (
    id           uuid PRIMARY KEY,
    key_id       uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    begun_at     timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL
);
CREATE INDEX clerk_sessions_key ON clerk_sessions (key_id, begun_at);

-- +goose Down
DROP TABLE clerk_sessions;
