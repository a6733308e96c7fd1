-- +goose Up

-- The owner of an account is told that a passkey was removed.
ALTER TABLE citizen_notices DROP CONSTRAINT citizen_notices_kind_check,
	ADD CONSTRAINT citizen_notices_kind_check CHECK (kind IN ('new_link', 'new_passkey', 'passkey_removed'));

-- +goose Down
DELETE FROM citizen_notices WHERE kind = 'passkey_removed';
ALTER TABLE citizen_notices DROP CONSTRAINT citizen_notices_kind_check,
	ADD CONSTRAINT citizen_notices_kind_check CHECK (kind IN ('new_link', 'new_passkey'));
