-- +goose Up

-- Receipts that people asked for on the page of a payment, in the last day, for the limits
-- (docs/design/limits.md). message_id is that of the message. address and the networks are keyed hashes.
CREATE TABLE receipt_requests (
    message_id text PRIMARY KEY,
    session_id text NOT NULL,
    address    bytea NOT NULL,
    client     bytea NOT NULL,
    site       bytea NOT NULL,
    provider   bytea NOT NULL,
    at         timestamptz NOT NULL
);
CREATE INDEX receipt_requests_session ON receipt_requests (session_id, at);
CREATE INDEX receipt_requests_address ON receipt_requests (address, at);
CREATE INDEX receipt_requests_client ON receipt_requests (client, at);
CREATE INDEX receipt_requests_site ON receipt_requests (site, at);
CREATE INDEX receipt_requests_provider ON receipt_requests (provider, at);
CREATE INDEX receipt_requests_at ON receipt_requests (at);

-- +goose Down
DROP TABLE receipt_requests;
