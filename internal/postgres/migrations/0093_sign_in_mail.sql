-- +goose Up

-- A keyed hash of the domain of an e-mail address, for the limits of codes by e-mail. Null for a
-- phone number, and in older rows.
ALTER TABLE sign_in_requests ADD COLUMN domain bytea;
CREATE INDEX sign_in_requests_mail_sent ON sign_in_requests (at) WHERE domain IS NOT NULL AND sent;
CREATE INDEX sign_in_requests_mail_entered ON sign_in_requests (at) WHERE domain IS NOT NULL AND entered;
CREATE INDEX sign_in_requests_domain_entered ON sign_in_requests (domain, at) WHERE entered;

-- +goose Down
ALTER TABLE sign_in_requests DROP COLUMN domain;
