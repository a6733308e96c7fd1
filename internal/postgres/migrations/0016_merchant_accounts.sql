-- Replaced merchant accounts stay known for enquiries about the collections that name
-- them. Their sealed fields are bound to agency, mode and offer as before.
--
-- callback_networks are the networks from which the operator itself reports.

-- +goose Up
ALTER TABLE connector_accounts ADD COLUMN callback_networks cidr[] NOT NULL DEFAULT '{}';

CREATE TABLE replaced_accounts (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agency_id         uuid NOT NULL REFERENCES agencies,
    live              boolean NOT NULL,
    offer             text NOT NULL,
    base_url          text NOT NULL,
    sealed            bytea NOT NULL,
    flags             text[] NOT NULL,
    callback_networks cidr[] NOT NULL,
    replaced_at       timestamptz NOT NULL
);
CREATE TRIGGER replaced_accounts_changed AFTER INSERT OR DELETE ON replaced_accounts FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER replaced_accounts_updated AFTER UPDATE ON replaced_accounts FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE replaced_accounts;
ALTER TABLE connector_accounts DROP COLUMN callback_networks;
