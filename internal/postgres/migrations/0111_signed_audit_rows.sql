-- Programs sign the rows of the audit table that they write, so that a row that somebody inserts by SQL is told from
-- theirs (docs/design/audit.md). A signature covers the salt, and no two rows have one: a row cannot be repeated.

-- +goose Up
ALTER TABLE audit ADD COLUMN signature bytea;
CREATE UNIQUE INDEX audit_salt ON audit (salt);
-- The last row of before. Nothing signed the rows until then.
ALTER TABLE audit_position ADD COLUMN unsigned_until bigint NOT NULL DEFAULT 0;
UPDATE audit_position SET unsigned_until = (SELECT coalesce(max(id), 0) FROM audit);

-- +goose Down
ALTER TABLE audit_position DROP COLUMN unsigned_until;
DROP INDEX audit_salt;
ALTER TABLE audit DROP COLUMN signature;
