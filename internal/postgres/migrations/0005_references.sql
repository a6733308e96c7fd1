-- Counters behind payment and notice references, leased in blocks. These rows are
-- records: lose them, and references are given out twice.

-- +goose Up
CREATE TABLE reference_counters (
    name text PRIMARY KEY,
    next bigint NOT NULL CHECK (next >= 0) -- nobody has this number yet
);

-- +goose Down
DROP TABLE reference_counters;
