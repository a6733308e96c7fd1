-- People and their keys are signed like the other rows that decide (internal/signed). Without a signature
-- of ours a row opens nothing.

-- +goose Up
ALTER TABLE staff ADD COLUMN signature bytea;
ALTER TABLE staff_contacts ADD COLUMN signature bytea;
ALTER TABLE clerks ADD COLUMN signature bytea;
ALTER TABLE api_keys ADD COLUMN signature bytea;
ALTER TABLE cashin_pairs ADD COLUMN signature bytea;

CREATE TRIGGER staff_contacts_changed AFTER INSERT OR DELETE ON staff_contacts FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_contacts_updated AFTER UPDATE ON staff_contacts FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- Every column but last_used_at, which is written often and decides nothing.
DROP TRIGGER api_keys_updated ON api_keys;
CREATE TRIGGER api_keys_updated
    AFTER UPDATE OF id, hash, application_id, clerk_agency_id, clerk_code, staff_id, live, agencies, withdrawn, reads_per_minute, created_at, revoked_at, ends_at, replaces, signature ON api_keys
    FOR EACH ROW WHEN ((OLD.id, OLD.hash, OLD.application_id, OLD.clerk_agency_id, OLD.clerk_code, OLD.staff_id, OLD.live, OLD.agencies, OLD.withdrawn, OLD.reads_per_minute, OLD.created_at, OLD.revoked_at, OLD.ends_at, OLD.replaces, OLD.signature)
        IS DISTINCT FROM (NEW.id, NEW.hash, NEW.application_id, NEW.clerk_agency_id, NEW.clerk_code, NEW.staff_id, NEW.live, NEW.agencies, NEW.withdrawn, NEW.reads_per_minute, NEW.created_at, NEW.revoked_at, NEW.ends_at, NEW.replaces, NEW.signature))
    EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TRIGGER api_keys_updated ON api_keys;
CREATE TRIGGER api_keys_updated AFTER UPDATE OF hash, application_id, live, agencies, reads_per_minute, revoked_at, ends_at ON api_keys
    FOR EACH ROW WHEN ((OLD.hash, OLD.application_id, OLD.live, OLD.agencies, OLD.reads_per_minute, OLD.revoked_at, OLD.ends_at)
        IS DISTINCT FROM (NEW.hash, NEW.application_id, NEW.live, NEW.agencies, NEW.reads_per_minute, NEW.revoked_at, NEW.ends_at))
    EXECUTE FUNCTION registry_changed();
DROP TRIGGER staff_contacts_changed ON staff_contacts;
DROP TRIGGER staff_contacts_updated ON staff_contacts;
ALTER TABLE cashin_pairs DROP COLUMN signature;
ALTER TABLE api_keys DROP COLUMN signature;
ALTER TABLE clerks DROP COLUMN signature;
ALTER TABLE staff_contacts DROP COLUMN signature;
ALTER TABLE staff DROP COLUMN signature;
