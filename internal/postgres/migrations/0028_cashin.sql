-- The deprecated cash-in surface (internal/cashin): an application's pair of apiKey and
-- secretKey, and the tokens that it has generated. Both are stored as hashes. Pairs of
-- earlier versions, which served nothing, end: `quittance seed` gives a developer's pair
-- again.

-- +goose Up
ALTER TABLE cashin_access DROP COLUMN api_key_hash, DROP COLUMN secret_sealed;

CREATE TABLE cashin_pairs (
    id             uuid PRIMARY KEY,
    application_id uuid NOT NULL REFERENCES applications,
    live           boolean NOT NULL,
    api_key_hash   bytea NOT NULL UNIQUE CHECK (octet_length(api_key_hash) = 32), -- SHA-256
    secret_hash    bytea NOT NULL CHECK (octet_length(secret_hash) = 32), -- SHA-256
    created_at     timestamptz NOT NULL,
    revoked_at     timestamptz -- also by a rotation
);
CREATE UNIQUE INDEX cashin_pairs_in_force ON cashin_pairs (application_id) WHERE revoked_at IS NULL;
CREATE TRIGGER cashin_pairs_changed AFTER INSERT OR DELETE ON cashin_pairs FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER cashin_pairs_updated AFTER UPDATE ON cashin_pairs FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

CREATE TABLE cashin_tokens (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32), -- SHA-256
    pair_id    uuid NOT NULL REFERENCES cashin_pairs,
    expires_at timestamptz NOT NULL -- by the service's clock
);
CREATE INDEX cashin_tokens_expiry ON cashin_tokens (expires_at);

ALTER TABLE deliveries ADD COLUMN url text; -- of the payment itself; null: the destination has one

-- +goose Down
ALTER TABLE deliveries DROP COLUMN url;
DROP TABLE cashin_tokens, cashin_pairs;
DELETE FROM cashin_access;
ALTER TABLE cashin_access ADD COLUMN api_key_hash bytea NOT NULL UNIQUE, ADD COLUMN secret_sealed bytea NOT NULL;
