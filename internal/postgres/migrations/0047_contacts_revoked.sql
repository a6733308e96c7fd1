-- +goose Up

-- A contact stays after it has linked or was revoked, so that a file that is imported again
-- does not revive what an operator or a holder has ended.
ALTER TABLE subject_contacts
	ADD COLUMN linked_at timestamptz,
	ADD COLUMN revoked_at timestamptz,
	ADD COLUMN revoked_by text CHECK (revoked_by IN ('operator', 'holder')),
	ADD CHECK ((revoked_at IS NULL) = (revoked_by IS NULL));

-- +goose Down
DELETE FROM subject_contacts WHERE linked_at IS NOT NULL OR revoked_at IS NOT NULL;
ALTER TABLE subject_contacts DROP COLUMN linked_at, DROP COLUMN revoked_at, DROP COLUMN revoked_by;
