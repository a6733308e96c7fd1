-- An approved proposal that was refused has a third step, which the sink cases makes an event. Refusals of before have none.

-- +goose Up
ALTER TABLE case_proposals
    DROP CONSTRAINT case_proposals_noted_check,
    ADD CONSTRAINT case_proposals_noted_check CHECK (noted BETWEEN 0 AND 3); -- steps that events record: proposed, approved or rejected, refused
UPDATE case_proposals SET noted = 3 WHERE state = 'refused';
DROP INDEX case_proposals_to_note;
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE noted < 2 OR noted = 2 AND state = 'refused';

-- +goose Down
UPDATE case_proposals SET noted = 2 WHERE noted = 3;
ALTER TABLE case_proposals
    DROP CONSTRAINT case_proposals_noted_check,
    ADD CONSTRAINT case_proposals_noted_check CHECK (noted BETWEEN 0 AND 2);
DROP INDEX case_proposals_to_note;
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE noted < 2;
