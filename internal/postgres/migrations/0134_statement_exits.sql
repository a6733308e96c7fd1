-- What people decide about a file in quarantine is signed where their keys were checked: a release by two people, a
-- dismissal by one (docs/design/approvals.md). statement_imports.state says what was decided, as before; without a signed
-- decision here it is not believed, and the file counts as one in quarantine. A program of the release before deletes the
-- import of a released file when the file is accepted, and its decisions with it.

-- +goose Up
CREATE TABLE statement_exits (
    id                  uuid PRIMARY KEY,
    import_id           uuid NOT NULL REFERENCES statement_imports ON DELETE CASCADE,
    verdict             text NOT NULL CHECK (verdict IN ('released', 'dismissed')),
    -- A dismissal needs no approval: it is approved at once, and rejected by whoever takes it back.
    state               text NOT NULL CHECK (state IN ('requested', 'approved', 'rejected')),
    reason              text NOT NULL,
    requested_by        uuid NOT NULL REFERENCES staff,
    requested_at        timestamptz NOT NULL,
    decided_by          uuid REFERENCES staff,
    decided_at          timestamptz CHECK ((decided_at IS NULL) = (decided_by IS NULL)),
    digest              bytea,
    requested_signature bytea,
    decided_signature   bytea,
    CHECK (verdict = 'dismissed' OR (state = 'requested') = (decided_by IS NULL)),
    CHECK (state <> 'approved' OR decided_by IS NULL OR decided_by <> requested_by)
);
CREATE INDEX ON statement_exits (import_id);

-- +goose Down
DROP TABLE statement_exits;
