-- Citizens can transfer money to a bank account of the agency. Then the account has the offer bank_transfer, the name of its
-- holder as payers must write it, and the bank's name. Empty columns change no signature.

-- +goose Up
ALTER TABLE statement_accounts DROP CONSTRAINT statement_accounts_check;
ALTER TABLE statement_accounts
    ADD COLUMN holder text NOT NULL DEFAULT '',
    ADD COLUMN bank   text NOT NULL DEFAULT '',
    ADD CONSTRAINT statement_accounts_offer CHECK (CASE WHEN kind = 'bank' THEN offer IS NULL OR offer = 'bank_transfer' ELSE offer IS NOT NULL END),
    ADD CONSTRAINT statement_accounts_transfer CHECK (offer IS DISTINCT FROM 'bank_transfer' OR holder <> '' AND bank <> '' AND (iban <> '' OR number <> ''));

-- +goose Down
UPDATE statement_accounts SET offer = NULL WHERE offer = 'bank_transfer';
ALTER TABLE statement_accounts
    DROP CONSTRAINT statement_accounts_transfer,
    DROP CONSTRAINT statement_accounts_offer,
    DROP COLUMN holder,
    DROP COLUMN bank,
    ADD CONSTRAINT statement_accounts_check CHECK ((offer IS NULL) = (kind = 'bank'));
