package sessions

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
)

// Place returns the place of a session in lists of sessions: the part of its id that tells when and where it was
// made, and 61 random bits. It names the session in addresses of people's pages, which are logged, and opens no page
// of a citizen.
func Place(id string) string { return strings.TrimPrefix(placeOf(id), checkout.PrefixSession) }

// AtPlace returns the session at a place, of one of the applications, with everything that was acknowledged about it. A
// session that was made a moment ago may not be found yet: lists, which wait for it, have shown its place. Errors are
// ErrNotFound, also for a session of another application, ErrBehind and those of ctx.
func (r *Reader) AtPlace(ctx context.Context, place string, applicationIDs []string) (checkout.Session, error) {
	place = checkout.PrefixSession + place
	if len(place) != placeLength || strings.Contains(place, "\x00") {
		return checkout.Session{}, ErrNotFound
	}
	var ids []string
	err := r.query(ctx, func(ctx context.Context) error {
		found, _ := r.cfg.Pool.Query(ctx, atPlace, place, place+afterIDs, applicationIDs)
		var err error
		ids, err = pgx.CollectRows(found, pgx.RowTo[string])
		return err
	})
	switch {
	case err != nil:
		return checkout.Session{}, err
	case len(ids) != 1:
		return checkout.Session{}, ErrNotFound
	}
	return r.ByID(ctx, ids[0])
}

// atPlace finds the session at a place, whose id begins with it. afterIDs sorts after each character of an id.
const (
	atPlace  = `SELECT id FROM sessions WHERE id >= $1 AND id < $2 AND application_id = ANY($3) LIMIT 2`
	afterIDs = "~"
)
