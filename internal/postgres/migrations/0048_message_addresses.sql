-- What is known of the addresses that messages go to (internal/notify): how many messages
-- besides codes they got in the last day, and whether they reach anybody. The id is a keyed
-- hash of the address. Rows that say nothing any more are deleted.

-- +goose Up
CREATE TABLE message_addresses (
    destination_id text COLLATE "C" PRIMARY KEY,
    sent           timestamptz[] NOT NULL DEFAULT '{}', -- of the last day, the oldest first
    unknown        integer NOT NULL DEFAULT 0,          -- answers in a row that the address reaches nobody
    suppressed_at  timestamptz,                         -- nothing but codes is sent since
    changed_at     timestamptz NOT NULL
);
CREATE INDEX message_addresses_age ON message_addresses (changed_at) WHERE suppressed_at IS NULL;

-- +goose Down
DROP TABLE message_addresses;
