-- What people ask for in bulk, and each of its rows: signed where a person was asked, carried out by another role one row at a
-- time (docs/design/portals.md#jobs).

-- +goose Up
CREATE TABLE jobs (
    id              uuid PRIMARY KEY, -- of the form
    kind            text NOT NULL,
    agency_id       uuid REFERENCES agencies, -- whose rows they are; null: of several
    conditions      text NOT NULL,            -- canonical JSON, as it is signed
    ends_at         timestamptz NOT NULL,     -- rows of events before it
    total           integer NOT NULL,         -- rows
    rows_digest     bytea NOT NULL,           -- SHA-256 of what the rows are about, in their order
    maker_kind      text NOT NULL,            -- person, command_line
    maker           text NOT NULL,            -- id of the person, or the user of the machine
    maker_name      text NOT NULL,
    maker_group     text NOT NULL,            -- id of the person's agency; empty: operations
    maker_origin    text NOT NULL,
    made_at         timestamptz NOT NULL,
    state           text NOT NULL,            -- prepared, proposed, running, done, stopped, refused
    proposed_at     timestamptz,
    proposed_signature bytea,
    proposed_proof  uuid REFERENCES decisions,
    decided_by      uuid REFERENCES staff,    -- the second person
    decider         text NOT NULL DEFAULT '',
    decider_group   text NOT NULL DEFAULT '',
    decided_at      timestamptz,
    decided_signature bytea,
    decided_proof   uuid REFERENCES decisions,
    done            integer NOT NULL DEFAULT 0,
    refused         integer NOT NULL DEFAULT 0,
    stopped_by      text NOT NULL DEFAULT '', -- name of who has stopped it
    code            text NOT NULL DEFAULT '', -- why the service has stopped or refused it
    args            jsonb NOT NULL DEFAULT '{}',
    finished_at     timestamptz
);
CREATE UNIQUE INDEX jobs_same ON jobs (kind, conditions) WHERE state IN ('proposed', 'running');
CREATE INDEX jobs_open ON jobs (made_at, id) WHERE state IN ('prepared', 'proposed', 'running');
CREATE INDEX jobs_newest ON jobs (made_at DESC, id DESC);
CREATE INDEX jobs_agency ON jobs (agency_id, made_at DESC, id DESC);

CREATE TABLE job_rows (
    job_id  uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    n       integer NOT NULL, -- from 1, in the order in which they are carried out
    subject text NOT NULL,    -- id of what the row is about
    state   text NOT NULL DEFAULT 'waiting', -- waiting, done, refused
    code    text NOT NULL DEFAULT '',
    args    jsonb NOT NULL DEFAULT '{}',
    done_at timestamptz,
    PRIMARY KEY (job_id, n)
);
CREATE INDEX job_rows_refused ON job_rows (job_id, n) WHERE state = 'refused';

-- A job that has ended does not begin again, and a row is carried out once: their states are not signed. The owner of the tables
-- may do all of it, as ever.
-- +goose StatementBegin
CREATE FUNCTION job_forward() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    back boolean;
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF TG_TABLE_NAME = 'jobs' THEN
        IF TG_OP = 'INSERT' THEN
            back := NEW.state <> 'prepared';
        ELSE
            back := NEW.id <> OLD.id OR OLD.state IN ('done', 'stopped', 'refused') OR NEW.state <> OLD.state AND (
                NEW.state = 'prepared' OR OLD.state = 'running' AND NEW.state = 'proposed');
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        back := NEW.state <> 'waiting';
    ELSE
        back := OLD.state <> 'waiting';
    END IF;
    IF back THEN
        RAISE EXCEPTION 'a row of % does not go back', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER jobs_forward BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION job_forward();
CREATE TRIGGER job_rows_forward BEFORE INSERT OR UPDATE ON job_rows FOR EACH ROW EXECUTE FUNCTION job_forward();

-- +goose Down
DROP TABLE job_rows;
DROP TABLE jobs;
DROP FUNCTION job_forward;
