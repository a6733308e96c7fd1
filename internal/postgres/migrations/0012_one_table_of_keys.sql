-- The keys of clerks lie beside those of applications and of the platform: all
-- are made, revoked and rotated in one way (internal/identity).

-- +goose Up
ALTER TABLE api_keys
    ADD COLUMN clerk_agency_id uuid, -- with clerk_code; null: not a clerk's key
    ADD COLUMN clerk_code text,
    ADD FOREIGN KEY (clerk_agency_id, clerk_code) REFERENCES clerks,
    ADD CHECK ((clerk_agency_id IS NULL) = (clerk_code IS NULL)),
    ADD CHECK (num_nonnulls(application_id, clerk_code) <= 1); -- none: a platform key
INSERT INTO api_keys (id, hash, clerk_agency_id, clerk_code, live, created_at, revoked_at, last_used_at)
SELECT id, hash, agency_id, clerk_code, live, created_at, revoked_at, last_used_at FROM clerk_keys;
DROP TABLE clerk_keys;
CREATE INDEX api_keys_clerk ON api_keys (clerk_agency_id, clerk_code);

-- +goose Down
CREATE TABLE clerk_keys (
    id           uuid PRIMARY KEY,
    hash         bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32), -- SHA-256
    agency_id    uuid NOT NULL,
    clerk_code   text NOT NULL,
    live         boolean NOT NULL,
    created_at   timestamptz NOT NULL,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    FOREIGN KEY (agency_id, clerk_code) REFERENCES clerks
);
INSERT INTO clerk_keys SELECT id, hash, clerk_agency_id, clerk_code, live, created_at, revoked_at, last_used_at
FROM api_keys WHERE clerk_code IS NOT NULL;
DELETE FROM api_keys WHERE clerk_code IS NOT NULL;
ALTER TABLE api_keys DROP COLUMN clerk_agency_id, DROP COLUMN clerk_code;
CREATE INDEX clerk_keys_clerk ON clerk_keys (agency_id, clerk_code);
CREATE TRIGGER clerk_keys_changed AFTER INSERT OR DELETE ON clerk_keys FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER clerk_keys_updated AFTER UPDATE OF hash, agency_id, clerk_code, live, revoked_at ON clerk_keys
    FOR EACH ROW WHEN ((OLD.hash, OLD.agency_id, OLD.clerk_code, OLD.live, OLD.revoked_at)
        IS DISTINCT FROM (NEW.hash, NEW.agency_id, NEW.clerk_code, NEW.live, NEW.revoked_at))
    EXECUTE FUNCTION registry_changed();
