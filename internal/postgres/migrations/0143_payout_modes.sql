-- Which payout account of an agency pays lines of a payment_mode (docs/design/payouts.md). The accounts are rows of
-- connector_accounts.

-- +goose Up
CREATE TABLE payout_modes (
    agency_id uuid NOT NULL REFERENCES agencies,
    live      boolean NOT NULL,
    mode      text NOT NULL, -- payment_mode of lines
    account   text NOT NULL, -- connector_accounts.offer
    signature bytea,
    PRIMARY KEY (agency_id, live, mode)
);
CREATE TRIGGER payout_modes_changed AFTER INSERT OR DELETE ON payout_modes FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER payout_modes_updated AFTER UPDATE ON payout_modes FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE payout_modes;
