-- What whoever answers a call about a payment looks up: the deliveries of a session, and in
-- developer mode when the clock was moved.

-- +goose Up
CREATE INDEX deliveries_session ON deliveries (session_id);

-- How the clock of developer mode was moved. Records in Kafka have the machine's time: with
-- these rows a time of the clock is found among them.
CREATE TABLE developer_clock_moves (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    moved_at  timestamptz NOT NULL, -- by the machine's clock
    before_ms bigint NOT NULL, -- the offset before
    after_ms  bigint NOT NULL
);

-- +goose Down
DROP TABLE developer_clock_moves;
DROP INDEX deliveries_session;
