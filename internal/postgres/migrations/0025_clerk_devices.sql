-- Devices on which a clerk used the key once and chose a PIN: a clerk signs in there with
-- code and PIN. A device that several clerks share has a row for each of them.

-- +goose Up
CREATE TABLE clerk_devices (
    id           uuid PRIMARY KEY,
    device_id    uuid NOT NULL, -- in the cookie of the device
    key_id       uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    agency_id    uuid NOT NULL,
    clerk_code   text NOT NULL,
    live         boolean NOT NULL,
    pin          text NOT NULL,      -- bcrypt
    wrong        integer NOT NULL,   -- PINs since the last right one
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    FOREIGN KEY (agency_id, clerk_code) REFERENCES clerks,
    UNIQUE (device_id, clerk_code)
);
CREATE INDEX clerk_devices_clerk ON clerk_devices (agency_id, clerk_code);
-- A session that ends with its device.
ALTER TABLE clerk_sessions ADD COLUMN device uuid REFERENCES clerk_devices ON DELETE CASCADE;

-- +goose Down
ALTER TABLE clerk_sessions DROP COLUMN device;
DROP TABLE clerk_devices;
