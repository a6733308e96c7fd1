-- Messages that may be sent at most once (internal/notify), such as sign-in codes. A row is
-- written before the provider is called, so that a worker that dies in between leaves a trace:
-- nobody sends the message again. Rows are deleted a day later.

-- +goose Up
CREATE TABLE message_sends (
    message_id text COLLATE "C" PRIMARY KEY,
    first_at   timestamptz NOT NULL, -- by the service's clock
    sends      integer NOT NULL,
    refused_at timestamptz           -- the last call was definitely refused; null: accepted, or nobody knows
);
CREATE INDEX message_sends_age ON message_sends (first_at);

-- +goose Down
DROP TABLE message_sends;
