-- The accounts of an agency whose statements are reconciled, in each mode. Their rules are in
-- internal/registry/file. offer is null for a bank account. fingerprint is empty for the
-- present merchant account of the offer. columns is the layout of files of the profile csv.
-- The constraints are checked at the end of a transaction, because a registry file may name
-- accounts in any order.

-- +goose Up
CREATE TABLE statement_accounts (
    agency_id      uuid NOT NULL REFERENCES agencies,
    live           boolean NOT NULL,
    code           text NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('operator', 'acquirer', 'bank', 'cash')),
    offer          text CHECK ((offer IS NULL) = (kind = 'bank')),
    fingerprint    text NOT NULL,
    iban           text NOT NULL,
    number         text NOT NULL,
    currency       text NOT NULL,
    profile        text NOT NULL,
    zone           text NOT NULL,
    cutoff_minutes integer NOT NULL CHECK (cutoff_minutes BETWEEN 0 AND 1439),
    grace_days     integer NOT NULL CHECK (grace_days >= 0),
    settles_to     text CHECK (settles_to IS NULL OR kind <> 'bank'),
    batch_pattern  text NOT NULL,
    columns        jsonb,
    PRIMARY KEY (agency_id, live, code),
    UNIQUE (agency_id, live, offer, currency, fingerprint) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (agency_id, live, settles_to) REFERENCES statement_accounts DEFERRABLE INITIALLY DEFERRED
);
CREATE TRIGGER statement_accounts_changed AFTER INSERT OR DELETE ON statement_accounts FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER statement_accounts_updated AFTER UPDATE ON statement_accounts FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE statement_accounts;
