-- Epochs of all link codes (docs/design/citizen.md). The codes of the first epoch have no row.
-- +goose Up
CREATE TABLE link_code_epochs (
	epoch integer PRIMARY KEY CHECK (epoch > 0),
	salt bytea NOT NULL CHECK (length(salt) = 32), -- random: the key of the codes alone does not tell those of a later epoch
	began_at timestamptz NOT NULL,
	former_until timestamptz -- the codes of the epoch before are accepted until then; null: they are not
);

-- +goose Down
DROP TABLE link_code_epochs;
