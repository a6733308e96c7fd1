-- The steps of proposals are signed where the person's key was checked (casework.Agreement). What
-- is carried out is checked again by whoever carries it out: a row that was written or changed by
-- hand, and one of an earlier release, is refused.

-- +goose Up
ALTER TABLE case_proposals
    ADD COLUMN digest             bytea, -- of what is decided on
    ADD COLUMN proposed_signature bytea,
    ADD COLUMN decided_signature  bytea, -- of the approval; rejections have none
    ADD COLUMN alone              boolean NOT NULL DEFAULT false; -- the approver needed no other person

-- +goose Down
ALTER TABLE case_proposals DROP COLUMN digest, DROP COLUMN proposed_signature, DROP COLUMN decided_signature, DROP COLUMN alone;
