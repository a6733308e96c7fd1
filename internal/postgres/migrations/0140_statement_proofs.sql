-- What people decide about files of statements on pages has the proofs of their passkeys (docs/design/approvals.md). A page
-- writes no statement and no ledger: what two people have agreed on there is 'agreed' until a command carries it out.

-- +goose Up
ALTER TABLE statement_exits
    ADD COLUMN requested_proof uuid REFERENCES decisions, -- null: requested with a key
    ADD COLUMN decided_proof   uuid REFERENCES decisions, -- null: approved with a key, or not approved
    DROP CONSTRAINT statement_exits_state_check,
    ADD CONSTRAINT statement_exits_state_check CHECK (state IN ('requested', 'agreed', 'approved', 'rejected'));
ALTER TABLE statement_withdrawals
    ADD COLUMN requested_proof uuid REFERENCES decisions,
    ADD COLUMN decided_proof   uuid REFERENCES decisions,
    DROP CONSTRAINT statement_withdrawals_state_check,
    ADD CONSTRAINT statement_withdrawals_state_check CHECK (state IN ('requested', 'agreed', 'approved', 'done', 'rejected'));
ALTER TABLE statement_original_requests
    ADD COLUMN requested_proof uuid REFERENCES decisions,
    ADD COLUMN approved_proof  uuid REFERENCES decisions,
    -- The key of the file, sealed for the pages by the sink cases, which has verified the request; null before.
    ADD COLUMN reading bytea;
CREATE INDEX statement_original_requests_unread ON statement_original_requests (approved_at) WHERE reading IS NULL AND approved_proof IS NOT NULL;

CREATE INDEX statement_imports_newest ON statement_imports (agency_id, imported_at DESC, id DESC); -- pages of lists

-- Whoever decides about a file in quarantine locks its import and changes its state, and nothing else of it. No row of an
-- accepted import is changed so.
-- +goose StatementBegin
CREATE FUNCTION lock_statement_import(import uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM FROM statement_imports WHERE id = import FOR UPDATE;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION decide_statement_import(import uuid, decision text, who text, why text, at timestamptz) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF decision NOT IN ('quarantined', 'released', 'dismissed') THEN
        RAISE EXCEPTION 'no decision about a file in quarantine: %', decision;
    END IF;
    UPDATE statement_imports SET state = decision,
        dismissed_at = CASE decision WHEN 'dismissed' THEN at END, dismissed_by = CASE decision WHEN 'dismissed' THEN who END, dismissed_reason = CASE decision WHEN 'dismissed' THEN why END,
        released_at = CASE decision WHEN 'released' THEN at END, released_by = CASE decision WHEN 'released' THEN who END, released_reason = CASE decision WHEN 'released' THEN why END
    WHERE id = import AND state IN ('quarantined', 'released', 'dismissed');
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOREACH f IN ARRAY ARRAY['lock_statement_import(uuid)', 'decide_statement_import(uuid, text, text, text, timestamptz)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION decide_statement_import, lock_statement_import;
DROP INDEX statement_imports_newest, statement_original_requests_unread;
UPDATE statement_exits SET state = 'rejected' WHERE state = 'agreed';
UPDATE statement_withdrawals SET state = 'rejected' WHERE state = 'agreed';
ALTER TABLE statement_original_requests DROP COLUMN reading, DROP COLUMN approved_proof, DROP COLUMN requested_proof;
ALTER TABLE statement_withdrawals
    DROP COLUMN decided_proof, DROP COLUMN requested_proof, DROP CONSTRAINT statement_withdrawals_state_check,
    ADD CONSTRAINT statement_withdrawals_state_check CHECK (state IN ('requested', 'approved', 'done', 'rejected'));
ALTER TABLE statement_exits
    DROP COLUMN decided_proof, DROP COLUMN requested_proof, DROP CONSTRAINT statement_exits_state_check,
    ADD CONSTRAINT statement_exits_state_check CHECK (state IN ('requested', 'approved', 'rejected'));
