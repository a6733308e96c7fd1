-- What staff do with a proposal is an event of its session, which the sink cases has the
-- processor record (internal/cases). Proposals that had ended before are not recorded.

-- +goose Up
ALTER TABLE case_proposals
    ADD COLUMN noted smallint NOT NULL DEFAULT 2 CHECK (noted BETWEEN 0 AND 2), -- steps that events record: proposed, then approved or rejected
    ADD COLUMN note_tried_at timestamptz; -- by the database's clock
ALTER TABLE case_proposals ALTER COLUMN noted SET DEFAULT 0;
UPDATE case_proposals SET noted = 0 WHERE state IN ('open', 'approved');
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE session_id IS NOT NULL AND noted < 2;

-- +goose Down
ALTER TABLE case_proposals DROP COLUMN noted, DROP COLUMN note_tried_at;
