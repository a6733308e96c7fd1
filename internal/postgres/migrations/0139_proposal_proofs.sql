-- The passkey's proof of a proposal of a case (docs/design/approvals.md).

-- +goose Up
ALTER TABLE case_proposals
    ADD COLUMN proposed_proof uuid REFERENCES decisions; -- null: proposed with a key

-- +goose Down
ALTER TABLE case_proposals DROP COLUMN proposed_proof;
