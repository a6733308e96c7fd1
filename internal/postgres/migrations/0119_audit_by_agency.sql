-- The audit table by agency, and its lists (docs/design/audit.md). Rows of before have no agency and
-- stay as they are.

-- +goose Up
ALTER TABLE audit
    ADD COLUMN agency_id text; -- the agency that the operation is about; null: none, several, or not known
DROP INDEX audit_at, audit_subject;
CREATE INDEX audit_at ON audit (at, id);
CREATE INDEX audit_subject ON audit (subject, at, id);
CREATE INDEX audit_actor ON audit (actor, at, id);
CREATE INDEX audit_action ON audit (action, at, id);
CREATE INDEX audit_agency ON audit (agency_id, at, id) WHERE agency_id IS NOT NULL;
CREATE INDEX audit_agency_action ON audit (agency_id, action, at, id) WHERE agency_id IS NOT NULL;

-- +goose Down
DROP INDEX audit_agency_action, audit_agency, audit_action, audit_actor, audit_subject, audit_at;
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_at ON audit (at);
ALTER TABLE audit DROP COLUMN agency_id;
