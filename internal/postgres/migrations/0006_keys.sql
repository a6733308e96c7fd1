-- API keys end on their own after a rotation, and how often each has read in the
-- current minute.

-- +goose Up
ALTER TABLE api_keys ADD COLUMN ends_at timestamptz; -- null: until it is revoked
DROP TRIGGER api_keys_updated ON api_keys;
-- Not for last_used_at, which changes all the time and which no reader waits for.
CREATE TRIGGER api_keys_updated AFTER UPDATE OF hash, application_id, live, agencies, reads_per_minute, revoked_at, ends_at ON api_keys
    FOR EACH ROW WHEN ((OLD.hash, OLD.application_id, OLD.live, OLD.agencies, OLD.reads_per_minute, OLD.revoked_at, OLD.ends_at)
        IS DISTINCT FROM (NEW.hash, NEW.application_id, NEW.live, NEW.agencies, NEW.reads_per_minute, NEW.revoked_at, NEW.ends_at))
    EXECUTE FUNCTION registry_changed();

-- internal/quota: one row a key, overwritten when a minute begins. Emptying it
-- gives every key a new minute, nothing else.
CREATE TABLE read_quota (
    key_id  uuid PRIMARY KEY, -- api_keys.id
    minute  timestamptz NOT NULL,
    taken   integer NOT NULL, -- reads of the minute that instances have leased
    granted integer NOT NULL  -- of these, the last lease
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE read_quota;
DROP TRIGGER api_keys_updated ON api_keys;
ALTER TABLE api_keys DROP COLUMN ends_at;
CREATE TRIGGER api_keys_updated AFTER UPDATE OF hash, application_id, live, agencies, reads_per_minute, revoked_at ON api_keys
    FOR EACH ROW WHEN ((OLD.hash, OLD.application_id, OLD.live, OLD.agencies, OLD.reads_per_minute, OLD.revoked_at)
        IS DISTINCT FROM (NEW.hash, NEW.application_id, NEW.live, NEW.agencies, NEW.reads_per_minute, NEW.revoked_at))
    EXECUTE FUNCTION registry_changed();
