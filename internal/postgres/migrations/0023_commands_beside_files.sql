-- Applications, embed origins and webhook endpoints are also changed by commands. A
-- registry file leaves what a command has set (internal/registry/DESIGN.md). A removed
-- endpoint keeps its row, because deliveries name it.

-- +goose Up
ALTER TABLE applications
    ADD COLUMN set_by_command     text[] NOT NULL DEFAULT '{}', -- names of fields
    ADD COLUMN origins_by_command text[] NOT NULL DEFAULT '{}'; -- embed origins that a command added or removed
ALTER TABLE platform
    ADD COLUMN origins_by_command text[] NOT NULL DEFAULT '{}';
ALTER TABLE webhook_endpoints
    ADD COLUMN set_by_command     text[] NOT NULL DEFAULT '{}', -- names of fields
    ADD COLUMN removed_at         timestamptz;                  -- nothing is sent to it from then on

-- +goose Down
ALTER TABLE webhook_endpoints DROP COLUMN set_by_command, DROP COLUMN removed_at;
ALTER TABLE platform DROP COLUMN origins_by_command;
ALTER TABLE applications DROP COLUMN set_by_command, DROP COLUMN origins_by_command;
