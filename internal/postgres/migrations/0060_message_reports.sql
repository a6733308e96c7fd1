-- What providers report of messages (internal/notify). A row is written before the provider is
-- called, because a report may come before its answer. The state goes from sent or unknown to
-- undelivered and from there to delivered, never back. Rows are deleted 60 days after the last
-- call, as the rows of deliveries are.

-- +goose Up
CREATE TABLE message_reports (
    message_id     text COLLATE "C" PRIMARY KEY,
    destination_id text COLLATE "C" NOT NULL, -- a keyed hash of the address
    provider       text NOT NULL,             -- of the last call
    calls          integer NOT NULL,          -- that the provider has not definitely refused
    sent_at        timestamptz NOT NULL,      -- of the last call, by the service's clock
    accepted_at    timestamptz,               -- the provider's answer; null: refused, or nobody knows
    state          text NOT NULL DEFAULT 'sent' CHECK (state IN ('sent', 'unknown', 'undelivered', 'delivered')),
    reason         text,                      -- the provider's code
    reported_at    timestamptz,               -- of the report that has set the state
    counted        boolean NOT NULL DEFAULT false, -- at message_addresses, as reaching nobody
    CHECK ((state IN ('undelivered', 'delivered')) = (reported_at IS NOT NULL)),
    CHECK (reason IS NULL OR state = 'undelivered')
);
CREATE INDEX message_reports_awaited ON message_reports (sent_at) WHERE state = 'sent';
CREATE INDEX message_reports_age ON message_reports (sent_at);

-- +goose Down
DROP TABLE message_reports;
