-- The files of statements have names and numbers of payers: two people agree that one of them reads a
-- file, and it is deleted after the years that the account says.

-- +goose Up
CREATE TABLE statement_original_requests (
    id           uuid PRIMARY KEY,
    import_id    uuid NOT NULL REFERENCES statement_originals ON DELETE CASCADE,
    reason       text NOT NULL,
    requested_by uuid NOT NULL REFERENCES staff,
    requested_at timestamptz NOT NULL,
    approved_by  uuid REFERENCES staff CHECK (approved_by <> requested_by),
    approved_at  timestamptz CHECK ((approved_at IS NULL) = (approved_by IS NULL))
);
CREATE INDEX ON statement_original_requests (import_id);
ALTER TABLE statement_accounts ADD COLUMN keep_years integer NOT NULL DEFAULT 10 CHECK (keep_years BETWEEN 1 AND 100);
CREATE INDEX ON statement_imports (imported_at);

-- +goose Down
ALTER TABLE statement_accounts DROP COLUMN keep_years;
DROP TABLE statement_original_requests;
