-- What happened to a line is found by its position, which the details of an event of one line have.
-- First signatures of what two people decide about a line of a batch. Their column batch has the id, "/" and the position.
-- The constraint is not validated: the rows satisfy the one before it.

-- +goose Up
ALTER TABLE disbursement_signatures DROP CONSTRAINT disbursement_signatures_kind_check,
    ADD CONSTRAINT disbursement_signatures_kind_check CHECK (kind IN ('resume', 'people', 'policy', 'settle')) NOT VALID;
CREATE INDEX disbursement_steps_line ON disbursement_steps (batch, (detail ->> 'line'), sequence) WHERE lines = 1;

-- +goose Down
DROP INDEX disbursement_steps_line;
DELETE FROM disbursement_signatures WHERE kind = 'settle';
ALTER TABLE disbursement_signatures DROP CONSTRAINT disbursement_signatures_kind_check,
    ADD CONSTRAINT disbursement_signatures_kind_check CHECK (kind IN ('resume', 'people', 'policy')) NOT VALID;
