-- Who changes the registry holds this empty table, before its transaction sees anything. The right to lock a
-- table is one to change it; here there is nothing to change (docs/design/rights.md).
-- +goose Up
CREATE TABLE registry_lock ();

-- +goose Down
DROP TABLE registry_lock;
