-- Whom a batch pays, as keyed hashes: an import says what differs from the batch before, and who is new. And what the import
-- said of each batch. Nothing is decided by these rows, and no account, number or name is in them.

-- +goose Up
CREATE TABLE disbursement_payees (
    batch     text NOT NULL,
    position  integer NOT NULL,
    tenant_id text NOT NULL,
    livemode  boolean NOT NULL,
    payee     bytea NOT NULL, -- MAC of the account or number
    name      bytea NOT NULL, -- MAC of the words of the name
    amount    bigint NOT NULL,
    currency  text NOT NULL,
    date      date NOT NULL,  -- local date of the payment
    PRIMARY KEY (batch, position)
);
CREATE INDEX ON disbursement_payees (tenant_id, livemode, payee, date);
CREATE INDEX ON disbursement_payees (tenant_id, livemode, name, date);
CREATE INDEX ON disbursement_payees (date);

CREATE TABLE disbursement_notes (
    batch text PRIMARY KEY,
    notes jsonb NOT NULL,
    date  date NOT NULL -- local date of the payment
);
CREATE INDEX ON disbursement_notes (date);

-- +goose Down
DROP TABLE disbursement_notes, disbursement_payees;
