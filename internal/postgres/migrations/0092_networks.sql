-- +goose Up

-- The wide networks of a client, for the limits: docs/design/limits.md. Null in older rows.
ALTER TABLE sign_in_requests ADD COLUMN site text, ADD COLUMN provider text;
CREATE INDEX sign_in_requests_site ON sign_in_requests (site, at);
CREATE INDEX sign_in_requests_provider ON sign_in_requests (provider, at);
-- Codes that were entered raise the limits of their networks.
CREATE INDEX sign_in_requests_client_entered ON sign_in_requests (client, at) WHERE entered;
CREATE INDEX sign_in_requests_site_entered ON sign_in_requests (site, at) WHERE entered;
CREATE INDEX sign_in_requests_provider_entered ON sign_in_requests (provider, at) WHERE entered;

-- Keyed hashes of the networks from which a prompt was sent. Null in older rows.
ALTER TABLE payment_prompts ADD COLUMN client bytea, ADD COLUMN site bytea, ADD COLUMN provider bytea;
CREATE INDEX payment_prompts_client ON payment_prompts (client, at);
CREATE INDEX payment_prompts_site ON payment_prompts (site, at);
CREATE INDEX payment_prompts_provider ON payment_prompts (provider, at);

-- +goose Down
ALTER TABLE payment_prompts DROP COLUMN client, DROP COLUMN site, DROP COLUMN provider;
DROP INDEX sign_in_requests_client_entered;
ALTER TABLE sign_in_requests DROP COLUMN site, DROP COLUMN provider;
