-- A destination that refuses our credentials (401, 403) is held as a whole. The column says since
-- when, so that the first such answer alone is told (internal/deliveries).

-- +goose Up
ALTER TABLE delivery_destinations ADD COLUMN refused_since timestamptz; -- until a delivery is accepted or the destination is resumed
CREATE INDEX delivery_destinations_refused ON delivery_destinations (kind) WHERE refused_since IS NOT NULL;

-- +goose Down
ALTER TABLE delivery_destinations DROP COLUMN refused_since;
