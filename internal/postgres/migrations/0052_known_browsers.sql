-- +goose Up

-- Browsers in which a code of an address was entered. They have limits of their own, so that
-- nobody who only knows the address can use them up. key is a hash of the address and of what
-- the browser's cookie says; it signs nobody in.
CREATE TABLE known_browsers (
	key bytea PRIMARY KEY,
	address bytea NOT NULL,
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	used_at timestamptz NOT NULL
);
CREATE INDEX ON known_browsers (address);
CREATE INDEX ON known_browsers (citizen_id);
CREATE INDEX ON known_browsers (used_at);

-- The known browser that asked; null for any other.
ALTER TABLE sign_in_requests ADD COLUMN known bytea;
ALTER TABLE sign_in_codes ADD COLUMN known bytea;
ALTER TABLE sign_in_failures ADD COLUMN known bytea;

-- +goose Down
ALTER TABLE sign_in_failures DROP COLUMN known;
ALTER TABLE sign_in_codes DROP COLUMN known;
ALTER TABLE sign_in_requests DROP COLUMN known;
DROP TABLE known_browsers;
