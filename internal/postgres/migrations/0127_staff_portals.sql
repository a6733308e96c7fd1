-- Staff sign in with passkeys (docs/design/staff.md): roles, passkeys, invitations, sessions, challenges and the
-- decisions that a passkey has signed.

-- +goose Up
ALTER TABLE staff
    ADD COLUMN number       text,        -- staff number; unique in the group; null: none
    ADD COLUMN invited      boolean NOT NULL DEFAULT false, -- joins by an invitation, and has no st_ key
    ADD COLUMN suspended_at timestamptz, -- null: not suspended
    ADD COLUMN suspended_by uuid REFERENCES staff;
CREATE UNIQUE INDEX staff_number ON staff (agency_id, number) NULLS NOT DISTINCT WHERE number IS NOT NULL;

CREATE TABLE staff_roles (
    staff_id   uuid NOT NULL REFERENCES staff,
    role       text COLLATE "C" NOT NULL,
    granted_at timestamptz NOT NULL,
    signature  bytea,
    PRIMARY KEY (staff_id, role)
);

CREATE TABLE staff_passkeys (
    id            uuid PRIMARY KEY,
    staff_id      uuid NOT NULL REFERENCES staff,
    host          text NOT NULL,         -- of the pages, to which browsers bind the passkey (RP id)
    name          text NOT NULL,         -- as the person calls it
    credential_id bytea NOT NULL UNIQUE,
    spki_hash     bytea NOT NULL UNIQUE, -- SHA-256 of the public key as SubjectPublicKeyInfo; also of removed ones
    credential    jsonb NOT NULL,        -- as internal/passkeys stores it, with a count of zero
    created_at    timestamptz NOT NULL,
    approves_from timestamptz NOT NULL,  -- what it approves before that is refused
    removed_at    timestamptz,
    sign_count    bigint NOT NULL DEFAULT 0,
    last_used_at  timestamptz,
    signature     bytea
);
CREATE INDEX staff_passkeys_staff ON staff_passkeys (staff_id);

CREATE TABLE staff_invitations (
    id           uuid PRIMARY KEY,
    staff_id     uuid NOT NULL REFERENCES staff,
    roles        text[] NOT NULL,
    token_hash   bytea NOT NULL UNIQUE,         -- SHA-256 of the link's secret; from accepted_at on, of the browser's
    invited_by   uuid REFERENCES staff,         -- null: on the command line
    invited_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    accepted_at  timestamptz,                   -- when the link was used; it works once
    passkeys     jsonb NOT NULL DEFAULT '[]',   -- those that the invited person has made, not confirmed yet
    wrong        integer NOT NULL DEFAULT 0,    -- wrong digits of those who confirm
    confirmed_by uuid REFERENCES staff,
    confirmed_at timestamptz,
    withdrawn_at timestamptz,
    signature    bytea,
    CHECK (confirmed_by <> invited_by)
);
CREATE UNIQUE INDEX staff_invitations_open ON staff_invitations (staff_id) WHERE confirmed_at IS NULL AND withdrawn_at IS NULL;

-- What was changed about a person, and what waits for another person's approval.
CREATE TABLE staff_changes (
    id          uuid PRIMARY KEY,
    staff_id    uuid NOT NULL REFERENCES staff,
    kind        text NOT NULL,   -- roles, revoke; suspend, lift: approved at once
    add_roles   text[] NOT NULL DEFAULT '{}',
    end_roles   text[] NOT NULL DEFAULT '{}',
    reason      text NOT NULL,
    proposed_by uuid REFERENCES staff, -- null: on the command line
    proposed_at timestamptz NOT NULL,
    state       text NOT NULL,   -- proposed, approved, rejected, lapsed
    decided_by  uuid REFERENCES staff,
    decided_at  timestamptz,
    signature   bytea
);
CREATE UNIQUE INDEX staff_changes_open ON staff_changes (staff_id, kind) WHERE state = 'proposed';

CREATE TABLE staff_sessions (
    hash       bytea PRIMARY KEY, -- SHA-256 of the cookie's secret
    staff_id   uuid NOT NULL REFERENCES staff ON DELETE CASCADE,
    passkey_id uuid NOT NULL REFERENCES staff_passkeys ON DELETE CASCADE,
    begun_at   timestamptz NOT NULL,
    used_at    timestamptz NOT NULL,
    mac        bytea NOT NULL
);
CREATE INDEX staff_sessions_staff ON staff_sessions (staff_id, begun_at);

CREATE TABLE staff_challenges (
    session   bytea NOT NULL REFERENCES staff_sessions ON DELETE CASCADE,
    challenge bytea NOT NULL, -- 32 random bytes and the SHA-256 of the statement
    statement bytea NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (session, challenge)
);
CREATE INDEX staff_challenges_at ON staff_challenges (at);

-- What a passkey has signed. Anybody can verify a row with the public key in it.
CREATE TABLE decisions (
    id                 uuid PRIMARY KEY,
    at                 timestamptz NOT NULL,
    staff_id           uuid NOT NULL REFERENCES staff,
    kind               text NOT NULL,
    subject            text NOT NULL,
    verdict            text NOT NULL,
    agency_id          text,           -- null: operations
    statement          bytea NOT NULL,
    challenge          bytea NOT NULL UNIQUE,
    passkey_id         uuid NOT NULL REFERENCES staff_passkeys,
    public_key         bytea NOT NULL, -- SubjectPublicKeyInfo
    client_data        bytea NOT NULL,
    authenticator_data bytea NOT NULL,
    assertion          bytea NOT NULL
);
CREATE INDEX decisions_subject ON decisions (kind, subject);
CREATE INDEX decisions_at ON decisions (at, id);

CREATE TRIGGER staff_roles_changed AFTER INSERT OR DELETE ON staff_roles FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_roles_updated AFTER UPDATE ON staff_roles FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_passkeys_changed AFTER INSERT OR DELETE ON staff_passkeys FOR EACH ROW EXECUTE FUNCTION registry_changed();
-- Every column but sign_count and last_used_at, which each use of a passkey writes.
CREATE TRIGGER staff_passkeys_updated
    AFTER UPDATE OF id, staff_id, host, name, credential_id, spki_hash, credential, created_at, approves_from, removed_at, signature ON staff_passkeys
    FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_invitations_changed AFTER INSERT OR DELETE ON staff_invitations FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_invitations_updated AFTER UPDATE ON staff_invitations FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_changes_changed AFTER INSERT OR DELETE ON staff_changes FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_changes_updated AFTER UPDATE ON staff_changes FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE decisions, staff_challenges, staff_sessions, staff_changes, staff_invitations, staff_passkeys, staff_roles;
DROP INDEX staff_number;
ALTER TABLE staff DROP COLUMN suspended_by, DROP COLUMN suspended_at, DROP COLUMN invited, DROP COLUMN number;
