-- What two people decide about the file of a statement is signed where their keys were checked
-- (docs/design/approvals.md). Rows of before have no signature: they are not carried out, and people decide again.

-- +goose Up
ALTER TABLE statement_withdrawals ADD COLUMN digest bytea, ADD COLUMN requested_signature bytea, ADD COLUMN decided_signature bytea;
ALTER TABLE statement_original_requests ADD COLUMN digest bytea, ADD COLUMN requested_signature bytea, ADD COLUMN approved_signature bytea;

-- +goose Down
ALTER TABLE statement_original_requests DROP COLUMN digest, DROP COLUMN requested_signature, DROP COLUMN approved_signature;
ALTER TABLE statement_withdrawals DROP COLUMN digest, DROP COLUMN requested_signature, DROP COLUMN decided_signature;
