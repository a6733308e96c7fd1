-- +goose Up

-- How many unknown references a client looked up in the UTC hour of its minute. While too many
-- unknown references are looked up, a client that has looked up none goes on.
ALTER TABLE reference_lookups ADD COLUMN unknown integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE reference_lookups DROP COLUMN unknown;
