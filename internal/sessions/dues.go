package sessions

import (
	"cmp"
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/schemas"
)

// dueKey names a due in the column dues. References compare byte for byte.
func dueKey(k checkout.ClaimKey) string {
	return k.TenantID + "|" + strconv.FormatBool(k.Live) + "|" + storable(k.ERPDueRef)
}

// duesOf returns the keys of the dues that the session claims, or has paid even if the money was
// given back; nil for none.
func duesOf(s checkout.Session) (keys []string) {
	if !s.ERP {
		return nil
	}
	for _, due := range s.Dues() {
		if due.ERPDueRef != "" && (s.DueState(due) != checkout.DuePayable || s.Status == checkout.StatusCompleted) {
			keys = append(keys, dueKey(checkout.ClaimKey{TenantID: s.TenantID, Live: s.Live, ERPDueRef: due.ERPDueRef}))
		}
	}
	return keys
}

// claimantsAtMost is the largest number of sessions that Claimants returns.
const claimantsAtMost = 2000

// Claimants returns the sessions of an agency that claim one of the dues or have paid it, also
// those whose money was given back, the newest first. It shows everything that was acknowledged, like Session. Errors are ErrBehind
// and those of ctx.
func (r *Reader) Claimants(ctx context.Context, agencyID string, live bool, refs []string) ([]checkout.Session, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	keys := make([]string, len(refs))
	for i, ref := range refs {
		keys[i] = dueKey(checkout.ClaimKey{TenantID: agencyID, Live: live, ERPDueRef: ref})
	}
	sessions, err := r.read(ctx, []int32{r.cfg.Topology.Partition(schemas.TopicEvents, agencyID)}, func(batch *pgx.Batch, values *[][]byte) {
		batch.Queue(`SELECT snapshot FROM sessions WHERE dues IS NOT NULL AND dues && $1 ORDER BY id DESC LIMIT $2`, keys, claimantsAtMost).Query(collect(values))
	})
	return sessions, err
}

// CitizenFilter selects the completed sessions of a citizen's carts.
type CitizenFilter struct {
	CitizenID string
	Live      bool
	Page      int // from 1; 0 means 1
	PageSize  int // 20 when 0
}

// PaidBy returns a page of what a citizen paid, the newest first, and the total on all pages. A
// payment that was given back later is among them. Errors are ErrBehind and those of ctx.
func (r *Reader) PaidBy(ctx context.Context, f CitizenFilter) (items []checkout.Session, total int64, err error) {
	if f.CitizenID == "" {
		return nil, 0, nil
	}
	partitions := r.allPartitions()
	items, err = r.read(ctx, partitions, func(batch *pgx.Batch, values *[][]byte) {
		const paid = ` FROM sessions WHERE citizen_id = $1 AND livemode = $2 AND status = 'completed'`
		batch.Queue(`SELECT count(*)`+paid, f.CitizenID, f.Live).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
		size := int64(cmp.Or(f.PageSize, defaultPageSize))
		batch.Queue(`SELECT snapshot`+paid+` ORDER BY id DESC LIMIT $3 OFFSET $4`, f.CitizenID, f.Live, size, int64(max(f.Page, 1)-1)*size).Query(collect(values))
	})
	return items, total, err
}

// read waits for what was acknowledged in the partitions, runs the queries of fill in one
// snapshot of the database, and decodes the values that they have collected.
func (r *Reader) read(ctx context.Context, partitions []int32, fill func(batch *pgx.Batch, values *[][]byte)) ([]checkout.Session, error) {
	var values [][]byte
	if err := r.consistent(ctx, partitions, func(batch *pgx.Batch) { fill(batch, &values) }, nil); err != nil {
		return nil, err
	}
	return r.decoded(values)
}
