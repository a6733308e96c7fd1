-- +goose Up

-- One row for each operation that changed something: who did what to what. Rows
-- are written in the transaction of the change and never change.
CREATE TABLE audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL, -- by the service's clock
    actor_kind text        NOT NULL, -- person, key, command_line
    actor      text        NOT NULL, -- the person, the key's id, the user of the machine
    origin     text        NOT NULL, -- the address or the machine that the operation came from; may be empty
    action     text        NOT NULL, -- key.revoke, delivery.retry, …
    subject    text        NOT NULL, -- id of what was changed
    detail     jsonb       NOT NULL  -- what else the operation was told; no secrets, no personal data
);
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_at ON audit (at);

-- +goose Down
DROP TABLE audit;
