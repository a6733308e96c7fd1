-- A decision about a file that was carried out, rejected or taken back does not come back. Its state is not signed, and its two
-- signatures hold for a day: a role that may write the table could have had it carried out again. The signatures are over the id,
-- so a row keeps its id, and a copy of it cannot take its place. The owner of the tables may do all of it, as ever.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION statement_decision_forward() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    back boolean;
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF TG_TABLE_NAME = 'statement_original_requests' THEN
        back := TG_OP = 'INSERT' AND NEW.approved_by IS NOT NULL
            OR TG_OP = 'UPDATE' AND (NEW.id <> OLD.id OR OLD.approved_by IS NOT NULL AND (NEW.approved_by, NEW.approved_at) IS DISTINCT FROM (OLD.approved_by, OLD.approved_at));
    ELSIF TG_TABLE_NAME = 'statement_exits' THEN
        IF TG_OP = 'INSERT' THEN
            back := NEW.state <> CASE NEW.verdict WHEN 'dismissed' THEN 'approved' ELSE 'requested' END;
        ELSE
            back := NEW.id <> OLD.id OR NEW.verdict <> OLD.verdict OR NEW.state <> OLD.state AND NOT (
                OLD.state = 'requested' OR OLD.state = 'agreed' AND NEW.state = 'approved' OR OLD.state = 'approved' AND NEW.state = 'rejected' AND OLD.verdict = 'dismissed');
        END IF;
    ELSE
        IF TG_OP = 'INSERT' THEN
            back := NEW.state <> 'requested';
        ELSE
            back := NEW.id <> OLD.id OR NEW.state <> OLD.state AND NOT (
                OLD.state = 'requested' AND NEW.state <> 'done' OR OLD.state = 'agreed' AND NEW.state = 'approved' OR OLD.state = 'approved' AND NEW.state IN ('done', 'agreed', 'requested'));
        END IF;
    END IF;
    IF back THEN
        RAISE EXCEPTION 'a decision of % does not go back', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER statement_exits_forward BEFORE INSERT OR UPDATE ON statement_exits FOR EACH ROW EXECUTE FUNCTION statement_decision_forward();
CREATE TRIGGER statement_withdrawals_forward BEFORE INSERT OR UPDATE ON statement_withdrawals FOR EACH ROW EXECUTE FUNCTION statement_decision_forward();
CREATE TRIGGER statement_original_requests_forward BEFORE INSERT OR UPDATE ON statement_original_requests FOR EACH ROW EXECUTE FUNCTION statement_decision_forward();

-- +goose Down
DROP TRIGGER statement_original_requests_forward ON statement_original_requests;
DROP TRIGGER statement_withdrawals_forward ON statement_withdrawals;
DROP TRIGGER statement_exits_forward ON statement_exits;
DROP FUNCTION statement_decision_forward;
