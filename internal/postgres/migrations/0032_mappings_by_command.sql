-- What a command has decided about an agency's catalogue mapping stays when a registry file
-- says otherwise (internal/registry/DESIGN.md).

-- +goose Up
ALTER TABLE agencies
    ADD COLUMN set_by_command      text[] NOT NULL DEFAULT '{}', -- names of fields
    ADD COLUMN mappings_by_command text[] NOT NULL DEFAULT '{}'; -- ERP codes whose mapping a command set or removed

-- +goose Down
ALTER TABLE agencies DROP COLUMN set_by_command, DROP COLUMN mappings_by_command;
