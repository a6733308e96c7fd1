-- Cases without a session have events of their own in the topic cases.events, which the sink
-- cases writes (internal/cases). Before, their proposals and exits were in Postgres only:
-- the sink now makes events of all of them. It reads checkout.events again, because the row
-- of a report of no known session lacked the merchant account and the mode.

-- +goose Up
ALTER TABLE cases ADD COLUMN recorded boolean NOT NULL DEFAULT false; -- of a case without a session: cases.events has its opening
CREATE INDEX cases_unrecorded ON cases (opened_at, id) WHERE NOT in_session AND NOT recorded;
-- A proposal whose case no row has any more, such as poison older than its topic, stays as it
-- is: nothing could close it.
UPDATE case_proposals p SET noted = 2, note_tried_at = NULL WHERE session_id IS NULL AND NOT EXISTS (SELECT FROM cases c WHERE c.id = p.case_id);
UPDATE case_proposals p SET noted = 0, note_tried_at = NULL WHERE session_id IS NULL AND EXISTS (SELECT FROM cases c WHERE c.id = p.case_id);
UPDATE case_proposals SET state = 'approved', finished_at = NULL, tried_at = NULL WHERE session_id IS NULL AND state = 'carried_out' AND noted = 0;
-- The exit comes back with its event.
UPDATE cases SET resolution = NULL, reference = NULL, closed_by = NULL, closed_at = NULL WHERE NOT in_session;
DELETE FROM cases WHERE NOT in_session AND kind = 'orphan';
-- Commands of an earlier release close such a case at the approval, without an event. They
-- are refused from now on.
ALTER TABLE case_proposals ADD CONSTRAINT case_proposals_exit_is_an_event CHECK (session_id IS NOT NULL OR state <> 'carried_out' OR noted = 2);
-- Under another name: a sink of an earlier release that still runs would read checkout.events
-- again too, and store cases without what it does not know.
DROP TABLE cases_positions;
CREATE TABLE case_positions (
    topic     text NOT NULL, -- with the installation's prefix
    partition integer NOT NULL,
    next      bigint NOT NULL, -- offset
    PRIMARY KEY (topic, partition)
);
DROP INDEX case_proposals_to_note;
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE noted < 2;
CREATE INDEX case_proposals_open ON case_proposals (proposed_at) WHERE state = 'open';

-- +goose Down
DROP INDEX case_proposals_open;
DROP INDEX case_proposals_to_note;
CREATE INDEX case_proposals_to_note ON case_proposals (proposed_at) WHERE session_id IS NOT NULL AND noted < 2;
ALTER TABLE cases DROP COLUMN recorded;
ALTER TABLE case_proposals DROP CONSTRAINT case_proposals_exit_is_an_event;
ALTER TABLE case_positions RENAME TO cases_positions;
