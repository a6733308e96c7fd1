-- +goose Up

-- What the holders of a subject and the owners of an account are told by message. The row is
-- written with its cause and deleted when the messages are in Kafka.
CREATE TABLE citizen_notices (
	id uuid PRIMARY KEY,
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	kind text NOT NULL CHECK (kind IN ('new_link', 'new_passkey')),
	-- Of a new link: the agency, and the masked reference.
	agency_id uuid,
	livemode boolean NOT NULL DEFAULT false,
	subject text NOT NULL DEFAULT '',
	at timestamptz NOT NULL
);
CREATE INDEX ON citizen_notices (at);

-- Holders who have asked the agency for a new code of their subject.
CREATE TABLE link_renewals (
	agency_id uuid NOT NULL,
	livemode boolean NOT NULL,
	subject_ref text NOT NULL,
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	asked_at timestamptz NOT NULL,
	PRIMARY KEY (agency_id, livemode, subject_ref, citizen_id)
);

-- A wrong code names its subject, so that an operator sees which one somebody tries to guess.
-- The rows are deleted after a day.
DROP TABLE link_failures;
CREATE TABLE link_failures (
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	agency_id uuid NOT NULL,
	livemode boolean NOT NULL,
	subject_ref text NOT NULL,
	at timestamptz NOT NULL
);
CREATE INDEX ON link_failures (citizen_id, at);
CREATE INDEX ON link_failures (agency_id, livemode, subject_ref, at);
CREATE INDEX ON link_failures (at);

ALTER TABLE subject_contacts ADD COLUMN imported_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE subject_contacts ALTER COLUMN imported_at DROP DEFAULT;
CREATE INDEX ON subject_contacts (imported_at);

-- +goose Down
ALTER TABLE subject_contacts DROP COLUMN imported_at;
DROP TABLE link_failures;
CREATE TABLE link_failures (
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	subject bytea NOT NULL,
	at timestamptz NOT NULL
);
CREATE INDEX ON link_failures (citizen_id, at);
CREATE INDEX ON link_failures (subject, at);
CREATE INDEX ON link_failures (at);
DROP TABLE link_renewals, citizen_notices;
