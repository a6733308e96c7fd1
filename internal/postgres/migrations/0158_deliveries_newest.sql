-- The pages list deliveries of all destinations, the newest first, also those of a kind or in a state
-- (docs/design/lists.md).

-- +goose Up
CREATE INDEX deliveries_newest ON deliveries (occurred_at, delivery_id);
CREATE INDEX deliveries_kind ON deliveries (kind, occurred_at, delivery_id);
CREATE INDEX deliveries_undelivered ON deliveries (state, occurred_at, delivery_id) WHERE state <> 'delivered';

-- +goose Down
DROP INDEX deliveries_undelivered, deliveries_kind, deliveries_newest;
