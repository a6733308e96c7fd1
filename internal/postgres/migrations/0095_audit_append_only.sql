-- Rows of the audit table are written once and stay: no role changes or removes them. The
-- sink cases numbers them without gaps and writes a record of each to the topic audit
-- (internal/audit), so that a change by hand or an old backup is found.

-- +goose Up

-- The record in the topic, which stays for ever, has a hash of what may not stay for ever.
-- The salt keeps the hash from being guessed.
ALTER TABLE audit ADD COLUMN salt uuid NOT NULL DEFAULT gen_random_uuid();

-- The numbers of the rows, in the order of the records. A row is numbered after its
-- transaction has committed; ids are taken before that and have gaps.
CREATE TABLE audit_sequence (
    sequence bigint PRIMARY KEY CHECK (sequence > 0),
    row_id   bigint NOT NULL UNIQUE REFERENCES audit
);

-- What the sink has read and written of the topic.
CREATE TABLE audit_position (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    sequence bigint NOT NULL DEFAULT 0, -- the highest number in the topic
    next     bigint NOT NULL DEFAULT 0  -- offset
);
INSERT INTO audit_position DEFAULT VALUES;

-- +goose StatementBegin
CREATE FUNCTION audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: its rows are written once and stay', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_stays();
CREATE TRIGGER audit_sequence_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_sequence FOR EACH STATEMENT EXECUTE FUNCTION audit_stays();

-- +goose Down
DROP TABLE audit_position, audit_sequence;
DROP TRIGGER audit_stays ON audit;
DROP FUNCTION audit_stays;
ALTER TABLE audit DROP COLUMN salt;
