-- Which lines of a draft have their payee's name asked for at the operator, and what came of it. No name and no number is in these
-- rows; nothing is decided by them but whether a maker must say why names were not checked.

-- +goose Up
CREATE TABLE disbursement_names (
    batch       text NOT NULL,
    position    integer NOT NULL,
    line_ref    text NOT NULL,
    tenant_id   text NOT NULL,
    livemode    boolean NOT NULL,
    account     text NOT NULL, -- code of the payout account whose operator is asked
    fingerprint text NOT NULL,
    verdict     text NOT NULL DEFAULT 'waiting' CHECK (verdict IN ('waiting', 'match', 'close', 'different', 'unknown')),
    again_at    timestamptz NOT NULL, -- of a waiting row: not asked before
    date        date NOT NULL, -- local date of the payment
    PRIMARY KEY (batch, position)
);
CREATE INDEX disbursement_names_waiting ON disbursement_names (tenant_id, livemode, account, again_at) WHERE verdict = 'waiting';
CREATE INDEX ON disbursement_names (date);

-- +goose Down
DROP TABLE disbursement_names;
