package citizens

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/operation"
)

// Erase deletes the account that an address opens, with all its addresses, sessions and
// links, its codes, the browsers that are known for them, and the contacts that agencies have
// verified. The limits of signing in keep keyed hashes of the address for eight days. Payments keep the account's id, which then names nobody. reason
// is recorded and holds no personal data. erased is false if nothing was stored.
func (s *Store) Erase(ctx context.Context, actor operation.Actor, a contact.Address, reason string) (erased bool, err error) {
	address := s.hash(a)
	err = s.locked(ctx, "erasing a citizen's account", [][]byte{addressLock(address)}, func(tx pgx.Tx) error {
		hashes := [][]byte{address}
		rows, _ := tx.Query(ctx, `SELECT hash FROM citizen_addresses WHERE citizen_id = (SELECT citizen_id FROM citizen_addresses WHERE hash = $1)`, address) // the rows return its error
		others, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return err
		}
		hashes = append(hashes, others...)
		for _, statement := range []string{
			`DELETE FROM citizens WHERE id IN (SELECT citizen_id FROM citizen_addresses WHERE hash = ANY($1))`,
			`DELETE FROM subject_contacts WHERE address = ANY($1)`,
			`DELETE FROM sign_in_codes WHERE address = ANY($1)`,
			`DELETE FROM known_browsers WHERE address = ANY($1)`,
		} {
			tag, err := tx.Exec(ctx, statement, hashes)
			if err != nil {
				return err
			}
			erased = erased || tag.RowsAffected() > 0
		}
		if !erased {
			return nil
		}
		detail := map[string]any{}
		if reason != "" {
			detail["reason"] = reason
		}
		return operation.Record(ctx, tx, actor, s.cfg.Now(), operation.Entry{Action: "citizen.erase", Detail: detail})
	})
	return erased, err
}
