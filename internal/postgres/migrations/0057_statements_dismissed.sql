-- A person dismisses a file in quarantine: the accepted statement was right. The file is kept.

-- +goose Up
ALTER TABLE statement_imports
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined', 'dismissed')),
    ADD COLUMN dismissed_at timestamptz,
    ADD COLUMN dismissed_by text,
    ADD COLUMN dismissed_reason text,
    ADD CHECK ((state = 'dismissed') = (dismissed_at IS NOT NULL));

-- +goose Down
UPDATE statement_imports SET state = 'quarantined', dismissed_at = NULL WHERE state = 'dismissed';
ALTER TABLE statement_imports
    DROP COLUMN dismissed_at, DROP COLUMN dismissed_by, DROP COLUMN dismissed_reason,
    DROP CONSTRAINT statement_imports_state_check,
    ADD CONSTRAINT statement_imports_state_check CHECK (state IN ('pending', 'accepted', 'quarantined'));
