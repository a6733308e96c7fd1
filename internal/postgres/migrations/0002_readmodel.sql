-- The read model of sessions: derived from checkout.events by sinks/readmodel and
-- rebuilt from there when these tables are emptied. internal/sessions reads it.
-- Nothing is checked here: the record has decided.

-- +goose Up
CREATE TABLE sessions (
    id                 text COLLATE "C" PRIMARY KEY, -- sorts by time, bytewise
    application_id     text COLLATE "C" NOT NULL,
    tenant_id          text COLLATE "C" NOT NULL,
    livemode           boolean NOT NULL,
    platform           boolean NOT NULL,
    order_id           text COLLATE "C" NOT NULL,
    amount             bigint NOT NULL, -- minor units, without fees
    currency           text NOT NULL,
    mode               text NOT NULL,
    service_code       text,
    service_label      text,
    description        text,
    note               text,
    customer_id        text COLLATE "C",
    metadata           jsonb NOT NULL,
    success_url        text,
    cancel_url         text,
    payment_ref        text COLLATE "C" NOT NULL,
    notice_id          text NOT NULL,
    notice_ref         text NOT NULL,
    transaction_id     text NOT NULL,
    offers             jsonb NOT NULL,
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL,
    ended_at           timestamptz,
    status             text COLLATE "C" NOT NULL,
    sequence           bigint NOT NULL, -- of the last event applied
    collection         jsonb,
    failure_code       text,
    failure_message    text
);
CREATE INDEX sessions_list ON sessions (application_id, livemode, id DESC);
CREATE INDEX sessions_order ON sessions (application_id, livemode, order_id, id DESC);
CREATE INDEX sessions_status ON sessions (application_id, livemode, status, id DESC);
CREATE INDEX sessions_customer ON sessions (application_id, livemode, customer_id, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX sessions_payment_ref ON sessions (payment_ref);

CREATE TABLE readmodel_positions (
    topic     text NOT NULL,
    partition integer NOT NULL,
    next      bigint NOT NULL, -- offset to read next; control records count
    PRIMARY KEY (topic, partition)
);

-- +goose Down
DROP TABLE readmodel_positions, sessions;
