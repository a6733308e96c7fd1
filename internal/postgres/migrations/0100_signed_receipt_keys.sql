-- The keys of receipts are signed as the registry is (internal/signed), and a change of one is seen as
-- one of the registry.

-- +goose Up
ALTER TABLE receipt_keys ADD COLUMN signature bytea;
CREATE TRIGGER receipt_keys_changed AFTER INSERT OR DELETE ON receipt_keys FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER receipt_keys_updated AFTER UPDATE ON receipt_keys FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TRIGGER receipt_keys_updated ON receipt_keys;
DROP TRIGGER receipt_keys_changed ON receipt_keys;
ALTER TABLE receipt_keys DROP COLUMN signature;
