-- The read model keeps the snapshot of a session as its event carried it, beside the
-- columns that are searched. The rows are made again from checkout.events: reads
-- answer 503 until the sink readmodel has reached the end of the topic.
--
-- Reads of a session and lists wait for the positions, which start over with the
-- rows. Only the live status of pages may miss a session until its row is there again.
-- Instances of an older version, which may remember older positions, select and write
-- columns that are gone: their reads fail, and their writes are rolled back.

-- +goose Up
TRUNCATE sessions, readmodel_positions;
ALTER TABLE sessions
    ADD COLUMN snapshot bytea NOT NULL, -- value of the event: schema id and Avro; without contact data
    DROP COLUMN tenant_id, DROP COLUMN platform, DROP COLUMN amount, DROP COLUMN currency, DROP COLUMN mode,
    DROP COLUMN service_code, DROP COLUMN service_label, DROP COLUMN description, DROP COLUMN note, DROP COLUMN metadata,
    DROP COLUMN success_url, DROP COLUMN cancel_url, DROP COLUMN notice_id, DROP COLUMN notice_ref, DROP COLUMN transaction_id,
    DROP COLUMN offers, DROP COLUMN created_at, DROP COLUMN expires_at, DROP COLUMN ended_at, DROP COLUMN collection,
    DROP COLUMN failure_code, DROP COLUMN failure_message, DROP COLUMN client_secret_hash;

-- +goose Down
TRUNCATE sessions, readmodel_positions;
ALTER TABLE sessions
    DROP COLUMN snapshot,
    ADD COLUMN tenant_id text COLLATE "C" NOT NULL, ADD COLUMN platform boolean NOT NULL, ADD COLUMN amount bigint NOT NULL,
    ADD COLUMN currency text NOT NULL, ADD COLUMN mode text NOT NULL, ADD COLUMN service_code text, ADD COLUMN service_label text,
    ADD COLUMN description text, ADD COLUMN note text, ADD COLUMN metadata jsonb NOT NULL, ADD COLUMN success_url text, ADD COLUMN cancel_url text,
    ADD COLUMN notice_id text NOT NULL, ADD COLUMN notice_ref text NOT NULL, ADD COLUMN transaction_id text NOT NULL, ADD COLUMN offers jsonb NOT NULL,
    ADD COLUMN created_at timestamptz NOT NULL, ADD COLUMN expires_at timestamptz NOT NULL, ADD COLUMN ended_at timestamptz, ADD COLUMN collection jsonb,
    ADD COLUMN failure_code text, ADD COLUMN failure_message text, ADD COLUMN client_secret_hash bytea;
