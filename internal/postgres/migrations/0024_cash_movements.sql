-- The cash that clerks took and gave back, derived from checkout.events like the sessions:
-- a clerk's list of a day, and what the clerk's till must hold. The read model is made again
-- from checkout.events, so that it has the movements of earlier days: reads answer 503 until
-- the sink readmodel has reached the end of the topic.

-- +goose Up
TRUNCATE sessions, readmodel_positions;
CREATE TABLE cash_movements (
    session_id    text COLLATE "C" NOT NULL,
    collection_id text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL, -- taken, returned
    agency_id     text COLLATE "C" NOT NULL,
    livemode      boolean NOT NULL,
    clerk         text COLLATE "C" NOT NULL, -- code of the clerk who took the cash or gave it back
    at            timestamptz NOT NULL,
    day           text COLLATE "C" NOT NULL, -- local date of at
    amount        bigint NOT NULL,           -- total in minor units of XAF, above 0 for both kinds
    payment_ref   text COLLATE "C" NOT NULL,
    notice_refs   text NOT NULL,             -- separated by spaces
    service_label text NOT NULL,
    counter       text NOT NULL,             -- where the cash was taken
    receipt       text NOT NULL,             -- number of the counter's own receipt; may be empty
    PRIMARY KEY (session_id, collection_id, kind)
);
CREATE INDEX cash_movements_clerk ON cash_movements (agency_id, livemode, clerk, day);

-- +goose Down
DROP TABLE cash_movements;
