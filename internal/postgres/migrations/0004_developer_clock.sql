-- How far developer mode's clock is ahead of the machines'. internal/clock reads
-- and writes it; nothing does outside developer mode.

-- +goose Up
CREATE TABLE developer_clock (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    offset_ms bigint NOT NULL CHECK (offset_ms >= 0)
);

-- +goose Down
DROP TABLE developer_clock;
