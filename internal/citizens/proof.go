package citizens

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// LabelAccounts is of the MACs of the rows that open an account, or that show an account what it is linked to. The
// roles that serve accounts have it, and the commands that import contacts.
const LabelAccounts = "citizen accounts"

// provedTables are the tables of those rows, sorted.
var provedTables = []string{"citizen_addresses", "citizen_links", "citizen_passkeys", "citizen_sessions", "subject_contacts"}

// ProvedTables returns the names of the tables whose rows are believed with a proof only, sorted.
func ProvedTables() []string { return append([]string(nil), provedTables...) }

// believes reports whether one of our roles has written a row. It tells Config.Refused of one that somebody else has
// written or changed. row names the row in a log.
func (s *Store) believes(ctx context.Context, mac []byte, table, row string, values []any) bool {
	if signed.VerifyMAC(s.macs, mac, table, values...) {
		return true
	}
	s.cfg.Refused(ctx, table, row)
	return false
}

// The values of a row that its proof covers. What is not in them changes without the account's doing, or decides
// nothing: the last use, and the count of a passkey's signatures.

func sessionValues(token []byte, citizenID string, createdAt time.Time) []any {
	return []any{token, citizenID, createdAt}
}

func addressValues(id string, hash []byte, citizenID, kind string, provenAt time.Time) []any {
	return []any{id, hash, citizenID, kind, provenAt}
}

// passkeyValues covers what proves a passkey and never changes. The library writes the rest of a credential anew at
// each sign-in, and another release of it in another form.
func passkeyValues(id []byte, name, citizenID string, createdAt time.Time, c passkeys.Credential) []any {
	return []any{id, name, citizenID, createdAt, c.ID, c.PublicKey, c.Flags.BackupEligible}
}

func linkValues(citizenID string, l Link) []any {
	return []any{l.ID, citizenID, l.Subject.AgencyID, l.Subject.Live, l.Subject.Ref, l.Proof, l.CreatedAt}
}

func contactValues(subject Subject, address []byte, importedAt time.Time) []any {
	return []any{subject.AgencyID, subject.Live, subject.Ref, address, importedAt}
}

// provedRow is a row of a table of ProvedTables.
type provedRow struct {
	key    []any // as where of provedTable names it
	mac    []byte
	values []any
}

// provedTable is how the rows of a table are proved when they were written by an earlier release, or with an older
// master key.
type provedTable struct {
	name string
	// list selects the rows; where chooses one by its key, from $2 on, which begins at $2.
	list, where string
	// also is set with the MAC.
	also string
	scan func(pgx.Rows) (provedRow, error)
}

var provings = []provedTable{
	{
		name: "citizen_addresses", list: `SELECT id::text, hash, citizen_id::text, kind, coalesce(mac_at, proven_at), mac FROM citizen_addresses`,
		where: `id = $2`, also: `, mac_at = coalesce(mac_at, $3)`,
		scan: func(rows pgx.Rows) (r provedRow, err error) {
			var id, citizenID, kind string
			var hash []byte
			var at time.Time
			err = rows.Scan(&id, &hash, &citizenID, &kind, &at, &r.mac)
			r.key, r.values = []any{id, at}, addressValues(id, hash, citizenID, kind, at)
			return r, err
		},
	},
	{
		name: "citizen_links", list: `SELECT id::text, citizen_id::text, agency_id::text, livemode, subject_ref, proof, created_at, mac FROM citizen_links`, where: `id = $2`,
		scan: func(rows pgx.Rows) (r provedRow, err error) {
			var l Link
			var citizenID string
			err = rows.Scan(&l.ID, &citizenID, &l.Subject.AgencyID, &l.Subject.Live, &l.Subject.Ref, &l.Proof, &l.CreatedAt, &r.mac)
			r.key, r.values = []any{l.ID}, linkValues(citizenID, l)
			return r, err
		},
	},
	{
		name: "citizen_passkeys", list: `SELECT id, name::text, citizen_id::text, created_at, credential, mac FROM citizen_passkeys`, where: `id = $2`,
		scan: func(rows pgx.Rows) (r provedRow, err error) {
			var id, text []byte
			var name, citizenID string
			var at time.Time
			var c passkeys.Credential
			if err = rows.Scan(&id, &name, &citizenID, &at, &text, &r.mac); err != nil {
				return r, err
			}
			// A credential that nothing can read opens nothing, proved or not, and does not stop the others.
			_ = json.Unmarshal(text, &c)
			r.key, r.values = []any{id}, passkeyValues(id, name, citizenID, at, c)
			return r, nil
		},
	},
	{
		name: "citizen_sessions", list: `SELECT token, citizen_id::text, created_at, mac FROM citizen_sessions`, where: `token = $2`,
		scan: func(rows pgx.Rows) (r provedRow, err error) {
			var token []byte
			var citizenID string
			var at time.Time
			err = rows.Scan(&token, &citizenID, &at, &r.mac)
			r.key, r.values = []any{token}, sessionValues(token, citizenID, at)
			return r, err
		},
	},
	{
		name:  "subject_contacts",
		list:  `SELECT agency_id::text, livemode, subject_ref, address, imported_at, mac FROM subject_contacts WHERE linked_at IS NULL AND revoked_at IS NULL`,
		where: `agency_id = $2 AND livemode = $3 AND subject_ref = $4 AND address = $5 AND linked_at IS NULL AND revoked_at IS NULL AND imported_at = $6`,
		scan: func(rows pgx.Rows) (r provedRow, err error) {
			var q Subject
			var address []byte
			var at time.Time
			err = rows.Scan(&q.AgencyID, &q.Live, &q.Ref, &address, &at, &r.mac)
			r.key, r.values = []any{q.AgencyID, q.Live, q.Ref, address, at}, contactValues(q, address, at)
			return r, err
		},
	},
}

// ProveAll proves the rows of accounts that an earlier release has written, all in one transaction, and returns how
// many of each table. It does so once: if a row has a proof, one without was written by somebody else, and it proves
// none. Sign-ins wait until it ends.
func ProveAll(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys) (counts map[string]int, err error) {
	macs, err := keys.MACs(LabelAccounts)
	if err != nil {
		return nil, failed("proving the accounts of citizens", err)
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		counts = map[string]int{}
		for _, t := range provings {
			var proved bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+t.name+` WHERE mac IS NOT NULL)`).Scan(&proved); err != nil || proved {
				return err
			}
		}
		for _, t := range provings {
			done, err := t.prove(ctx, tx, func(r provedRow) []byte { return signed.MAC(macs, t.name, r.values...) })
			if err != nil {
				return err
			}
			if done > 0 {
				counts[t.name] = done
			}
		}
		return nil
	})
	if err != nil {
		return nil, failed("proving the accounts of citizens", err)
	}
	return counts, nil
}

// proveAtOnce is the number of proofs in a batch of statements.
const proveAtOnce = 5000

// prove stores the MACs that mac returns, nil for none, and returns their number.
func (t provedTable) prove(ctx context.Context, tx pgx.Tx, mac func(provedRow) []byte) (done int, err error) {
	rows, err := tx.Query(ctx, t.list)
	if err != nil {
		return 0, err
	}
	all, err := pgx.CollectRows(rows, func(pgx.CollectableRow) (provedRow, error) { return t.scan(rows) })
	if err != nil {
		return 0, err
	}
	batch := &pgx.Batch{}
	for i, r := range all {
		if with := mac(r); with != nil {
			// Not a row that has changed since it was read: the proof would be of what it was.
			args := append(append([]any{with}, r.key...), r.mac)
			batch.Queue(fmt.Sprintf(`UPDATE %s SET mac = $1%s WHERE %s AND mac IS NOT DISTINCT FROM $%d`, t.name, t.also, t.where, len(args)), args...)
			done++
		}
		if batch.Len() == proveAtOnce || i == len(all)-1 {
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return 0, err
			}
			batch = &pgx.Batch{}
		}
	}
	return done, nil
}

// ProveAgain proves the rows of accounts with the newest master key that an older one proves, each table in one
// transaction, recorded in the audit table. A row that no key proves stays as it is, and counts as not opened. Every
// process must have the newest key before. It may be called again.
func ProveAgain(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time) (out []secret.Resealed, err error) {
	macs, err := keys.MACs(LabelAccounts)
	if err != nil {
		return nil, failed("proving the accounts of citizens again", err)
	}
	newest := keys.Entries()[0].ID
	for _, t := range provings {
		c := secret.Resealed{}
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			c = secret.Resealed{Table: "proofs of " + t.name}
			n, err := t.prove(ctx, tx, func(r provedRow) []byte {
				id, ok := signed.MACMadeWith(macs, r.mac, t.name, r.values...)
				switch {
				case r.mac == nil: // nobody has proved it
				case !ok:
					c.Unopened++
				case id == newest:
					c.Before++
				default:
					return signed.MAC(macs, t.name, r.values...)
				}
				return nil
			})
			if c.Sealed = n; err != nil || n == 0 {
				return err
			}
			return operation.Record(ctx, tx, actor, now, operation.Entry{
				Action: "secrets.reseal", Subject: c.Table, Detail: map[string]any{"key": newest, "values": n},
			})
		})
		if err != nil {
			return out, failed("proving "+t.name+" again", err)
		}
		out = append(out, c)
	}
	return out, nil
}

// Proofs counts the rows of accounts by the id of the master key that proves them. Rows that no key of the list proves
// are not counted: no key that is added makes them believed, unless it is one that was taken away too early.
func Proofs(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys) (out []secret.SealedValues, err error) {
	const what = "counting the proofs of accounts"
	macs, err := keys.MACs(LabelAccounts)
	if err != nil {
		return nil, failed(what, err)
	}
	for _, t := range provings {
		counts := secret.SealedValues{Table: "proofs of " + t.name, Keys: map[string]int{}}
		rows, err := pool.Query(ctx, t.list)
		if err != nil {
			return nil, failed(what, err)
		}
		defer rows.Close()
		for rows.Next() {
			r, err := t.scan(rows)
			if err != nil {
				return nil, failed(what, err)
			}
			if id, ok := signed.MACMadeWith(macs, r.mac, t.name, r.values...); ok {
				counts.Keys[id]++
			}
		}
		if err := rows.Err(); err != nil {
			return nil, failed(what, err)
		}
		out = append(out, counts)
	}
	return out, nil
}
