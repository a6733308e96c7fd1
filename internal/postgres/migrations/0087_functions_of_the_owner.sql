-- What roles do by the owner's rights (docs/design/rights.md, "Databases"). Each function does one thing, so that
-- no role owns, truncates or alters a table, or writes a table of which it needs a lock or a first row.
-- +goose Up

-- Whoever changes the registry may not write its revision otherwise.
ALTER FUNCTION registry_changed() SECURITY DEFINER;

-- A revocation of these members of staff waits for the end of the transaction.
-- +goose StatementBegin
CREATE FUNCTION lock_staff(ids uuid[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM FROM staff WHERE id = ANY(ids) ORDER BY id FOR SHARE;
END $$;
-- +goose StatementEnd

-- The daily tables of deliveries. 1903520116 is the lock of all that make and drop them.
-- +goose StatementBegin
CREATE FUNCTION make_delivery_day(of date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    parent text;
BEGIN
    PERFORM pg_advisory_xact_lock(1903520116);
    FOREACH parent IN ARRAY ARRAY['deliveries', 'delivery_attempts'] LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
            parent || '_' || to_char(of, 'YYYYMMDD'), parent, of, of + 1);
    END LOOP;
END $$;
-- +goose StatementEnd

-- Returns false, and drops nothing, while a delivery of the day is open.
-- +goose StatementBegin
CREATE FUNCTION drop_delivery_day(of date) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    opened boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(1903520116);
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE state NOT IN (''delivered'', ''exhausted'', ''superseded''))', 'deliveries_' || to_char(of, 'YYYYMMDD')) INTO opened;
    IF opened THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %I, %I', 'deliveries_' || to_char(of, 'YYYYMMDD'), 'delivery_attempts_' || to_char(of, 'YYYYMMDD'));
    RETURN true;
END $$;
-- +goose StatementEnd

-- Empties what a rebuild writes again. A transaction that closes a till and began before must not see an empty
-- table of cash, as it would after a TRUNCATE.
-- +goose StatementBegin
CREATE FUNCTION empty_readmodel() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    TRUNCATE sessions, session_events;
    DELETE FROM cash_movements;
    DELETE FROM cashin_reversals;
END $$;
-- +goose StatementEnd

-- Stores the first key of receipts of a mode; false if the mode has one.
-- +goose StatementBegin
CREATE FUNCTION first_receipt_key(id uuid, kid text, live boolean, public bytea, sealed bytea, signs_from timestamptz, created_at timestamptz)
    RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('receipt keys', 0));
    IF EXISTS (SELECT FROM receipt_keys k WHERE k.live = $3) THEN
        RETURN false;
    END IF;
    INSERT INTO receipt_keys (id, kid, live, public, sealed, signs_from, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7);
    RETURN true;
END $$;
-- +goose StatementEnd

-- A caller must not choose which tables an owner's function means: temporary tables come last.
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOREACH f IN ARRAY ARRAY['registry_changed()', 'lock_staff(uuid[])', 'make_delivery_day(date)', 'drop_delivery_day(date)',
        'empty_readmodel()', 'first_receipt_key(uuid, text, boolean, bytea, bytea, timestamptz, timestamptz)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION first_receipt_key, empty_readmodel, drop_delivery_day, make_delivery_day, lock_staff;
ALTER FUNCTION registry_changed() SECURITY INVOKER;
ALTER FUNCTION registry_changed() RESET search_path;
GRANT EXECUTE ON FUNCTION registry_changed() TO PUBLIC;
