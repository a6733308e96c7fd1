-- The rows that decide where secrets and money go and whom the service believes are signed
-- (internal/signed). Without a signature of ours a row is not used.

-- +goose Up
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['platform', 'agencies', 'services', 'service_mappings', 'fees', 'erp_settings', 'connector_accounts',
        'replaced_accounts', 'statement_accounts', 'cashin_access', 'applications', 'webhook_secrets', 'webhook_endpoints']
    LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN signature bytea', name);
    END LOOP;
END $$;
-- +goose StatementEnd

-- The number and a digest of the signatures of each table, signed.
CREATE TABLE row_manifest (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    content   bytea NOT NULL, -- JSON
    signature bytea NOT NULL,
    signed_at timestamptz NOT NULL
);
CREATE TRIGGER row_manifest_changed AFTER INSERT OR UPDATE OR DELETE ON row_manifest FOR EACH ROW EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE row_manifest;
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['platform', 'agencies', 'services', 'service_mappings', 'fees', 'erp_settings', 'connector_accounts',
        'replaced_accounts', 'statement_accounts', 'cashin_access', 'applications', 'webhook_secrets', 'webhook_endpoints']
    LOOP
        EXECUTE format('ALTER TABLE %I DROP COLUMN signature', name);
    END LOOP;
END $$;
-- +goose StatementEnd
