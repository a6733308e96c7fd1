package disbursements

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/disbursement"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/money/localtime"
)

// LabelPayees is of the MACs by which payees and their names are known (internal/secret).
const LabelPayees = "batch payees"

// Payees are the payees of an agency's batches, as keyed hashes. Safe for concurrent use.
type Payees struct {
	pool *pgxpool.Pool
	macs *secret.MACs
}

// NewPayees makes it on a migrated database. The error says that the key of LabelPayees is not held.
func NewPayees(pool *pgxpool.Pool, keys *secret.Keys) (*Payees, error) {
	macs, err := keys.MACs(LabelPayees)
	return &Payees{pool, macs}, err
}

// MAC returns the keyed hash of a text of lines.PayeeText or lines.NameText.
func (p *Payees) MAC(text string) lines.MAC { return lines.MAC(p.macs.Append(nil, []byte(text))) }

// earlierHashes are hashes under the master keys before the newest one, with what they are now: rows of before a rotation have them.
type earlierHashes map[lines.MAC]lines.MAC

// now returns what a stored hash is under the newest key, if it is of a text that was added.
func (e earlierHashes) now(stored lines.MAC) lines.MAC {
	if now, ok := e[stored]; ok {
		return now
	}
	return stored
}

// add returns the hash of a text, and all its hashes under any key.
func (p *Payees) add(e earlierHashes, text string) (now lines.MAC, all []lines.MAC) {
	for i, m := range p.macs.All([]byte(text)) {
		all = append(all, lines.MAC(m))
		if i > 0 {
			e[all[i]] = all[0]
		}
	}
	return all[0], all
}

// NewIDs returns what makes ids of batches. The error says that the key of LabelIDs is not held.
func NewIDs(keys *secret.Keys) (disbursement.IDs, error) {
	macs, err := keys.MACs(LabelIDs)
	if err != nil {
		return disbursement.IDs{}, err
	}
	return disbursement.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256(macs.Append(nil, []byte(text))) }), nil
}

const (
	// knownFor is how far back Known looks for payments; lines.Warn warns of these.
	knownFor = 90 * 24 * time.Hour
	// knownAtOnce is how many payees one query asks about.
	knownAtOnce = 1000
)

// The queries read at most so many of the newest rows of a payee or a name, so that the work does not grow with the years, and
// keep those of batches that were sealed and not withdrawn, without lines that paid nobody.
const paidOf = ` AS p
	WHERE (SELECT status FROM disbursement_batches WHERE id = p.batch) IN ('sealed', 'approved', 'releasing', 'done')
	AND coalesce((SELECT status FROM disbursement_lines l WHERE l.batch = p.batch AND l.position = p.position), '') NOT IN ('refused', 'cancelled', 'returned')`

// queryPayments returns payments from a date on, and the last one before. $3 are payees.
const queryPayments = `SELECT u.payee, x.amount, x.currency, x.date FROM unnest($3::bytea[]) AS u (payee), LATERAL (
	(SELECT p.amount, p.currency, p.date FROM (SELECT * FROM disbursement_payees
		WHERE tenant_id = $1 AND livemode = $2 AND payee = u.payee AND date >= $4 ORDER BY date DESC LIMIT 100)` + paidOf + `)
	UNION ALL
	(SELECT p.amount, p.currency, p.date FROM (SELECT * FROM disbursement_payees
		WHERE tenant_id = $1 AND livemode = $2 AND payee = u.payee AND date < $4 ORDER BY date DESC LIMIT 20)` + paidOf + ` LIMIT 1)) AS x`

// queryNames returns the newest payees of names, $3, and whether they were paid under the name.
const queryNames = `SELECT u.name, x.payee, x.paid FROM unnest($3::bytea[]) AS u (name), LATERAL (
	SELECT p.payee, coalesce((SELECT status FROM disbursement_lines l WHERE l.batch = p.batch AND l.position = p.position), '') = 'paid' AS paid FROM (SELECT * FROM disbursement_payees
		WHERE tenant_id = $1 AND livemode = $2 AND name = u.name ORDER BY date DESC LIMIT 100)` + paidOf + `) AS x`

// Known returns what is known of the payees of lines that are paid on a local date: their payments of the last 90 days and the
// accounts of their names, from the newest 100 lines of each, also those that were stored under an earlier master key that the list
// has without :open. Only batches that were sealed and not withdrawn count, and no line
// that paid nobody.
func (p *Payees) Known(ctx context.Context, tenantID string, live bool, date string, list []lines.Line) (known lines.Known, err error) {
	day, err := localtime.Begin(date)
	if err != nil {
		return known, fmt.Errorf("reading the date of a batch: %w", err)
	}
	since := localtime.Day(day.Add(-knownFor))
	known = lines.Known{Payees: map[lines.MAC][]lines.Payment{}, Names: map[lines.MAC][]lines.MAC{}, Paid: map[lines.MAC][]lines.MAC{}}
	before := earlierHashes{}
	for _, l := range list { // a name of one line may have been paid at the account of another one
		p.add(before, lines.PayeeText(l.Content))
	}
	for chunk := range slices.Chunk(list, knownAtOnce) {
		var payees, names [][]byte
		for _, l := range chunk {
			_, payee := p.add(before, lines.PayeeText(l.Content))
			_, name := p.add(before, lines.NameText(l.Content))
			for i := range payee {
				payees, names = append(payees, payee[i][:]), append(names, name[i][:])
			}
		}
		payees, names = distinct(payees), distinct(names)
		rows, _ := p.pool.Query(ctx, queryPayments, tenantID, live, payees, since) // the rows carry its error
		var payee, other []byte
		var payment lines.Payment
		var at time.Time
		_, err := pgx.ForEachRow(rows, []any{&payee, &payment.Amount, &payment.Currency, &at}, func() error {
			payment.Date = at.Format(time.DateOnly)
			of := before.now(lines.MAC(payee))
			known.Payees[of] = append(known.Payees[of], payment)
			return nil
		})
		if err != nil {
			return known, fmt.Errorf("reading payments of payees: %w", err)
		}
		rows, _ = p.pool.Query(ctx, queryNames, tenantID, live, names)
		var wasPaid bool
		_, err = pgx.ForEachRow(rows, []any{&payee, &other, &wasPaid}, func() error {
			name, of := before.now(lines.MAC(payee)), before.now(lines.MAC(other))
			if !slices.Contains(known.Names[name], of) {
				known.Names[name] = append(known.Names[name], of)
			}
			if wasPaid && !slices.Contains(known.Paid[name], of) {
				known.Paid[name] = append(known.Paid[name], of)
			}
			return nil
		})
		if err != nil {
			return known, fmt.Errorf("reading payees of names: %w", err)
		}
	}
	return known, nil
}

func distinct(list [][]byte) [][]byte {
	slices.SortFunc(list, slices.Compare[[]byte])
	return slices.CompactFunc(list, slices.Equal[[]byte])
}

// Keep stores whom a batch pays, once. list is in the order of its positions.
func (p *Payees) Keep(ctx context.Context, b disbursement.Batch, list []lines.Line) error {
	date, err := time.Parse(time.DateOnly, b.Date)
	if err != nil {
		return fmt.Errorf("reading the date of a batch: %w", err)
	}
	_, err = p.pool.CopyFrom(ctx, pgx.Identifier{"disbursement_payees"},
		[]string{"batch", "position", "tenant_id", "livemode", "payee", "name", "amount", "currency", "date"},
		pgx.CopyFromSlice(len(list), func(i int) ([]any, error) {
			c := list[i].Content
			payee, name := p.MAC(lines.PayeeText(c)), p.MAC(lines.NameText(c))
			return []any{b.ID, int32(i), b.TenantID, b.Live, payee[:], name[:], c.Amount, c.Currency, date}, nil //nolint:gosec // below MaxLines
		}))
	if err != nil {
		return fmt.Errorf("storing whom a batch pays: %w", err)
	}
	return nil
}

// paid is a line of an earlier batch.
type paid struct {
	position    int
	payee, name lines.MAC
	amount      int64
}

// of returns whom a batch pays, in the order of positions; none for one that was imported before payees were kept.
func (p *Payees) of(ctx context.Context, batch string) (out []paid, err error) {
	rows, _ := p.pool.Query(ctx, `SELECT position, payee, name, amount FROM disbursement_payees WHERE batch = $1 ORDER BY position`, batch) // the rows carry its error
	var payee, name []byte
	var x paid
	_, err = pgx.ForEachRow(rows, []any{&x.position, &payee, &name, &x.amount}, func() error {
		x.payee, x.name = lines.MAC(payee), lines.MAC(name)
		out = append(out, x)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading whom a batch pays: %w", err)
	}
	return out, nil
}

// sweptAtOnce is how many rows a statement deletes.
const sweptAtOnce = 10_000

// SweepPayees deletes hashes of payees, what operators told of their names, and what imports said, as long after the date of their batch as keys of lines are kept
// after its end (personal.LineKept). Any number of instances may run it at the same time.
func SweepPayees(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	before := localtime.Day(now.Add(-personal.LineKept))
	for _, sql := range []string{
		`DELETE FROM disbursement_payees WHERE ctid = ANY (ARRAY(SELECT ctid FROM disbursement_payees WHERE date < $1::text::date LIMIT $2))`,
		`DELETE FROM disbursement_notes WHERE ctid = ANY (ARRAY(SELECT ctid FROM disbursement_notes WHERE date < $1::text::date LIMIT $2))`,
		`DELETE FROM disbursement_names WHERE ctid = ANY (ARRAY(SELECT ctid FROM disbursement_names WHERE date < $1::text::date LIMIT $2))`,
	} {
		for n := int64(sweptAtOnce); n == sweptAtOnce; { // all lines of a payday are due at once
			done, err := pool.Exec(ctx, sql, before, sweptAtOnce)
			if err != nil {
				return fmt.Errorf("deleting old rows of payees: %w", err)
			}
			n = done.RowsAffected()
		}
	}
	return nil
}

// ForgetPayee deletes the hashes of a line that is erased (personal.Request), which tell whoever has the key whether somebody was
// paid, and what its operator told of the name.
func ForgetPayee(ctx context.Context, tx pgx.Tx, lineID string) error {
	for _, sql := range []string{
		`DELETE FROM disbursement_payees WHERE batch = split_part($1, ':', 1) AND position::text = split_part($1, ':', 2)`,
		`DELETE FROM disbursement_names WHERE batch = split_part($1, ':', 1) AND position::text = split_part($1, ':', 2)`,
	} {
		if _, err := tx.Exec(ctx, sql, lineID); err != nil {
			return fmt.Errorf("deleting the hashes of a line: %w", err)
		}
	}
	return nil
}
