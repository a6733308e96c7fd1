-- +goose Up

-- Requests to pay that citizens sent to a phone in the last day. number is a keyed hash of the
-- phone number. A request is open until ends_at, or until somebody finds that it is decided.
CREATE TABLE payment_prompts (
    collection_id uuid PRIMARY KEY,
    number        bytea NOT NULL,
    session_id    text NOT NULL,
    at            timestamptz NOT NULL,
    ends_at       timestamptz NOT NULL
);
CREATE INDEX payment_prompts_number ON payment_prompts (number, at);
CREATE INDEX payment_prompts_at ON payment_prompts (at);

-- +goose Down
DROP TABLE payment_prompts;
