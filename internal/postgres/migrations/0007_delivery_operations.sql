-- What operators do to deliveries: suspensions in one place, rates, recoveries,
-- and the confirmations that an ERP still owes us.

-- +goose Up

-- Whether an endpoint is suspended stands with what the schedule knows of it.
INSERT INTO delivery_destinations (kind, destination_id, suspended_at, suspended_reason)
SELECT 'webhook', id::text, suspended_at, coalesce(suspended_reason, 'operator') FROM webhook_endpoints WHERE suspended_at IS NOT NULL
ON CONFLICT (kind, destination_id) DO UPDATE SET
    suspended_at = coalesce(delivery_destinations.suspended_at, excluded.suspended_at),
    suspended_reason = coalesce(delivery_destinations.suspended_reason, excluded.suspended_reason);
ALTER TABLE delivery_destinations ADD COLUMN resumed_at timestamptz; -- a 410 from before says nothing any more
ALTER TABLE webhook_endpoints
    DROP COLUMN suspended_at,
    DROP COLUMN suspended_reason,
    ADD COLUMN max_per_second integer CHECK (max_per_second > 0); -- calls; null: as fast as max_in_flight lets

-- What an operator has asked to be sent again to a destination: the schedule
-- works through it by the cursor, whoever runs it.
CREATE TABLE delivery_recoveries (
    id             uuid PRIMARY KEY,
    kind           text NOT NULL,
    destination_id text NOT NULL,
    since          timestamptz NOT NULL, -- of the events, inclusive
    until          timestamptz NOT NULL, -- exclusive
    per_second     integer NOT NULL CHECK (per_second > 0),
    total          bigint NOT NULL,      -- deliveries to make due when it was asked for
    done           bigint NOT NULL DEFAULT 0,
    cursor_at      timestamptz,          -- of the last delivery that was made due
    cursor_id      text,
    created_at     timestamptz NOT NULL,
    advanced_at    timestamptz,          -- by the machine's clock
    finished_at    timestamptz,
    cancelled      boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX delivery_recoveries_running ON delivery_recoveries (kind, destination_id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_destination ON deliveries (kind, destination_id, occurred_at, delivery_id);

-- Each payment that an ERP is to be told of, from its completion; the read model
-- notes it, the schedule that it was accepted. Either may come first.
CREATE TABLE erp_confirmations (
    transaction_id text PRIMARY KEY,
    session_id     text,        -- null: accepted before the completion was seen here
    tenant_id      text NOT NULL,
    livemode       boolean NOT NULL,
    completed_at   timestamptz,
    accepted_at    timestamptz
);
CREATE INDEX erp_confirmations_owed ON erp_confirmations (completed_at) WHERE accepted_at IS NULL;
INSERT INTO erp_confirmations (transaction_id, session_id, tenant_id, livemode, completed_at)
SELECT transaction_id, id, tenant_id, livemode, ended_at FROM sessions WHERE status = 'completed' AND metadata ->> 'erp_due_ref' <> ''
ON CONFLICT DO NOTHING;
INSERT INTO erp_confirmations (transaction_id, tenant_id, livemode, accepted_at)
SELECT event_id, tenant_id, livemode, last_outcome_at FROM deliveries WHERE kind = 'erp' AND state = 'delivered'
ON CONFLICT (transaction_id) DO UPDATE SET accepted_at = excluded.accepted_at;

-- +goose Down
DROP TABLE erp_confirmations;
DROP INDEX deliveries_destination;
DROP TABLE delivery_recoveries;
ALTER TABLE delivery_destinations DROP COLUMN resumed_at;
ALTER TABLE webhook_endpoints DROP COLUMN max_per_second, ADD COLUMN suspended_at timestamptz, ADD COLUMN suspended_reason text;
UPDATE webhook_endpoints e SET suspended_at = d.suspended_at, suspended_reason = d.suspended_reason
FROM delivery_destinations d WHERE d.kind = 'webhook' AND d.destination_id = e.id::text AND d.suspended_at IS NOT NULL;
