package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/schemas/record"
)

// row is a row of the audit table, with its number.
type row struct {
	id                                                 int64
	at                                                 time.Time
	kind, actor, origin, action, subject, detail, salt string
	signature                                          []byte
	agency                                             *string
	sequence                                           int64 // 0: not numbered
}

// columns are what scan reads. The table is a, its numbers are s.
const columns = `a.id, a.at, a.actor_kind, a.actor, a.origin, a.action, a.subject, a.detail::text, a.salt::text, a.agency_id, coalesce(a.signature, ''), coalesce(s.sequence, 0)`

// targets are the fields of columns.
func (v *row) targets() []any {
	return []any{&v.id, &v.at, &v.kind, &v.actor, &v.origin, &v.action, &v.subject, &v.detail, &v.salt, &v.agency, &v.signature, &v.sequence}
}

// utc returns the row with its time in UTC.
func (v row) utc() row {
	v.at = v.at.UTC()
	return v
}

func scan(r pgx.CollectableRow) (v row, err error) {
	err = r.Scan(v.targets()...)
	return v.utc(), err
}

// digest returns the hash of all columns. It never changes: records have it for ever. A row without an
// agency, as all rows of before are, has the hash that it always had; so a row that gets or loses one is another one.
func (v row) digest() ([sha256.Size]byte, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(v.detail)))
	d.UseNumber()
	var detail any
	if err := d.Decode(&detail); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("reading the detail of row %d of the audit table: %w", v.id, err)
	}
	hashed := []any{"quittance audit v1", strconv.FormatInt(v.id, 10), v.at.Format(time.RFC3339Nano), v.kind, v.actor, v.origin, v.action, v.subject, detail, v.salt}
	if v.agency != nil {
		hashed[0], hashed = "quittance audit v2", append(hashed, *v.agency)
	}
	text, err := json.Marshal(hashed)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("hashing row %d of the audit table: %w", v.id, err)
	}
	return sha256.Sum256(text), nil
}

// What a record says of the signature of its row.
const (
	proofSigned   = "signed"
	proofUnsigned = "unsigned"
)

func (v row) agencyID() string {
	if v.agency == nil {
		return ""
	}
	return *v.agency
}

// proof says whether a program that holds the key has written the row.
func (v row) proof(verify Signatures) string {
	statement, err := operation.Row{At: v.at, ActorKind: v.kind, Actor: v.actor, Origin: v.origin, Action: v.action, Subject: v.subject, Detail: v.detail, AgencyID: v.agencyID(), Salt: v.salt}.Statement()
	if err != nil || len(v.signature) == 0 || !verify(operation.LabelAudit, statement, v.signature) {
		return proofUnsigned
	}
	return proofSigned
}

// record returns the record of the row under a number.
func (v row) record(sequence int64, proof string, now time.Time) (*record.AuditRow, error) {
	digest, err := v.digest()
	return &record.AuditRow{
		Sequence: sequence, RowID: v.id, At: v.at.Truncate(time.Millisecond), ActorKind: v.kind, Actor: v.actor, Action: v.action, Subject: v.subject,
		Digest: digest[:], RecordedAt: now.Truncate(time.Millisecond), Proof: proof,
	}, err
}

// proves reports whether a record is of the row as it is now.
func (v row) proves(r *record.AuditRow) (bool, error) {
	digest, err := v.digest()
	return v.id == r.RowID && bytes.Equal(digest[:], r.Digest), err
}
