-- A person releases a file from quarantine: imported again, it is accepted beside the accepted statement of its id.
-- An operator's file whose id is made of its days comes again with more lines, and has several accepted versions, of which
-- the one with the highest number is the last.

-- +goose Up
ALTER TABLE statement_imports
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'released', 'dismissed')),
    ADD COLUMN released_at timestamptz,
    ADD COLUMN released_by text,
    ADD COLUMN released_reason text,
    ADD CHECK (state <> 'released' OR released_at IS NOT NULL);
-- A file may be dismissed while another process accepts it.
DROP INDEX statement_imports_digest;
CREATE UNIQUE INDEX statement_imports_digest ON statement_imports (agency_id, live, code, digest) WHERE state NOT IN ('pending', 'dismissed');
ALTER TABLE statements
    ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY,
    DROP CONSTRAINT statements_pkey,
    ADD PRIMARY KEY (agency_id, live, code, statement_id, page, number);

-- +goose Down
DELETE FROM statements s USING statements later
    WHERE (later.agency_id, later.live, later.code, later.statement_id, later.page) = (s.agency_id, s.live, s.code, s.statement_id, s.page)
    AND later.number > s.number;
ALTER TABLE statements
    DROP COLUMN number,
    ADD PRIMARY KEY (agency_id, live, code, statement_id, page);
DELETE FROM statement_imports d USING statement_imports a
    WHERE (a.agency_id, a.live, a.code, a.digest) = (d.agency_id, d.live, d.code, d.digest) AND d.state = 'dismissed' AND a.state NOT IN ('pending', 'dismissed');
DROP INDEX statement_imports_digest;
CREATE UNIQUE INDEX statement_imports_digest ON statement_imports (agency_id, live, code, digest) WHERE state <> 'pending';
UPDATE statement_imports SET state = 'quarantined', released_at = NULL WHERE state = 'released';
ALTER TABLE statement_imports
    DROP COLUMN released_at, DROP COLUMN released_by, DROP COLUMN released_reason,
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'dismissed'));
