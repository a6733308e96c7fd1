-- The schedule of deliveries (package sinks/schedule): derived from
-- deliveries.attempts, except for what operators set.

-- +goose Up

-- Where deliveries go, as the schedule sees it: what holds a destination back is
-- a column here, so that its waiting rows need not be touched.
CREATE TABLE delivery_destinations (
    kind             text NOT NULL,
    destination_id   text NOT NULL,
    next_due_at      timestamptz, -- when to look for due deliveries; null: none waits
    hold_until       timestamptz, -- nothing is sent until then (breaker); in the past: one at a time until a success
    failing_since    timestamptz, -- first failure after the last success
    suspended_at     timestamptz, -- nothing is sent until it is resumed
    suspended_reason text,
    PRIMARY KEY (kind, destination_id)
);
CREATE INDEX delivery_destinations_due ON delivery_destinations (next_due_at) WHERE next_due_at IS NOT NULL AND suspended_at IS NULL;
CREATE INDEX delivery_destinations_suspended ON delivery_destinations (kind) WHERE suspended_at IS NOT NULL;

-- One row per delivery with an outcome, by the UTC day of its event, so that old
-- days go by dropping a table.
CREATE TABLE deliveries (
    occurred_on      date NOT NULL,
    delivery_id      text NOT NULL,
    kind             text NOT NULL,
    destination_id   text NOT NULL,
    event_id         text NOT NULL,
    event            text NOT NULL,
    application_id   text NOT NULL,
    tenant_id        text NOT NULL,
    session_id       text NOT NULL,
    livemode         boolean NOT NULL,
    occurred_at      timestamptz NOT NULL,
    state            text NOT NULL CHECK (state IN ('waiting', 'queued', 'delivered', 'needs_operator', 'exhausted')),
    attempts         integer NOT NULL, -- calls made
    round            integer NOT NULL, -- times the schedule put it on the topic; an outcome of an earlier round decides nothing
    first_attempt_at timestamptz,
    last_outcome_at  timestamptz NOT NULL,
    next_attempt_at  timestamptz,      -- while waiting
    lease_until      timestamptz,      -- while queued, by the machine's clock: put on the topic again after it
    http_status      integer,
    reason           text,
    body             bytea,            -- the bytes to send, until delivered or exhausted
    PRIMARY KEY (occurred_on, delivery_id)
) PARTITION BY RANGE (occurred_on);
CREATE INDEX deliveries_waiting ON deliveries (kind, destination_id, next_attempt_at) WHERE state = 'waiting';
CREATE INDEX deliveries_queued ON deliveries (kind, destination_id, lease_until) WHERE state = 'queued';
CREATE INDEX deliveries_parked ON deliveries (kind, destination_id, last_outcome_at) WHERE state IN ('needs_operator', 'exhausted');
CREATE INDEX deliveries_event ON deliveries (event_id);

-- Every call that was made, beside its delivery's day.
CREATE TABLE delivery_attempts (
    occurred_on  date NOT NULL,
    delivery_id  text NOT NULL,
    attempt      integer NOT NULL,
    at           timestamptz NOT NULL,
    outcome      text NOT NULL,
    duration_ms  bigint NOT NULL,
    http_status  integer,
    reason       text,
    answer       text -- its first 1 KiB
) PARTITION BY RANGE (occurred_on);
CREATE INDEX delivery_attempts_delivery ON delivery_attempts (delivery_id);

-- How far each partition of deliveries.attempts is applied, written with it.
CREATE TABLE delivery_positions (
    topic       text NOT NULL,
    partition   integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);

-- +goose Down

DROP TABLE delivery_positions;
DROP TABLE delivery_attempts;
DROP TABLE deliveries;
DROP TABLE delivery_destinations;
