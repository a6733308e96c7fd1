-- What proves the reports of an account's operator, sealed apart from the secrets of calls, so that the
-- ingress needs no key of those. Empty until `quittance secrets reseal` or a registry file writes it.
-- +goose Up
ALTER TABLE connector_accounts ADD COLUMN reports_sealed bytea NOT NULL DEFAULT '';
ALTER TABLE replaced_accounts ADD COLUMN reports_sealed bytea NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE connector_accounts DROP COLUMN reports_sealed;
ALTER TABLE replaced_accounts DROP COLUMN reports_sealed;
