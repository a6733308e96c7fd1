-- A person releases a file from quarantine: imported again, it is accepted beside the accepted statement of its id.
-- An operator's file whose id is made of its days comes again with more lines, and has several accepted versions.

-- +goose Up
ALTER TABLE statement_imports
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'released', 'dismissed')),
    ADD COLUMN released_at timestamptz,
    ADD COLUMN released_by text,
    ADD COLUMN released_reason text,
    ADD CHECK ((state = 'released') = (released_at IS NOT NULL));
ALTER TABLE statements
    DROP CONSTRAINT statements_pkey,
    ADD PRIMARY KEY (agency_id, live, code, statement_id, page, digest);

-- +goose Down
DELETE FROM statements s USING statements later
    WHERE (later.agency_id, later.live, later.code, later.statement_id, later.page) = (s.agency_id, s.live, s.code, s.statement_id, s.page)
    AND later.import_id > s.import_id;
ALTER TABLE statements
    DROP CONSTRAINT statements_pkey,
    ADD PRIMARY KEY (agency_id, live, code, statement_id, page);
UPDATE statement_imports SET state = 'quarantined', released_at = NULL WHERE state = 'released';
ALTER TABLE statement_imports
    DROP COLUMN released_at, DROP COLUMN released_by, DROP COLUMN released_reason,
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'dismissed'));
