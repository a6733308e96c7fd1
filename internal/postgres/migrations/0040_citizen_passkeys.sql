-- +goose Up

-- Passkeys (WebAuthn credentials) of citizens. They hold public keys and no secret.
CREATE TABLE citizen_passkeys (
	id bytea PRIMARY KEY, -- the credential's own
	name uuid NOT NULL UNIQUE, -- by which its owner removes it
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	credential jsonb NOT NULL, -- with its count of signatures
	created_at timestamptz NOT NULL,
	used_at timestamptz NOT NULL
);
CREATE INDEX ON citizen_passkeys (citizen_id);

-- Challenges that wait for their answer, for one browser each. An answer uses one up.
CREATE TABLE passkey_challenges (
	browser bytea NOT NULL,
	purpose text NOT NULL CHECK (purpose IN ('register', 'sign_in')),
	session jsonb NOT NULL,
	at timestamptz NOT NULL,
	PRIMARY KEY (browser, purpose)
);
CREATE INDEX ON passkey_challenges (at);

-- +goose Down
DROP TABLE passkey_challenges, citizen_passkeys;
