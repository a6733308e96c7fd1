-- An account whose settings the operator refused is tried again by a person: a third step of accounts.

-- +goose Up
DROP INDEX disbursement_steps_accounts;
CREATE INDEX disbursement_steps_accounts ON disbursement_steps (batch) WHERE type IN ('account.paused', 'account.open', 'account.reopened');

-- +goose Down
DROP INDEX disbursement_steps_accounts;
CREATE INDEX disbursement_steps_accounts ON disbursement_steps (batch) WHERE type IN ('account.paused', 'account.open');
