-- The words of an agency's ERP for channels that the contract's first edition does not name (docs/erp.md).

-- +goose Up
ALTER TABLE erp_settings ADD COLUMN channels text[] NOT NULL DEFAULT '{}'; -- SWITCH=MOBILE_MONEY

-- +goose Down
ALTER TABLE erp_settings DROP COLUMN channels;
