-- The events that an integrator is told of, by session, with the bytes that are sent, and the
-- time at which a session was completed, by which integrators filter. Both are derived from
-- checkout.events. The rows are made again from there, as in migration 50, so that earlier
-- sessions have them, too: reads answer 503 until the sink readmodel has reached the end of the
-- topic.

-- +goose Up
TRUNCATE sessions, readmodel_positions;
ALTER TABLE sessions ADD COLUMN completed_at timestamptz; -- null unless the session is completed
CREATE INDEX sessions_completed ON sessions (application_id, livemode, completed_at) WHERE completed_at IS NOT NULL;
CREATE TABLE session_events (
    session_id     text COLLATE "C" NOT NULL,
    sequence       bigint NOT NULL,
    application_id text COLLATE "C" NOT NULL,
    livemode       boolean NOT NULL,
    event_id       text COLLATE "C" NOT NULL,
    event          text NOT NULL,
    occurred_at    timestamptz NOT NULL,
    body           bytea, -- null once the data of the session are erased
    PRIMARY KEY (session_id, sequence)
);
-- For those who listen to the events of test sessions.
CREATE INDEX session_events_test ON session_events (application_id, occurred_at) WHERE NOT livemode;

-- +goose Down
DROP TABLE session_events;
ALTER TABLE sessions DROP COLUMN completed_at;
