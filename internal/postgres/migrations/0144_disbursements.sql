-- The read model of disbursement batches, written by `sink readmodel` from disbursement.events. Nothing is decided by these
-- rows: the processor has its own state, and whoever pays verifies what approvers signed.

-- +goose Up
CREATE TABLE disbursement_batches (
    id          text PRIMARY KEY,
    tenant_id   text NOT NULL,
    livemode    boolean NOT NULL,
    batch_ref   text NOT NULL,
    revision    integer NOT NULL,
    status      text NOT NULL,
    held        boolean NOT NULL,
    opened_at   timestamptz NOT NULL,
    -- Number of the last event of the batch that is applied.
    sequence    bigint NOT NULL,
    -- The batch as that event has it, and what approvers sign with the approvals (schemas/avro/batch.avsc).
    snapshot    bytea NOT NULL,
    sealing     bytea
);
CREATE INDEX ON disbursement_batches (tenant_id, livemode, id);
CREATE INDEX ON disbursement_batches (tenant_id, livemode, batch_ref, revision);

CREATE TABLE disbursement_lines (
    batch     text NOT NULL,
    position  integer NOT NULL,
    line_ref  text NOT NULL,
    status    text NOT NULL,
    -- Kind of the open case; empty for none.
    case_kind text NOT NULL,
    sequence  bigint NOT NULL,
    snapshot  bytea NOT NULL,
    -- The content, sealed with the data key of the line (personal_keys).
    sealed    bytea NOT NULL,
    PRIMARY KEY (batch, position)
);
CREATE INDEX ON disbursement_lines (batch, status, position);
CREATE INDEX ON disbursement_lines (batch, position) WHERE case_kind <> '';

-- What happened to a batch, one row an event.
CREATE TABLE disbursement_steps (
    batch        text NOT NULL,
    sequence     bigint NOT NULL,
    type         text NOT NULL,
    at           timestamptz NOT NULL,
    lines        integer NOT NULL,
    detail       jsonb NOT NULL,
    partition    integer NOT NULL,
    "offset"     bigint NOT NULL,
    PRIMARY KEY (batch, sequence)
);

-- The last state of an agency in a mode, and of its roster in both.
CREATE TABLE disbursement_agencies (
    tenant_id text NOT NULL,
    -- live, test, or roster for the people of both.
    part      text NOT NULL CHECK (part IN ('live', 'test', 'roster')),
    -- Of the event in disbursement.events; an agency has one partition.
    "offset"  bigint NOT NULL,
    snapshot  bytea NOT NULL,
    PRIMARY KEY (tenant_id, part)
);

CREATE TABLE disbursement_positions (
    topic     text NOT NULL,
    partition integer NOT NULL,
    next      bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);

-- +goose Down
DROP TABLE disbursement_positions, disbursement_agencies, disbursement_steps, disbursement_lines, disbursement_batches;
