-- First signatures of what two people sign on the pages of batches: a hold that is lifted, a change of people or policy. One
-- waits of each kind. Nothing is decided by these rows: the processor verifies both signatures, over what it is told.

-- +goose Up
CREATE TABLE disbursement_signatures (
    tenant_id text NOT NULL,
    kind      text NOT NULL CHECK (kind IN ('resume', 'people', 'policy')),
    livemode  boolean NOT NULL, -- of a policy and of a batch; false for people
    batch     text NOT NULL,    -- empty for a change
    number    bigint NOT NULL,  -- of the hold, or of the change
    content   jsonb NOT NULL,   -- people or policy as proposed; {} of a hold
    signed    jsonb NOT NULL,   -- person and what the passkey has signed
    at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, kind, livemode, batch)
);

-- +goose Down
DROP TABLE disbursement_signatures;
