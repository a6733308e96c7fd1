-- Indexes in the order of people's lists (docs/design/lists.md).

-- +goose Up

-- When the session ended, while its operator has not decided; else null. Rows of before have it
-- after their next event, or after `quittance rebuild readmodel`.
ALTER TABLE sessions ADD COLUMN undecided_since timestamptz;
CREATE INDEX sessions_undecided ON sessions (application_id, livemode, id DESC, undecided_since) WHERE undecided_since IS NOT NULL;

CREATE INDEX cases_agency ON cases (agency_id, opened_at DESC, id);
CREATE INDEX cases_agency_open ON cases (agency_id, opened_at DESC, id) WHERE resolution IS NULL;
CREATE INDEX cases_open_age ON cases (opened_at DESC, id) WHERE resolution IS NULL;
CREATE INDEX cases_operator_ref ON cases (operator_ref) WHERE operator_ref IS NOT NULL;
CREATE INDEX cases_collection ON cases (collection_id) WHERE collection_id IS NOT NULL;

CREATE INDEX deliveries_tenant ON deliveries (tenant_id, occurred_at, delivery_id);

-- +goose Down
DROP INDEX deliveries_tenant, cases_collection, cases_operator_ref, cases_open_age, cases_agency_open, cases_agency;
ALTER TABLE sessions DROP COLUMN undecided_since;
