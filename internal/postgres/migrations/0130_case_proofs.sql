-- The passkey's proof of an approval of a case (docs/design/approvals.md).

-- +goose Up
ALTER TABLE case_proposals
    ADD COLUMN decided_proof uuid REFERENCES decisions; -- null: approved with a key, or not approved

-- +goose Down
ALTER TABLE case_proposals DROP COLUMN decided_proof;
