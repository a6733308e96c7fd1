-- +goose Up

-- A notice stays for a week after it was sent, so that the same cause is told once a day and
-- nobody is told more than a number of notices a day. The cause of a new link is the account
-- and the subject.
ALTER TABLE citizen_notices ADD COLUMN cause text NOT NULL DEFAULT '', ADD COLUMN sent_at timestamptz;
CREATE INDEX ON citizen_notices (citizen_id, at);
CREATE INDEX ON citizen_notices (id) WHERE sent_at IS NULL;

-- +goose Down
DELETE FROM citizen_notices WHERE sent_at IS NOT NULL;
ALTER TABLE citizen_notices DROP COLUMN cause, DROP COLUMN sent_at;
