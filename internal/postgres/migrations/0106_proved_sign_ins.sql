-- The rows by which a clerk or a partner is signed in are proved by the instance that writes them
-- (signed.MAC): another holder, or a row of somebody else's, opens nothing.

-- +goose Up
ALTER TABLE clerk_sessions ADD COLUMN mac bytea;
ALTER TABLE clerk_devices ADD COLUMN mac bytea;
ALTER TABLE cashin_tokens ADD COLUMN mac bytea;

-- +goose Down
ALTER TABLE cashin_tokens DROP COLUMN mac;
ALTER TABLE clerk_devices DROP COLUMN mac;
ALTER TABLE clerk_sessions DROP COLUMN mac;
