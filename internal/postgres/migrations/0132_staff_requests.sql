-- What people ask for on the page about people. The pages sign a request, and the sink cases carries it out
-- (docs/design/staff.md).

-- +goose Up
CREATE TABLE staff_requests (
    id          uuid PRIMARY KEY, -- of the form; what the request makes has the same id
    kind        text NOT NULL,
    agency_id   uuid REFERENCES agencies, -- of the people; null: operations
    asked_by    uuid NOT NULL REFERENCES staff,
    origin      text NOT NULL,            -- address of the browser
    subject     text NOT NULL,            -- id of the person, the invitation, the change or the passkey; empty: a new person
    body        jsonb NOT NULL,
    token_hash  bytea UNIQUE,             -- SHA-256 of the secret of a link
    decision_id uuid UNIQUE REFERENCES decisions, -- what the person's passkey has signed; null: nothing is given
    created_at  timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL,
    state       text NOT NULL,            -- waiting, done, refused
    code        text NOT NULL DEFAULT '', -- why it was refused
    args        jsonb NOT NULL DEFAULT '{}',
    done_at     timestamptz,
    signature   bytea
);
CREATE INDEX staff_requests_waiting ON staff_requests (created_at) WHERE state = 'waiting';
CREATE INDEX staff_requests_asked ON staff_requests (asked_by, created_at);
CREATE TRIGGER staff_requests_changed AFTER INSERT OR DELETE ON staff_requests FOR EACH ROW EXECUTE FUNCTION registry_changed();
CREATE TRIGGER staff_requests_updated AFTER UPDATE ON staff_requests FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION registry_changed();

-- +goose Down
DROP TABLE staff_requests;
