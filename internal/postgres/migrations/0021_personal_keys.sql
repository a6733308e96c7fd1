-- Data keys of personal data (internal/personal). Kafka has the contact data and payers'
-- numbers of a session only sealed with such a key. When the row is deleted, nobody can
-- open them any more. Rows are deleted 30 days after the session's end, or on request.

-- +goose Up
CREATE TABLE personal_keys (
    id         uuid PRIMARY KEY, -- named in the sealed data
    session_id text COLLATE "C" NOT NULL,
    sealed     bytea NOT NULL, -- data key and phone number, sealed with a master key; bound to id
    created_at timestamptz NOT NULL -- by the service's clock
);
CREATE INDEX personal_keys_session ON personal_keys (session_id);
CREATE INDEX personal_keys_age ON personal_keys (created_at);

-- +goose Down
DROP TABLE personal_keys;
