-- Who still calls the deprecated cash-in surface (internal/cashin), and which of its
-- payments were given back: their check-status stays completed and no call tells the
-- partner, so that the agency must.

-- +goose Up
CREATE TABLE cashin_usage (
    application_id uuid NOT NULL,
    live           boolean NOT NULL,
    day            date NOT NULL, -- local
    route          text COLLATE "C" NOT NULL, -- path below the prefix
    calls          bigint NOT NULL,
    refused        bigint NOT NULL, -- answered 4xx
    failed         bigint NOT NULL, -- answered 5xx
    first_at       timestamptz NOT NULL,
    last_at        timestamptz NOT NULL,
    PRIMARY KEY (application_id, live, day, route)
);

-- Derived from checkout.events like the sessions.
CREATE TABLE cashin_reversals (
    session_id      text COLLATE "C" PRIMARY KEY,
    application_id  text COLLATE "C" NOT NULL,
    livemode        boolean NOT NULL,
    number          text NOT NULL,
    external_number text NOT NULL,
    amount          bigint NOT NULL, -- due in minor units of XAF
    reason          text NOT NULL,
    reversed_at     timestamptz NOT NULL
);
CREATE INDEX cashin_reversals_time ON cashin_reversals (reversed_at);

-- +goose Down
DROP TABLE cashin_reversals, cashin_usage;
