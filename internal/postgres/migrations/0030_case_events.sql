-- Cases without a session have events of their own in the topic cases.events, which the sink
-- cases writes (internal/cases). Before, their proposals and exits were in Postgres only:
-- the sink now makes events of all of them. It reads checkout.events again, because the row
-- of a report of no known session lacked the merchant account and the mode.

-- +goose Up
ALTER TABLE cases ADD COLUMN recorded boolean NOT NULL DEFAULT false; -- of a case without a session: cases.events has its opening
CREATE INDEX cases_unrecorded ON cases (opened_at, id) WHERE NOT in_session AND NOT recorded;
DELETE FROM cases WHERE NOT in_session AND kind = 'orphan';
DELETE FROM cases_positions;
-- The exit comes back with its event.
UPDATE cases SET resolution = NULL, reference = NULL, closed_by = NULL, closed_at = NULL WHERE NOT in_session;
UPDATE case_proposals SET noted = 0, note_tried_at = NULL WHERE session_id IS NULL;
UPDATE case_proposals SET state = 'approved', finished_at = NULL, tried_at = NULL WHERE session_id IS NULL AND state = 'carried_out';
DROP INDEX case_proposals_to_note;
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE noted < 2;
CREATE INDEX case_proposals_open ON case_proposals (proposed_at) WHERE state = 'open';

-- +goose Down
DROP INDEX case_proposals_open;
DROP INDEX case_proposals_to_note;
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE session_id IS NOT NULL AND noted < 2;
ALTER TABLE cases DROP COLUMN recorded;
