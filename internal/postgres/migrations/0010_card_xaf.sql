-- Whether an agency's acquirer takes XAF, which is not in the contract's list of
-- card currencies. Not sealed with the credentials: what a session may be made of
-- must not depend on a master key.

-- +goose Up
ALTER TABLE connector_accounts ADD COLUMN xaf boolean NOT NULL DEFAULT false CHECK (NOT xaf OR offer = 'card');

-- +goose Down
ALTER TABLE connector_accounts DROP COLUMN xaf;
