-- What citizens see of an agency beside its name. The logo is a PNG that the service has
-- made itself (internal/registry/file, logo.go).

-- +goose Up
ALTER TABLE agencies
    ADD COLUMN logo bytea CHECK (octet_length(logo) BETWEEN 1 AND 2048), -- null: none
    ADD COLUMN address text NOT NULL DEFAULT '',
    ADD COLUMN contact_phone text NOT NULL DEFAULT '',
    ADD COLUMN contact_email text NOT NULL DEFAULT '',
    ADD COLUMN contact_hours text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE agencies DROP COLUMN logo, DROP COLUMN address, DROP COLUMN contact_phone, DROP COLUMN contact_email, DROP COLUMN contact_hours;
