-- E-mail addresses of staff (internal/identity), and what digests tell them (internal/digests).

-- +goose Up
-- A row is made anew when the address changes, because its id is part of the seal.
CREATE TABLE staff_contacts (
    id       uuid PRIMARY KEY,
    staff_id uuid NOT NULL UNIQUE REFERENCES staff ON DELETE CASCADE,
    sealed   bytea NOT NULL, -- the address, sealed with a master key
    masked   text NOT NULL,  -- as operators see it
    locale   text NOT NULL CHECK (locale IN ('fr', 'en')),
    set_at   timestamptz NOT NULL -- of the address
);

-- Whether operators answer, from collections.calls. One row for an operator and a mode.
CREATE TABLE operator_answers (
    operator      text COLLATE "C" NOT NULL,
    live          boolean NOT NULL,
    answered_at   timestamptz,                 -- the last call with an answer
    failing_since timestamptz,                 -- the first call without one after it
    failed_at     timestamptz,                 -- the last call without one
    agencies      text[] NOT NULL DEFAULT '{}', -- whose calls had no answer since failing_since
    PRIMARY KEY (operator, live),
    CHECK ((failing_since IS NULL) = (failed_at IS NULL))
);

-- A window of 15 minutes whose digests are made. One instance inserts it.
CREATE TABLE digest_windows (
    window_at timestamptz PRIMARY KEY
);

CREATE TABLE digests (
    staff_id  uuid NOT NULL REFERENCES staff ON DELETE CASCADE,
    window_at timestamptz NOT NULL,
    items     jsonb NOT NULL,
    sent_at   timestamptz, -- when Kafka had the message; null: it waits
    PRIMARY KEY (staff_id, window_at)
);
CREATE INDEX digests_unsent ON digests (window_at, staff_id) WHERE sent_at IS NULL;
CREATE INDEX digests_age ON digests (window_at);

-- When a member of staff was last told of something.
CREATE TABLE digest_items (
    staff_id uuid NOT NULL REFERENCES staff ON DELETE CASCADE,
    item     text COLLATE "C" NOT NULL,
    told_at  timestamptz NOT NULL, -- the window
    PRIMARY KEY (staff_id, item)
);
CREATE INDEX digest_items_age ON digest_items (told_at);

-- +goose Down
DROP TABLE digest_items;
DROP TABLE digests;
DROP TABLE digest_windows;
DROP TABLE operator_answers;
DROP TABLE staff_contacts;
