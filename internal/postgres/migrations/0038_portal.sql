-- Each agency with a citizen portal has one application for the portal's sessions. Nobody has
-- a key for it, so it has no quotas.

-- +goose Up
ALTER TABLE applications
    ADD COLUMN portal          boolean NOT NULL DEFAULT false,
    ADD COLUMN success_origins text[]  NOT NULL DEFAULT '{}', -- to which the portal's citizens may return
    DROP CONSTRAINT applications_creations_per_minute_check,
    DROP CONSTRAINT applications_reads_per_minute_check,
    ADD CONSTRAINT applications_quotas CHECK (portal OR creations_per_minute > 0 AND reads_per_minute > 0),
    ADD CONSTRAINT applications_portal CHECK (NOT (portal AND integrator));
CREATE UNIQUE INDEX applications_one_portal ON applications (agency_id) WHERE portal;

-- +goose Down
DROP INDEX applications_one_portal;
UPDATE applications SET creations_per_minute = 30, reads_per_minute = 600, active = false WHERE portal;
ALTER TABLE applications
    DROP CONSTRAINT applications_portal,
    DROP CONSTRAINT applications_quotas,
    ADD CHECK (creations_per_minute > 0),
    ADD CHECK (reads_per_minute > 0),
    DROP COLUMN portal,
    DROP COLUMN success_origins;
