-- The identity provider of a group of staff, the people whom it knows, and sign-ins that are under way at it (docs/design/staff.md#sign-in).

-- +goose Up
CREATE TABLE staff_issuers (
    id            uuid PRIMARY KEY,                 -- part of the callback address
    address       text NOT NULL,                    -- iss
    client_id     text NOT NULL,
    secret_sealed bytea NOT NULL,                   -- bound to id, address and group
    agency_id     uuid REFERENCES agencies,         -- null: operations
    algorithms    text[] NOT NULL,                  -- of ID tokens: RS256, ES256, EdDSA
    created_at    timestamptz NOT NULL,
    outage_until  timestamptz,                      -- until then the passkey alone signs in; null: no outage
    outage_reason text NOT NULL DEFAULT '',
    signature     bytea
);
CREATE UNIQUE INDEX staff_issuers_group ON staff_issuers (agency_id) NULLS NOT DISTINCT;

ALTER TABLE staff
    ADD COLUMN issuer  text, -- iss; null: the person signs in with a passkey alone
    ADD COLUMN subject text; -- sub
CREATE UNIQUE INDEX staff_subject ON staff (issuer, subject) WHERE subject IS NOT NULL AND revoked_at IS NULL;

ALTER TABLE staff_invitations
    ADD COLUMN issuer  text, -- iss, once the invited person has signed in there
    ADD COLUMN subject text,
    ADD COLUMN email   text; -- shown, never compared

-- People who have proved a passkey, or opened the link of an invitation, and are at the issuer now. A row is used once.
CREATE TABLE staff_issuer_sign_ins (
    browser       bytea PRIMARY KEY, -- SHA-256 of a secret of the browser
    issuer_id     uuid NOT NULL REFERENCES staff_issuers ON DELETE CASCADE,
    staff_id      uuid NOT NULL REFERENCES staff ON DELETE CASCADE,
    passkey_id    uuid REFERENCES staff_passkeys ON DELETE CASCADE,    -- null: an invited person
    invitation_id uuid REFERENCES staff_invitations ON DELETE CASCADE, -- null: a sign-in
    next          text NOT NULL,     -- address of this site
    at            timestamptz NOT NULL,
    mac           bytea NOT NULL
);
CREATE INDEX staff_issuer_sign_ins_at ON staff_issuer_sign_ins (at);

-- Logout tokens that were used.
CREATE TABLE staff_logout_tokens (
    issuer_id uuid NOT NULL REFERENCES staff_issuers ON DELETE CASCADE,
    token     bytea NOT NULL, -- SHA-256 of jti
    ends_at   timestamptz NOT NULL, -- exp of the token: after that it is refused as late
    PRIMARY KEY (issuer_id, token)
);
CREATE INDEX staff_logout_tokens_end ON staff_logout_tokens (ends_at);

CREATE TRIGGER staff_issuers_changed AFTER INSERT OR DELETE ON staff_issuers FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_issuers_updated AFTER UPDATE ON staff_issuers FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE staff_logout_tokens, staff_issuer_sign_ins, staff_issuers;
ALTER TABLE staff_invitations DROP COLUMN email, DROP COLUMN subject, DROP COLUMN issuer;
DROP INDEX staff_subject;
ALTER TABLE staff DROP COLUMN subject, DROP COLUMN issuer;
