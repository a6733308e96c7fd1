-- Tills: the cash of a clerk from an opening to a closing, its count, and the sign-off by a
-- second clerk. They are records: nothing rebuilds them.

-- +goose Up
CREATE TABLE tills (
    id             uuid PRIMARY KEY,
    agency_id      uuid NOT NULL,
    clerk_code     text NOT NULL,
    livemode       boolean NOT NULL,
    number         bigint NOT NULL,  -- of the clerk in the mode, from 1
    counter        text NOT NULL,
    opened_at      timestamptz NOT NULL,
    opening        bigint NOT NULL CHECK (opening >= 0), -- cash in the till when it opened; amounts are minor units of XAF
    closed_at      timestamptz,      -- null: open
    taken_count    bigint NOT NULL DEFAULT 0,
    taken          bigint NOT NULL DEFAULT 0,
    returned_count bigint NOT NULL DEFAULT 0,
    returned       bigint NOT NULL DEFAULT 0,
    counted        bigint CHECK (counted >= 0),
    note           text NOT NULL DEFAULT '', -- why the count differs
    signed_by      text,
    signed_at      timestamptz,
    FOREIGN KEY (agency_id, clerk_code) REFERENCES clerks,
    FOREIGN KEY (agency_id, signed_by) REFERENCES clerks,
    UNIQUE (agency_id, clerk_code, livemode, number),
    CHECK ((closed_at IS NULL) = (counted IS NULL)),
    CHECK ((signed_by IS NULL) = (signed_at IS NULL)),
    CHECK (signed_by IS NULL OR closed_at IS NOT NULL AND signed_by <> clerk_code)
);
CREATE UNIQUE INDEX tills_open ON tills (agency_id, clerk_code, livemode) WHERE closed_at IS NULL;
CREATE INDEX tills_unsigned ON tills (agency_id, livemode) WHERE closed_at IS NOT NULL AND signed_by IS NULL;

-- The movements of cash that a closed till counts. The primary key makes each of them count
-- in one till. The columns are those of cash_movements, which a rebuild makes again.
CREATE TABLE till_movements (
    session_id    text COLLATE "C" NOT NULL,
    collection_id text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    till_id       uuid NOT NULL REFERENCES tills,
    at            timestamptz NOT NULL,
    amount        bigint NOT NULL,
    payment_ref   text COLLATE "C" NOT NULL,
    service_label text NOT NULL,
    receipt       text NOT NULL,
    PRIMARY KEY (session_id, collection_id, kind)
);
CREATE INDEX till_movements_till ON till_movements (till_id, at);

-- +goose Down
DROP TABLE till_movements, tills;
