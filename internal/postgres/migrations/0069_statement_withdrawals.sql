-- Two people withdraw an import that was accepted by mistake.

-- +goose Up
ALTER TABLE statement_imports
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'released', 'dismissed', 'withdrawn'));
-- The same file may be imported again after its withdrawal.
DROP INDEX statement_imports_digest;
CREATE UNIQUE INDEX statement_imports_digest ON statement_imports (agency_id, live, code, digest) WHERE state NOT IN ('pending', 'dismissed', 'withdrawn');

-- A withdrawal is requested, then approved from before its Kafka transaction until its outcome is known: then it is
-- done, or requested again. partition and from_offset say where its records begin, if there are any. actor is who
-- approved it, as the audit table names people.
CREATE TABLE statement_withdrawals (
    id           uuid PRIMARY KEY,
    import_id    uuid NOT NULL REFERENCES statement_imports,
    state        text NOT NULL CHECK (state IN ('requested', 'approved', 'done', 'rejected')),
    reason       text NOT NULL,
    requested_by uuid NOT NULL REFERENCES staff,
    requested_at timestamptz NOT NULL,
    decided_by   uuid REFERENCES staff CHECK (decided_by <> requested_by OR state = 'rejected'),
    decided_at   timestamptz CHECK ((decided_at IS NULL) = (decided_by IS NULL)),
    partition    integer,
    from_offset  bigint,
    actor        jsonb,
    CHECK ((state = 'requested') = (decided_by IS NULL)),
    CHECK (state NOT IN ('approved', 'done') OR from_offset IS NOT NULL AND partition IS NOT NULL AND actor IS NOT NULL)
);
CREATE UNIQUE INDEX statement_withdrawals_once ON statement_withdrawals (import_id) WHERE state IN ('approved', 'done');
CREATE INDEX ON statement_withdrawals (import_id);

-- The lines that do not count any more after a withdrawal, so that the next import of the same line writes it
-- with the next life. content is the hash of what the line says in its first life (journal.ContentOf).
CREATE TABLE statement_withdrawn_lines (
    withdrawal_id uuid NOT NULL REFERENCES statement_withdrawals ON DELETE CASCADE,
    line_id       text NOT NULL,
    content       bigint NOT NULL,
    PRIMARY KEY (withdrawal_id, line_id, content)
);

-- +goose Down
DROP TABLE statement_withdrawn_lines, statement_withdrawals;
UPDATE statement_imports SET state = 'dismissed', dismissed_at = now(), dismissed_by = 'migration', dismissed_reason = 'was withdrawn' WHERE state = 'withdrawn';
DROP INDEX statement_imports_digest;
CREATE UNIQUE INDEX statement_imports_digest ON statement_imports (agency_id, live, code, digest) WHERE state NOT IN ('pending', 'dismissed');
ALTER TABLE statement_imports
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'released', 'dismissed'));
