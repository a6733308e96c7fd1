-- +goose Up

-- Citizens who sign in to the portal. Their addresses are looked up by a keyed hash; the
-- address itself is sealed with the master key.
CREATE TABLE citizens (
	id uuid PRIMARY KEY,
	locale text NOT NULL CHECK (locale IN ('fr', 'en')),
	created_at timestamptz NOT NULL,
	signed_in_at timestamptz NOT NULL
);

CREATE TABLE citizen_addresses (
	id uuid PRIMARY KEY,
	hash bytea NOT NULL UNIQUE,
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	kind text NOT NULL CHECK (kind IN ('phone', 'email')),
	sealed bytea NOT NULL,
	proven_at timestamptz NOT NULL
);
CREATE INDEX ON citizen_addresses (citizen_id);

-- A code that was sent, for one browser and one address. It is deleted when it is used.
CREATE TABLE sign_in_codes (
	address bytea NOT NULL,
	browser bytea NOT NULL,
	mac bytea NOT NULL,
	tries integer NOT NULL,
	sent_at timestamptz NOT NULL,
	PRIMARY KEY (address, browser)
);
CREATE INDEX ON sign_in_codes (sent_at);

-- Requests for codes, for the limits. Rows of more than eight days are deleted.
CREATE TABLE sign_in_requests (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL,
	client text NOT NULL,
	address bytea NOT NULL,
	prefix bytea,
	sent boolean NOT NULL,
	entered boolean NOT NULL DEFAULT false
);
CREATE INDEX ON sign_in_requests (at);
CREATE INDEX ON sign_in_requests (client, at);
CREATE INDEX ON sign_in_requests (address, at);
CREATE INDEX ON sign_in_requests (prefix, at) WHERE prefix IS NOT NULL;

-- Wrong codes, for the limit of an address over all browsers.
CREATE TABLE sign_in_failures (
	address bytea NOT NULL,
	at timestamptz NOT NULL
);
CREATE INDEX ON sign_in_failures (address, at);

CREATE TABLE citizen_sessions (
	token bytea PRIMARY KEY,
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	created_at timestamptz NOT NULL,
	used_at timestamptz NOT NULL
);
CREATE INDEX ON citizen_sessions (citizen_id);
CREATE INDEX ON citizen_sessions (used_at);

-- A higher epoch of a subject ends its link codes and links.
CREATE TABLE subject_epochs (
	agency_id uuid NOT NULL,
	livemode boolean NOT NULL,
	subject_ref text NOT NULL,
	epoch integer NOT NULL,
	PRIMARY KEY (agency_id, livemode, subject_ref)
);

CREATE TABLE citizen_links (
	id uuid PRIMARY KEY,
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	agency_id uuid NOT NULL,
	livemode boolean NOT NULL,
	subject_ref text NOT NULL,
	proof text NOT NULL CHECK (proof IN ('code', 'contact')),
	created_at timestamptz NOT NULL,
	used_at timestamptz NOT NULL,
	UNIQUE (citizen_id, agency_id, livemode, subject_ref)
);
CREATE INDEX ON citizen_links (agency_id, livemode, subject_ref);
CREATE INDEX ON citizen_links (used_at);

-- Contacts of subjects that an agency has verified. Who signs in with one is linked.
CREATE TABLE subject_contacts (
	agency_id uuid NOT NULL,
	livemode boolean NOT NULL,
	subject_ref text NOT NULL,
	address bytea NOT NULL,
	PRIMARY KEY (agency_id, livemode, subject_ref, address)
);
CREATE INDEX ON subject_contacts (address);

CREATE TABLE link_failures (
	citizen_id uuid NOT NULL REFERENCES citizens ON DELETE CASCADE,
	subject bytea NOT NULL,
	at timestamptz NOT NULL
);
CREATE INDEX ON link_failures (citizen_id, at);
CREATE INDEX ON link_failures (subject, at);
CREATE INDEX ON link_failures (at);

-- +goose Down
DROP TABLE link_failures, subject_contacts, citizen_links, subject_epochs, citizen_sessions, sign_in_failures, sign_in_requests, sign_in_codes, citizen_addresses, citizens;
