-- The agencies of a platform key are withdrawn from all keys of its rotation, and a
-- registry file does not grant a withdrawn agency again.

-- +goose Up
ALTER TABLE api_keys
    ADD COLUMN replaces  uuid REFERENCES api_keys,     -- the key from which it was rotated
    ADD COLUMN withdrawn uuid[] NOT NULL DEFAULT '{}'; -- agencies that an operator has withdrawn from a platform key
UPDATE api_keys k SET replaces = old.id
FROM audit a JOIN api_keys old ON old.id::text = a.subject
WHERE a.action = 'key.rotate' AND a.detail ->> 'new_key' = k.id::text;

-- +goose Down
ALTER TABLE api_keys DROP COLUMN replaces, DROP COLUMN withdrawn;
