-- Operator cases (internal/cases), and the staff who resolve them (internal/identity).

-- +goose Up

-- The keys of staff lie beside all other keys. They have no mode: live is true.
CREATE TABLE staff (
    id          uuid PRIMARY KEY,
    name        text NOT NULL,
    folded      text NOT NULL UNIQUE, -- the name without differences of case; also of revoked staff
    agency_id   uuid REFERENCES agencies, -- null: operations
    clerks      text[] NOT NULL DEFAULT '{}', -- what the person is called at counters: agency id/clerk code
    created_at  timestamptz NOT NULL,
    proposed_by uuid REFERENCES staff, -- null: made on the command line
    approved_by uuid REFERENCES staff,
    approved_at timestamptz, -- null: the key is not valid yet
    revoked_at  timestamptz,
    CHECK (approved_by <> proposed_by)
);
ALTER TABLE api_keys
    ADD COLUMN staff_id uuid REFERENCES staff,
    ADD CHECK (num_nonnulls(application_id, clerk_code, staff_id) <= 1); -- none: a platform key
CREATE INDEX api_keys_staff ON api_keys (staff_id);
CREATE TRIGGER staff_changed AFTER INSERT OR DELETE ON staff FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_updated AFTER UPDATE ON staff
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- What an agency lets happen to money without a second person (decisions § 14).
ALTER TABLE agencies
    ADD COLUMN late_payments text NOT NULL DEFAULT 'hold' CHECK (late_payments IN ('hold', 'honour')),
    ADD COLUMN single_approval_below bigint NOT NULL DEFAULT 0 CHECK (single_approval_below >= 0); -- minor units of XAF

-- Derived from checkout.events and the poison topics. A case of a session is also part of
-- the session's state, which alone decides about it. The other cases (a report of a
-- collection of no known session, poison) have their exit here.
CREATE TABLE cases (
    id             text COLLATE "C" PRIMARY KEY,
    kind           text NOT NULL,
    in_session     boolean NOT NULL,
    sequence       bigint NOT NULL, -- of the snapshot that the row was written from
    session_id     text COLLATE "C", -- of a report of no known session: the id that it named
    agency_id      text COLLATE "C",
    application_id text,
    livemode       boolean,
    order_id       text,
    collection_id  text,
    amount         bigint, -- as reported, minor units
    currency       text,
    operator_ref   text,
    reason         text,
    opened_by      text, -- the clerk who took the cash, or the staff who opened the case
    clerks         text[] NOT NULL DEFAULT '{}', -- codes of those who took or gave back the cash
    evidence       jsonb NOT NULL DEFAULT '{}',
    opened_at      timestamptz NOT NULL,
    resolution     text, -- null while the case is open
    reference      text,
    closed_by      text,
    closed_at      timestamptz
);
CREATE INDEX cases_open ON cases (kind, opened_at) WHERE resolution IS NULL;
CREATE INDEX cases_session ON cases (session_id);
CREATE INDEX cases_age ON cases (opened_at, id);

CREATE TABLE cases_positions (
    topic     text NOT NULL, -- with the installation's prefix
    partition integer NOT NULL,
    next      bigint NOT NULL, -- offset
    PRIMARY KEY (topic, partition)
);

-- Records, which no event carries: they survive a rebuild of cases.
CREATE TABLE case_proposals (
    case_id     text COLLATE "C" NOT NULL,
    number      integer NOT NULL CHECK (number > 0), -- within the case
    state       text NOT NULL CHECK (state IN ('open', 'approved', 'carried_out', 'refused', 'rejected', 'lapsed', 'void')),
    session_id  text COLLATE "C", -- null: the exit is in cases
    resolution  text NOT NULL,
    reference   text NOT NULL DEFAULT '',
    reason      text NOT NULL,
    proposed_by uuid NOT NULL REFERENCES staff,
    proposer    text NOT NULL, -- the name, which events hold
    proposed_at timestamptz NOT NULL,
    decided_by  uuid REFERENCES staff, -- who approved or rejected it
    decider     text NOT NULL DEFAULT '',
    decided_at  timestamptz,
    decision    text NOT NULL DEFAULT '', -- why it was rejected
    refusal     text NOT NULL DEFAULT '', -- the processor's code
    finished_at timestamptz, -- when it was carried out, refused or void
    tried_at    timestamptz, -- by the database's clock
    PRIMARY KEY (case_id, number)
);
-- One proposal of a case at a time waits for somebody.
CREATE UNIQUE INDEX case_proposals_one ON case_proposals (case_id) WHERE state IN ('open', 'approved');
CREATE INDEX case_proposals_approved ON case_proposals (decided_at) WHERE state = 'approved';

-- +goose Down
DROP TABLE case_proposals, cases_positions, cases;
ALTER TABLE agencies DROP COLUMN late_payments, DROP COLUMN single_approval_below;
DELETE FROM api_keys WHERE staff_id IS NOT NULL;
ALTER TABLE api_keys DROP COLUMN staff_id;
DROP TABLE staff;
