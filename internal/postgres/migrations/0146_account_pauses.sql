-- A batch of 100,000 lines has as many steps. Those of its accounts are few, and looked for twice a minute.

-- +goose Up
CREATE INDEX disbursement_steps_accounts ON disbursement_steps (batch) WHERE type IN ('account.paused', 'account.open');

-- +goose Down
DROP INDEX disbursement_steps_accounts;
