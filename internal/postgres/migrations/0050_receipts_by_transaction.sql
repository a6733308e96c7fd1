-- Those who check a receipt know its transaction. The rows are made again from checkout.events,
-- as in migration 13, so that receipts of earlier payments are known, too: reads answer 503
-- until the sink readmodel has reached the end of the topic.

-- +goose Up
TRUNCATE sessions, readmodel_positions;
ALTER TABLE sessions
    ADD COLUMN transactions text[], -- of the dues of a completed session; else null
    ADD COLUMN paid_at      timestamptz,
    ADD COLUMN reversed_at  timestamptz;
CREATE INDEX sessions_transactions ON sessions USING gin (transactions) WHERE transactions IS NOT NULL;
CREATE INDEX sessions_reversed ON sessions (livemode, paid_at) WHERE reversed_at IS NOT NULL AND transactions IS NOT NULL;

-- +goose Down
ALTER TABLE sessions DROP COLUMN transactions, DROP COLUMN paid_at, DROP COLUMN reversed_at;
