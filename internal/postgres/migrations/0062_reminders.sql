-- +goose Up

-- Accounts that get reminders of dues, each at one of its proven addresses. The row ends with
-- the address and with the account. next_at is when the account is looked at again; while an
-- instance looks at it, the end of its lease.
CREATE TABLE citizen_reminders (
	citizen_id uuid PRIMARY KEY REFERENCES citizens ON DELETE CASCADE,
	address_id uuid NOT NULL REFERENCES citizen_addresses ON DELETE CASCADE,
	chosen_at timestamptz NOT NULL,
	next_at timestamptz NOT NULL
);
CREATE INDEX ON citizen_reminders (next_at, citizen_id);
CREATE INDEX ON citizen_reminders (address_id);

-- What an account was reminded of: a MAC of the due, and how many days before its due date. A row
-- is written before its message, so that no due is in two messages. message tells the messages of
-- an account apart; sent_at is null until Kafka has the message. Rows outlive the choice, so that
-- who ends reminders and chooses them again is not reminded twice.
CREATE TABLE citizen_reminded (
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	due bytea NOT NULL,
	stage smallint NOT NULL CHECK (stage IN (7, 1)),
	message text COLLATE "C" NOT NULL,
	at timestamptz NOT NULL,
	sent_at timestamptz,
	PRIMARY KEY (citizen_id, due, stage)
);
CREATE INDEX ON citizen_reminded (at);

-- When the next question about reminders may go to an agency's ERP, by the clock of Postgres, for
-- all instances together.
CREATE TABLE reminder_pace (
	agency_id uuid PRIMARY KEY,
	next_at timestamptz NOT NULL
);

-- +goose Down
DROP TABLE reminder_pace, citizen_reminded, citizen_reminders;
