-- The rows that open an account of a citizen, or that show an account what is linked to it, are proved by the role that
-- writes them (signed.MAC): a row of somebody else's opens nothing (docs/design/rights.md).

-- +goose Up
ALTER TABLE citizen_sessions ADD COLUMN mac bytea;
ALTER TABLE citizen_passkeys ADD COLUMN mac bytea;
ALTER TABLE citizen_links ADD COLUMN mac bytea;
-- Only of a contact that still links: one that has linked, or was revoked, is proved no more.
ALTER TABLE subject_contacts ADD COLUMN mac bytea;
-- mac_at is the proven_at that the MAC covers, and what decides. An ingress of the release before, which may run for a
-- while after this, moves proven_at alone; the address then counts as proven at the earlier time.
ALTER TABLE citizen_addresses ADD COLUMN mac bytea, ADD COLUMN mac_at timestamptz;
-- Epochs are changed by operators alone. The manifest of rows knows a deleted one.
ALTER TABLE link_code_epochs ADD COLUMN signature bytea;

-- +goose Down
ALTER TABLE link_code_epochs DROP COLUMN signature;
ALTER TABLE citizen_addresses DROP COLUMN mac, DROP COLUMN mac_at;
ALTER TABLE subject_contacts DROP COLUMN mac;
ALTER TABLE citizen_links DROP COLUMN mac;
ALTER TABLE citizen_passkeys DROP COLUMN mac;
ALTER TABLE citizen_sessions DROP COLUMN mac;
