-- A delivery that is never sent again, because the destination has accepted a later event of
-- its session. The constraint is not validated: the rows satisfy the one before it.

-- +goose Up
ALTER TABLE deliveries DROP CONSTRAINT deliveries_state_check,
    ADD CONSTRAINT deliveries_state_check CHECK (state IN ('waiting', 'queued', 'delivered', 'needs_operator', 'exhausted', 'superseded')) NOT VALID;

-- +goose Down
UPDATE deliveries SET state = 'exhausted' WHERE state = 'superseded';
ALTER TABLE deliveries DROP CONSTRAINT deliveries_state_check,
    ADD CONSTRAINT deliveries_state_check CHECK (state IN ('waiting', 'queued', 'delivered', 'needs_operator', 'exhausted')) NOT VALID;
