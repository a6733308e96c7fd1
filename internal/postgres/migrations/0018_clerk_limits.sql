-- The amounts that a clerk may put on record, in minor units of XAF; 0 is no limit. The
-- processors count what a clerk took.

-- +goose Up
ALTER TABLE clerks
    ADD COLUMN payment_limit bigint NOT NULL DEFAULT 0 CHECK (payment_limit >= 0),
    ADD COLUMN day_limit bigint NOT NULL DEFAULT 0 CHECK (day_limit >= 0);

-- References that a clerk's key looked up in an hour and that its agency does not have.
CREATE TABLE unknown_references (
    key_id uuid PRIMARY KEY,
    hour   timestamptz NOT NULL,
    count  integer NOT NULL
);

-- +goose Down
DROP TABLE unknown_references;
ALTER TABLE clerks DROP COLUMN payment_limit, DROP COLUMN day_limit;
