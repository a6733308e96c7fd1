package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LabelAudit is of the signatures of rows of the audit table: programs that hold the key have written them.
const LabelAudit = "audit rows"

// Signer signs rows of the audit table. *secret.Keys implements it.
type Signer interface {
	Sign(label string, data []byte) ([]byte, error)
}

// signerOf is the name under which a connection keeps its signer.
const signerOf = "quittance audit signer"

// SignedBy returns what makes Record sign the rows that it writes over a connection, for postgres.Open. signer is called
// for each row; it may return nil in a process without keys.
func SignedBy(signer func() Signer) func(*pgx.Conn) {
	return func(conn *pgx.Conn) { conn.PgConn().CustomData()[signerOf] = signer }
}

// Row is a row of the audit table as its signature covers it.
type Row struct {
	At                                        time.Time // whole microseconds, as Postgres stores them
	ActorKind, Actor, Origin, Action, Subject string
	Detail                                    string // a JSON object
	AgencyID                                  string // empty for none
	Salt                                      string // a random UUID: no two rows have the same
}

// Statement returns what the signature of the row signs. It is the same for the row as Postgres returns it.
func (r Row) Statement() ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(r.Detail)))
	d.UseNumber()
	var detail any
	if err := d.Decode(&detail); err != nil {
		return nil, fmt.Errorf("reading the detail: %w", err)
	}
	at := r.At.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
	return json.Marshal([]any{"quittance audit row v1", at, r.ActorKind, r.Actor, r.Origin, r.Action, r.Subject, detail, r.AgencyID, r.Salt})
}

// sign returns the signature of a row; nil without a signer that holds a key.
func sign(tx Execer, r Row) ([]byte, error) {
	of, ok := tx.(interface{ Conn() *pgx.Conn })
	if !ok || of.Conn() == nil {
		return nil, nil
	}
	ask, ok := of.Conn().PgConn().CustomData()[signerOf].(func() Signer)
	if !ok {
		return nil, nil
	}
	signer := ask()
	if signer == nil {
		return nil, nil
	}
	statement, err := r.Statement()
	if err != nil {
		return nil, err
	}
	signature, err := signer.Sign(LabelAudit, statement)
	if err != nil {
		return nil, nil //nolint:nilerr // no key: the relay tells of the row
	}
	return signature, nil
}
