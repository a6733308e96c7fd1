-- Which switches of an operator's account are on, by name. They are not sealed with
-- the other fields: what a session may be made of must not depend on a master key.
-- xaf, the first of them, is now the card connector's own.

-- +goose Up
ALTER TABLE connector_accounts ADD COLUMN flags text[] NOT NULL DEFAULT '{}';
UPDATE connector_accounts SET flags = '{xaf}' WHERE xaf;
ALTER TABLE connector_accounts DROP COLUMN xaf;

-- +goose Down
ALTER TABLE connector_accounts ADD COLUMN xaf boolean NOT NULL DEFAULT false CHECK (NOT xaf OR offer = 'card');
UPDATE connector_accounts SET xaf = true WHERE offer = 'card' AND 'xaf' = ANY(flags);
ALTER TABLE connector_accounts DROP COLUMN flags;
