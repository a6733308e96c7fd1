-- +goose Up

-- citizen_id is the account whose cart the session is. dues are those that the session claims
-- or has paid, in its agency and mode; null for none. Rows of before have neither until their
-- next event, or until the read model is rebuilt.
ALTER TABLE sessions ADD COLUMN citizen_id text COLLATE "C", ADD COLUMN dues text[];
CREATE INDEX sessions_citizen ON sessions (citizen_id, livemode, id DESC) WHERE citizen_id IS NOT NULL;
CREATE INDEX sessions_dues ON sessions USING gin (dues) WHERE dues IS NOT NULL;

-- What a citizen's session saw last of a subject's dues: a MAC of each due with its
-- outstanding amount, so that nobody can read what a person owes.
CREATE TABLE citizen_seen (
	token bytea NOT NULL REFERENCES citizen_sessions ON DELETE CASCADE,
	subject bytea NOT NULL,
	macs bytea NOT NULL,
	PRIMARY KEY (token, subject)
);

-- +goose Down
DROP TABLE citizen_seen;
ALTER TABLE sessions DROP COLUMN citizen_id, DROP COLUMN dues;
