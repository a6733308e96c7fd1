-- +goose Up

-- The request that sent a code: when the code is entered, that request alone counts as entered.
ALTER TABLE sign_in_codes ADD COLUMN request bigint;

-- For the limit of the whole service: codes by SMS that were sent in an hour, and that were
-- entered in each hour of a week.
CREATE INDEX sign_in_requests_sent ON sign_in_requests (at) WHERE prefix IS NOT NULL AND sent;
CREATE INDEX sign_in_requests_entered ON sign_in_requests (at) WHERE prefix IS NOT NULL AND entered;

-- +goose Down
DROP INDEX sign_in_requests_sent, sign_in_requests_entered;
ALTER TABLE sign_in_codes DROP COLUMN request;
