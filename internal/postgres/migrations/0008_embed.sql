-- The embedded page knows the holder of a session's client_secret by its SHA-256,
-- which events carry from now on. Sessions of before are opened by nobody.

-- +goose Up
ALTER TABLE sessions ADD COLUMN client_secret_hash bytea;

-- +goose Down
ALTER TABLE sessions DROP COLUMN client_secret_hash;
