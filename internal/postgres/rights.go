package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Right is the least that a user of the database needs for something. Verb is SELECT, INSERT, UPDATE or DELETE of
// the table On, or EXECUTE of the function On, which is written with the types of its arguments. An UPDATE with a
// Column is of that column alone.
type Right struct {
	Verb, On, Column string
}

// String returns the right as errors name it: UPDATE of api_keys (last_used_at).
func (r Right) String() string {
	if r.Column != "" {
		return r.Verb + " of " + r.On + " (" + r.Column + ")"
	}
	return r.Verb + " of " + r.On
}

// ByName orders rights by what they are of, then by their verbs.
func ByName(a, b Right) int {
	return cmp.Or(strings.Compare(a.On, b.On), strings.Compare(a.Verb, b.Verb), strings.Compare(a.Column, b.Column))
}

// Errors of users of the database.
var (
	// ErrRights: the user lacks rights.
	ErrRights = errors.New("rights are missing in Postgres")
	// ErrExcess: the user has rights that it must not have.
	ErrExcess = errors.New("the user of Postgres may do more than it needs")
)

// mostNamed is how many rights an error names.
const mostNamed = 5

// CheckRights asks the database which of the rights its user lacks. The error wraps ErrRights and names the user and
// what it lacks.
func CheckRights(ctx context.Context, pool *pgxpool.Pool, rights []Right) error {
	verbs, on, columns := columnsOf(rights)
	rows, _ := pool.Query(ctx, `
		SELECT verb, name, col FROM unnest($1::text[], $2::text[], $3::text[]) AS listed (verb, name, col)
		WHERE NOT coalesce(CASE
			WHEN verb = 'EXECUTE' THEN has_function_privilege(to_regprocedure(name), verb)
			WHEN col <> '' THEN has_column_privilege(to_regclass(name), col, verb)
			ELSE has_table_privilege(to_regclass(name), verb) END, false)
		ORDER BY name, verb, col`, verbs, on, columns) // the rows return its error
	lacking, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Right])
	if err != nil {
		return fmt.Errorf("reading the rights of the user of Postgres: %w", err)
	}
	if len(lacking) == 0 {
		return nil
	}
	user, err := currentUser(ctx, pool)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: the user %s lacks %s", ErrRights, user, naming(texts(lacking)))
}

// CheckExcess asks the database whether the user of its session may do what rights do not list: anything that changes
// rows or tables, or calls a function of the owner. Reading more is no excess. The error wraps ErrExcess and names the
// user and what it may do too much.
func CheckExcess(ctx context.Context, pool *pgxpool.Pool, rights []Right) error {
	excess, err := askedTexts(ctx, pool, tooMighty)
	if err != nil {
		return err
	}
	if len(excess) == 0 { // whoever owns everything may do everything: the list would be long and say nothing
		verbs, on, columns := columnsOf(rights)
		if excess, err = askedTexts(ctx, pool, unlisted, verbs, on, columns); err != nil {
			return err
		}
		if len(excess) > 0 {
			excess[0] = "has " + excess[0]
		}
	}
	if len(excess) == 0 {
		return nil
	}
	var user string
	if err := pool.QueryRow(ctx, `SELECT session_user`).Scan(&user); err != nil {
		return fmt.Errorf("asking for the user of Postgres: %w", err)
	}
	return fmt.Errorf("%w: %s %s", ErrExcess, user, naming(excess))
}

// tooMighty returns why no list of rights bounds the user of the session. The user that a session has set
// (SET ROLE) can be reset, so it does not count.
const tooMighty = `
	SELECT 'is a superuser' FROM pg_roles WHERE rolname = session_user AND rolsuper
	UNION ALL SELECT 'has BYPASSRLS' FROM pg_roles WHERE rolname = session_user AND rolbypassrls
	UNION ALL SELECT 'has CREATEROLE' FROM pg_roles WHERE rolname = session_user AND rolcreaterole
	UNION ALL SELECT 'owns the schema ' || nspname FROM pg_namespace WHERE nspname = current_schema() AND pg_has_role(session_user, nspowner, 'MEMBER')
	UNION ALL SELECT 'may create in the schema ' || current_schema() WHERE has_schema_privilege(session_user, current_schema(), 'CREATE')
	UNION ALL (SELECT 'owns the table ' || min(relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE nspname = current_schema() AND relkind IN ('r', 'p') AND pg_has_role(session_user, relowner, 'MEMBER') HAVING count(*) > 0)`

// unlisted returns the rights of the user of the session that are not listed and change something.
const unlisted = `
	WITH listed AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS l (verb, name, col)),
	tables AS (SELECT c.oid, relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')),
	verbs AS (SELECT unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER']) AS verb)
	SELECT verb || ' of ' || name FROM tables, verbs
	WHERE has_table_privilege(session_user, oid, verb)
		AND NOT EXISTS (SELECT FROM listed l WHERE l.verb = verbs.verb AND l.name = tables.name AND l.col = '')
	UNION ALL
	SELECT verb || ' of ' || name || ' (' || attname || ')' FROM tables JOIN pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped, verbs
	WHERE verb IN ('INSERT', 'UPDATE') AND has_column_privilege(session_user, oid, attnum, verb) AND NOT has_table_privilege(session_user, oid, verb)
		AND NOT EXISTS (SELECT FROM listed l WHERE l.verb = verbs.verb AND l.name = tables.name AND l.col IN ('', attname))
	UNION ALL
	SELECT 'EXECUTE of ' || p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE nspname = current_schema() AND prosecdef AND has_function_privilege(session_user, p.oid, 'EXECUTE')
		AND NOT EXISTS (SELECT FROM listed l WHERE l.verb = 'EXECUTE' AND to_regprocedure(l.name) = p.oid)
	ORDER BY 1`

func askedTexts(ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) ([]string, error) {
	rows, _ := pool.Query(ctx, sql, args...) // the rows return its error
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reading the rights of the user of Postgres: %w", err)
	}
	return out, nil
}

func currentUser(ctx context.Context, pool *pgxpool.Pool) (user string, err error) {
	if err = pool.QueryRow(ctx, `SELECT current_user`).Scan(&user); err != nil {
		return "", fmt.Errorf("asking for the user of Postgres: %w", err)
	}
	return user, nil
}

func texts(rights []Right) []string {
	out := make([]string, len(rights))
	for i, r := range rights {
		out[i] = r.String()
	}
	return out
}

// naming joins the first texts and says how many others there are.
func naming(all []string) string {
	if more := len(all) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostNamed], ", "), more)
	}
	return strings.Join(all, ", ")
}

func columnsOf(rights []Right) (verbs, on, columns []string) {
	for _, r := range rights {
		verbs, on, columns = append(verbs, r.Verb), append(on, r.On), append(columns, r.Column)
	}
	return verbs, on, columns
}

// Grants returns the statements that give a group of users the rights, and make the group unless there is one. With
// revoke they take from it all other rights in the schema. They are to run in one transaction, by the owner of the
// tables or a superuser. group and schema are names that need no quotes.
func Grants(schema, group string, rights []Right, revoke bool) []string {
	out := []string{makeGroup(group)}
	if revoke {
		for _, kind := range []string{"TABLES", "SEQUENCES", "FUNCTIONS"} {
			out = append(out, fmt.Sprintf("REVOKE ALL ON ALL %s IN SCHEMA %s FROM %s;", kind, schema, group))
		}
		out = append(out, fmt.Sprintf("REVOKE ALL ON SCHEMA %s FROM %s;", schema, group))
	}
	out = append(out, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;", schema, group))
	for _, g := range Grouped(rights) {
		kind, names := "", make([]string, len(g.On))
		if g.Verbs[0] == "EXECUTE" {
			kind = "FUNCTION "
		}
		for i, name := range g.On {
			names[i] = schema + "." + name
		}
		out = append(out, fmt.Sprintf("GRANT %s ON %s%s TO %s;", strings.Join(g.Verbs, ", "), kind, strings.Join(names, ", "), group))
	}
	return out
}

// Owner returns the statements that make the group of the user that migrates, and give it all tables and functions of
// the schema. They are to run by a superuser.
func Owner(schema, group string) []string {
	return []string{
		makeGroup(group),
		fmt.Sprintf("GRANT USAGE, CREATE ON SCHEMA %s TO %s;", schema, group),
		// Who may create in the schema could put tables in the way of others.
		fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM PUBLIC;", schema),
		fmt.Sprintf(`DO $$
DECLARE
    name regclass;
    f regprocedure;
BEGIN
    FOR name IN SELECT c.oid FROM pg_class c WHERE relnamespace = '%[1]s'::regnamespace AND relkind IN ('r', 'p') AND relowner <> '%[2]s'::regrole LOOP
        EXECUTE format('ALTER TABLE %%s OWNER TO %[2]s', name);
    END LOOP;
    FOR f IN SELECT p.oid FROM pg_proc p WHERE pronamespace = '%[1]s'::regnamespace AND prokind = 'f' AND proowner <> '%[2]s'::regrole
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e') LOOP
        EXECUTE format('ALTER FUNCTION %%s OWNER TO %[2]s', f);
    END LOOP;
END $$;`, schema, group),
	}
}

func makeGroup(group string) string {
	return fmt.Sprintf(`DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '%[1]s') THEN
        CREATE ROLE %[1]s NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- somebody made it meanwhile
END $$;`, group)
}

// SameRights are tables, or functions, of which a user may do the same. An INSERT or an UPDATE of columns is one verb
// with them: UPDATE (last_used_at).
type SameRights struct {
	Verbs, On []string
}

// Grouped groups rights, sorted by what they are of.
func Grouped(rights []Right) []SameRights {
	verbs, columns := map[string][]string{}, map[Right][]string{}
	sorted := slices.SortedFunc(slices.Values(rights), ByName)
	for _, r := range sorted {
		if r.Column == "" {
			verbs[r.On] = append(verbs[r.On], r.Verb)
		}
	}
	for _, r := range sorted { // rights on columns follow
		if r.Column == "" {
			continue
		}
		of := Right{Verb: r.Verb, On: r.On}
		if columns[of] = append(columns[of], r.Column); len(columns[of]) == 1 {
			verbs[r.On] = append(verbs[r.On], "")
		}
		verbs[r.On][len(verbs[r.On])-1] = r.Verb + " (" + strings.Join(columns[of], ", ") + ")"
	}
	var out []SameRights
	for _, on := range slices.Sorted(maps.Keys(verbs)) {
		i := slices.IndexFunc(out, func(g SameRights) bool { return slices.Equal(g.Verbs, verbs[on]) })
		if i < 0 {
			out, i = append(out, SameRights{Verbs: verbs[on]}), len(out)
		}
		out[i].On = append(out[i].On, on)
	}
	return out
}

// Execute runs statements that make users and rights, in one transaction of a connection of its own.
func Execute(ctx context.Context, address string, statements []string) error {
	pool, err := Open(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}
