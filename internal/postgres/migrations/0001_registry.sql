-- The registry: who uses the service and how. internal/registry reads and writes it.
-- Secrets that we must present again are sealed (AES-256-GCM, internal/secret),
-- secrets that others present to us are SHA-256. Nothing here is plain.

-- +goose Up
CREATE TABLE registry_revision (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    revision  bigint NOT NULL
);
INSERT INTO registry_revision (revision) VALUES (1);

-- A transaction that changes the registry counts one revision, whatever number
-- of rows it touches, and wakes the readers. They compare revisions, so a lost
-- notification costs a moment only.
-- +goose StatementBegin
CREATE FUNCTION registry_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('quittance.registry_changed', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        PERFORM set_config('quittance.registry_changed', pg_current_xact_id()::text, true);
        UPDATE registry_revision SET revision = revision + 1;
        PERFORM pg_notify('registry', '');
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TABLE platform (
    singleton     boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    embed_origins text[] NOT NULL DEFAULT '{}'
);
INSERT INTO platform DEFAULT VALUES;

CREATE TABLE agencies (
    id              uuid PRIMARY KEY,
    slug            text NOT NULL UNIQUE,
    name            text NOT NULL,
    default_service text, -- services.code; need not be active, then it resolves nothing
    created_at      timestamptz NOT NULL
);

CREATE TABLE services (
    id        uuid PRIMARY KEY,
    agency_id uuid NOT NULL REFERENCES agencies,
    code      text NOT NULL,
    label     text NOT NULL,
    active    boolean NOT NULL,
    UNIQUE (agency_id, code)
);
ALTER TABLE agencies ADD FOREIGN KEY (id, default_service) REFERENCES services (agency_id, code)
    ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE service_mappings (
    agency_id    uuid NOT NULL REFERENCES agencies,
    erp_code     text NOT NULL,
    service_code text NOT NULL,
    PRIMARY KEY (agency_id, erp_code),
    FOREIGN KEY (agency_id, service_code) REFERENCES services (agency_id, code)
        ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED
);

CREATE TABLE fees (
    agency_id uuid NOT NULL REFERENCES agencies,
    channel   text NOT NULL,
    currency  text NOT NULL,
    ratio_ppm bigint NOT NULL CHECK (ratio_ppm BETWEEN 0 AND 1000000),
    fixed     bigint NOT NULL CHECK (fixed >= 0),   -- minor units
    minimum   bigint NOT NULL CHECK (minimum >= 0), -- minor units
    maximum   bigint CHECK (maximum >= minimum),    -- minor units; null: unbounded
    PRIMARY KEY (agency_id, channel, currency)
);

CREATE TABLE erp_settings (
    agency_id        uuid NOT NULL REFERENCES agencies,
    live             boolean NOT NULL,
    base_url         text NOT NULL,
    auth_type        text NOT NULL CHECK (auth_type IN ('bearer', 'api_key', 'basic')),
    auth_name        text NOT NULL DEFAULT '', -- header of an api_key, user name of basic
    auth_sealed      bytea NOT NULL,
    conflict_is_done boolean NOT NULL,
    networks         cidr[] NOT NULL,
    max_in_flight    integer NOT NULL DEFAULT 4 CHECK (max_in_flight > 0),
    PRIMARY KEY (agency_id, live)
);

CREATE TABLE connector_accounts (
    agency_id uuid NOT NULL REFERENCES agencies,
    live      boolean NOT NULL,
    offer     text NOT NULL,
    base_url  text NOT NULL,
    sealed    bytea NOT NULL, -- JSON of what the offer's connector needs besides
    PRIMARY KEY (agency_id, live, offer)
);

CREATE TABLE applications (
    id                   uuid PRIMARY KEY,
    agency_id            uuid NOT NULL REFERENCES agencies,
    name                 text NOT NULL,
    active               boolean NOT NULL,
    integrator           boolean NOT NULL, -- gets the agency's platform-key sessions
    offers               text[] NOT NULL,
    embed_origins        text[] NOT NULL,
    session_lifetime_ms  bigint NOT NULL CHECK (session_lifetime_ms > 0),
    creations_per_minute integer NOT NULL CHECK (creations_per_minute > 0),
    reads_per_minute     integer NOT NULL CHECK (reads_per_minute > 0),
    page_size            integer NOT NULL CHECK (page_size BETWEEN 1 AND 100),
    created_at           timestamptz NOT NULL
);
CREATE UNIQUE INDEX applications_one_integrator ON applications (agency_id) WHERE integrator;

CREATE TABLE cashin_access ( -- deprecated surface
    application_id   uuid PRIMARY KEY REFERENCES applications,
    api_key_hash     bytea NOT NULL UNIQUE, -- SHA-256
    secret_sealed    bytea NOT NULL,
    redirect_origins text[] NOT NULL,
    webhook_url      text NOT NULL DEFAULT '',
    providers        text[] NOT NULL
);

CREATE TABLE api_keys (
    id               uuid PRIMARY KEY,
    hash             bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32), -- SHA-256
    application_id   uuid REFERENCES applications, -- null: platform key
    live             boolean NOT NULL,
    agencies         uuid[] NOT NULL DEFAULT '{}', -- platform keys only: what they are granted
    reads_per_minute integer CHECK (reads_per_minute > 0), -- platform keys only; else the application's
    created_at       timestamptz NOT NULL,
    revoked_at       timestamptz,
    last_used_at     timestamptz
);
CREATE INDEX api_keys_application ON api_keys (application_id);

CREATE TABLE webhook_endpoints (
    id               uuid PRIMARY KEY,
    application_id   uuid REFERENCES applications, -- null: the platform's
    url              text NOT NULL,
    events           text[] NOT NULL,
    modes            text[] NOT NULL CHECK (modes <@ ARRAY['test', 'live']),
    max_in_flight    integer NOT NULL CHECK (max_in_flight > 0),
    created_at       timestamptz NOT NULL,
    suspended_at     timestamptz,
    suspended_reason text,
    UNIQUE NULLS NOT DISTINCT (application_id, url)
);

CREATE TABLE webhook_secrets (
    endpoint_id uuid NOT NULL REFERENCES webhook_endpoints,
    digest      bytea NOT NULL, -- SHA-256: known again after a rotation
    sealed      bytea NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz, -- null: signs until rotated
    PRIMARY KEY (endpoint_id, digest)
);

-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['platform', 'agencies', 'services', 'service_mappings', 'fees', 'erp_settings',
        'connector_accounts', 'applications', 'cashin_access', 'webhook_endpoints', 'webhook_secrets']
    LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER INSERT OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION registry_changed()', name || '_changed', name);
        EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %I FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed()', name || '_updated', name);
    END LOOP;
END $$;
-- +goose StatementEnd
CREATE TRIGGER api_keys_changed AFTER INSERT OR DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION registry_changed();
-- Not for last_used_at, which changes all the time and which no reader waits for.
CREATE TRIGGER api_keys_updated AFTER UPDATE OF hash, application_id, live, agencies, reads_per_minute, revoked_at ON api_keys
    FOR EACH ROW WHEN ((OLD.hash, OLD.application_id, OLD.live, OLD.agencies, OLD.reads_per_minute, OLD.revoked_at)
        IS DISTINCT FROM (NEW.hash, NEW.application_id, NEW.live, NEW.agencies, NEW.reads_per_minute, NEW.revoked_at))
    EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE webhook_secrets, webhook_endpoints, api_keys, cashin_access, applications, connector_accounts,
    erp_settings, fees, service_mappings, services, agencies, platform, registry_revision CASCADE;
DROP FUNCTION registry_changed;
