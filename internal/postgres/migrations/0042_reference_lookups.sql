-- +goose Up

-- Look-ups of payment references in a minute: of each client, and those of unknown references
-- ("unknown"). A row is worthless after its minute. The table is not logged, because a crash may
-- forget one minute.
CREATE UNLOGGED TABLE reference_lookups (
    who    text PRIMARY KEY,
    minute timestamptz NOT NULL,
    count  integer NOT NULL
);
CREATE INDEX reference_lookups_minute ON reference_lookups (minute);

-- +goose Down
DROP TABLE reference_lookups;
