-- The keys that sign receipts (internal/receipts). A key signs the payments from signs_from
-- until the next key of its mode signs. Rows are never deleted: papers stay valid for ever.

-- +goose Up
CREATE TABLE receipt_keys (
    id         uuid PRIMARY KEY, -- bound into the seal
    kid        text COLLATE "C" NOT NULL UNIQUE, -- as tokens name the key
    live       boolean NOT NULL,
    public     bytea NOT NULL CHECK (octet_length(public) = 32),
    sealed     bytea NOT NULL, -- the private part, sealed with a master key
    signs_from timestamptz NOT NULL, -- compared with the time of the payment
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

-- +goose Down
DROP TABLE receipt_keys;
