package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ActorKind says what kind of actor asks for an operation.
type ActorKind string

// The kinds of actors.
const (
	ActorPerson      ActorKind = "person"       // signed in to one of our pages
	ActorKey         ActorKind = "key"          // a program with an API key
	ActorCommandLine ActorKind = "command_line" // a user of a machine that runs our commands
	ActorService     ActorKind = "service"      // a role of the service, at nobody's request
)

// Actor is who asks for an operation, and from where.
type Actor struct {
	Kind ActorKind
	// Name of the actor: the person's id, the key's id, the machine's user, or the role.
	// Never a secret.
	Name string
	// Origin is the client's address or the machine's name; empty when unknown.
	Origin string
}

// Entry is what the audit table records of one operation.
type Entry struct {
	// Action is the noun and the verb, such as "key.revoke".
	Action string
	// Subject is the id of what was changed.
	Subject string
	// AgencyID is the agency that the operation is about; empty for none, several, or one that the
	// noun does not know.
	AgencyID string
	// Detail holds other inputs and results of the operation. It holds no secrets and no
	// personal data. It may be nil.
	Detail map[string]any
}

// Execer is a transaction of Postgres.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// doneWithin bounds the time in which a row about what is done is written.
const doneWithin = 5 * time.Second

// Done returns a context for a row about what is done already: it is written also when the caller waits no longer, within five seconds.
func Done(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), doneWithin)
}

// Record writes an entry to the audit table. Call it in the transaction of the change, so
// that both commit or neither. at is the time of the service's clock in UTC. An actor
// without a kind or a name is an error: the operation must not commit. The row is signed if the
// connection has a signer (SignedBy) that holds a key.
func Record(ctx context.Context, tx Execer, actor Actor, at time.Time, e Entry) error {
	if actor.Kind == "" || actor.Name == "" {
		return errors.New("recording an operation: the actor is unknown")
	}
	detail := e.Detail
	if detail == nil {
		detail = map[string]any{}
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("recording %s: %w", e.Action, err)
	}
	if pool, ok := tx.(*pgxpool.Pool); ok { // one connection, which has the signer
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return Record(ctx, tx, actor, at, e) })
	}
	salt := uuid.NewString()
	signature, err := sign(tx, Row{at, string(actor.Kind), actor.Name, actor.Origin, e.Action, e.Subject, string(text), e.AgencyID, salt})
	if err != nil {
		return fmt.Errorf("recording %s: %w", e.Action, err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail, salt, signature, agency_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::uuid, $9, nullif($10, ''))`,
		at, string(actor.Kind), actor.Name, actor.Origin, e.Action, e.Subject, text, salt, signature, e.AgencyID); err != nil {
		return fmt.Errorf("recording %s: %w", e.Action, err)
	}
	return nil
}

// Args are the values for the text of an Error. They are printable and hold no secrets.
type Args map[string]any

// Error says why an operation was refused: a code with its values. It has no text for
// people. The command line and the pages have their own text for each code, because the
// mend differs (a flag, a button).
type Error struct {
	// Code is the noun and the reason, such as "key.too_many".
	Code string
	// Field is the name of the faulty input, such as application or id; empty when no input
	// is at fault.
	Field string
	Args  Args
}

// Error returns the code, the field and the values, for logs.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(cmp.Or(e.Code, "operation.refused"))
	if e.Field != "" {
		b.WriteString(" field=" + e.Field)
	}
	for _, k := range slices.Sorted(maps.Keys(e.Args)) {
		fmt.Fprintf(&b, " %s=%v", k, e.Args[k])
	}
	return b.String()
}

// Refuse makes an Error.
func Refuse(code, field string, args Args) error {
	return &Error{Code: code, Field: field, Args: args}
}
