-- Clerks of agencies' counters, who take cash, and their keys. A clerk is known by
-- agency and code: sessions and events name the code for ever.

-- +goose Up
CREATE TABLE clerks (
    agency_id  uuid NOT NULL REFERENCES agencies,
    code       text NOT NULL,
    name       text NOT NULL,
    counter    text NOT NULL, -- the desk or place
    active     boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (agency_id, code)
);

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
CREATE INDEX clerk_keys_clerk ON clerk_keys (agency_id, clerk_code);

CREATE TRIGGER clerks_changed AFTER INSERT OR DELETE ON clerks FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER clerks_updated AFTER UPDATE ON clerks
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();
CREATE TRIGGER clerk_keys_changed AFTER INSERT OR DELETE ON clerk_keys FOR EACH ROW EXECUTE FUNCTION registry_changed();
-- Not for last_used_at, as with api_keys.
CREATE TRIGGER clerk_keys_updated AFTER UPDATE OF hash, agency_id, clerk_code, live, revoked_at ON clerk_keys
    FOR EACH ROW WHEN ((OLD.hash, OLD.agency_id, OLD.clerk_code, OLD.live, OLD.revoked_at)
        IS DISTINCT FROM (NEW.hash, NEW.agency_id, NEW.clerk_code, NEW.live, NEW.revoked_at))
    EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE clerk_keys, clerks;
