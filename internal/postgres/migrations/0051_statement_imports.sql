-- Imports of statements (internal/statements/intake). They are records: back them up.

-- +goose Up

-- One row for each account that ever had an import. An import locks it until its end, so that
-- an account has one import at a time. mark is the last accepted statement; null for none.
CREATE TABLE statement_ledgers (
    agency_id uuid NOT NULL,
    live      boolean NOT NULL,
    code      text NOT NULL,
    mark      jsonb,
    PRIMARY KEY (agency_id, live, code),
    FOREIGN KEY (agency_id, live, code) REFERENCES statement_accounts
);

-- An import is pending from before its Kafka transaction until its outcome is known: then it is
-- accepted, or its row is gone. partition and from_offset say where its records begin, if there
-- are any. plan has what acceptance writes. A quarantined import has no records.
CREATE TABLE statement_imports (
    id          uuid PRIMARY KEY,
    agency_id   uuid NOT NULL,
    live        boolean NOT NULL,
    code        text NOT NULL,
    state       text NOT NULL CHECK (state IN ('pending', 'accepted', 'quarantined')),
    digest      text NOT NULL,
    size        bigint NOT NULL,
    profile     text NOT NULL,
    lines       bigint NOT NULL,
    partition   integer NOT NULL,
    from_offset bigint NOT NULL,
    plan        jsonb NOT NULL,
    actor       text NOT NULL,
    imported_at timestamptz NOT NULL,
    FOREIGN KEY (agency_id, live, code) REFERENCES statement_accounts
);
CREATE UNIQUE INDEX statement_imports_pending ON statement_imports (agency_id, live, code) WHERE state = 'pending';
CREATE UNIQUE INDEX statement_imports_digest ON statement_imports (agency_id, live, code, digest) WHERE state <> 'pending';

-- Accepted statements, or pages of them. digest is that of the content.
CREATE TABLE statements (
    agency_id    uuid NOT NULL,
    live         boolean NOT NULL,
    code         text NOT NULL,
    statement_id text NOT NULL,
    page         integer NOT NULL,
    import_id    uuid NOT NULL REFERENCES statement_imports,
    position     integer NOT NULL,
    sequence     bigint NOT NULL,
    last         boolean NOT NULL,
    from_day     text NOT NULL,
    to_day       text NOT NULL,
    balanced     boolean NOT NULL,
    opening      bigint NOT NULL,
    closing      bigint NOT NULL,
    currency     text NOT NULL,
    lines        bigint NOT NULL,
    net          bigint NOT NULL,
    digest       text NOT NULL,
    PRIMARY KEY (agency_id, live, code, statement_id, page)
);
CREATE INDEX ON statements (import_id);

-- The files as they came, compressed and encrypted with a key of their own, which is sealed
-- with a master key.
CREATE TABLE statement_originals (
    id     uuid PRIMARY KEY REFERENCES statement_imports ON DELETE CASCADE,
    sealed bytea NOT NULL
);
CREATE TABLE statement_original_parts (
    id      uuid NOT NULL REFERENCES statement_originals ON DELETE CASCADE,
    part    integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (id, part)
);

-- +goose Down
DROP TABLE statement_original_parts, statement_originals, statements, statement_imports, statement_ledgers;
