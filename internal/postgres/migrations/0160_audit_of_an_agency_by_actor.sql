-- The rows of an agency by who acted: /agency/audit lists them (docs/design/audit.md).

-- +goose Up
CREATE INDEX audit_agency_actor ON audit (agency_id, actor, at, id) WHERE agency_id IS NOT NULL;

-- +goose Down
DROP INDEX audit_agency_actor;
