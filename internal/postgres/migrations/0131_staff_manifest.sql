-- A manifest of the signed rows of staff, which the staff pages write with a key of their own (internal/signed).

-- +goose Up
CREATE TABLE staff_manifest (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    content   bytea NOT NULL, -- JSON
    signature bytea NOT NULL,
    signed_at timestamptz NOT NULL
);
CREATE TRIGGER staff_manifest_changed AFTER INSERT OR UPDATE OR DELETE ON staff_manifest FOR EACH ROW EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE staff_manifest;
