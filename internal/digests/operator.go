package digests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/registry"
)

const (
	// awayAfter is the time between the first and the last call without an answer after which an
	// operator is away.
	awayAfter = 5 * time.Minute
	// awayUntil is the age of the last call without an answer after which nothing is known.
	awayUntil = time.Hour
)

// Call is a call of an operator that was made.
type Call struct {
	Operator string
	Live     bool
	Payouts  bool // it is about paying people; otherwise about collecting money
	AgencyID string
	At       time.Time // its beginning
	// Answered is true when the operator has answered, whatever it said.
	Answered bool
}

// Outage is an operator that does not answer.
type Outage struct {
	Operator string
	Live     bool
	Payouts  bool // calls about payouts have no answer; otherwise those about collections
	// Since is the first call without an answer after the last answer.
	Since time.Time
	// AgencyIDs are the agencies whose calls had no answer since then.
	AgencyIDs []string
}

// Name returns what is away, such as "mtn/live" or "mtn/live/payouts".
func (o Outage) Name() string {
	name := o.Operator + "/" + registry.Mode(o.Live)
	if o.Payouts {
		name += "/payouts"
	}
	return name
}

// operatorMode names a row of operator_answers. Payouts are a product of their own: an operator may collect and not pay.
type operatorMode struct {
	operator      string
	live, payouts bool
}

// answers is a row of operator_answers.
type answers struct {
	answered, since, failed time.Time
	agencies                []string
}

// note adds a call. Calls may come in any order and more than once.
func (a *answers) note(c Call) {
	switch {
	case c.Answered && c.At.After(a.answered):
		a.answered = c.At
		if !a.failed.After(c.At) {
			a.since, a.failed, a.agencies = time.Time{}, time.Time{}, nil
		} else if !a.since.After(c.At) {
			a.since = a.failed // the first one after the answer is not known
		}
	case !c.Answered && c.At.After(a.answered):
		if a.since.IsZero() || c.At.Before(a.since) {
			a.since = c.At
		}
		if c.At.After(a.failed) {
			a.failed = c.At
		}
		if !slices.Contains(a.agencies, c.AgencyID) {
			a.agencies = append(a.agencies, c.AgencyID)
		}
	}
}

// Note records calls. It may be given a call again.
func (s *Store) Note(ctx context.Context, calls []Call) error {
	by := map[operatorMode][]Call{}
	for _, c := range calls {
		k := operatorMode{c.Operator, c.Live, c.Payouts}
		by[k] = append(by[k], c)
	}
	// The order prevents a deadlock between two instances.
	order := slices.SortedFunc(maps.Keys(by), func(a, b operatorMode) int {
		return cmp.Or(cmp.Compare(a.operator, b.operator), cmp.Compare(fmt.Sprint(a.live, a.payouts), fmt.Sprint(b.live, b.payouts)))
	})
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, k := range order {
			if err := noteOperator(ctx, tx, k, by[k]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording answers of operators: %w", err)
	}
	return nil
}

func noteOperator(ctx context.Context, tx pgx.Tx, k operatorMode, calls []Call) error {
	if _, err := tx.Exec(ctx, `INSERT INTO operator_answers (operator, live, payouts) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, k.operator, k.live, k.payouts); err != nil {
		return err
	}
	var a answers
	err := tx.QueryRow(ctx, `SELECT coalesce(answered_at, '0001-01-01Z'), coalesce(failing_since, '0001-01-01Z'), coalesce(failed_at, '0001-01-01Z'), agencies
		FROM operator_answers WHERE operator = $1 AND live = $2 AND payouts = $3 FOR UPDATE`, k.operator, k.live, k.payouts).Scan(&a.answered, &a.since, &a.failed, &a.agencies)
	if err != nil {
		return err
	}
	for _, c := range calls {
		a.note(c)
	}
	_, err = tx.Exec(ctx, `UPDATE operator_answers SET answered_at = $4, failing_since = $5, failed_at = $6, agencies = $7 WHERE operator = $1 AND live = $2 AND payouts = $3`,
		k.operator, k.live, k.payouts, unlessZero(a.answered), unlessZero(a.since), unlessZero(a.failed), append([]string{}, a.agencies...))
	return err
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Outages returns the operators that are away. Sorted by operator.
func (s *Store) Outages(ctx context.Context, now time.Time) ([]Outage, error) {
	all, err := s.Operators(ctx)
	if err != nil {
		return nil, err
	}
	var out []Outage
	for _, o := range all {
		if o.Away(now) {
			out = append(out, Outage{o.Operator, o.Live, o.Payouts, o.FailingSince, o.AgencyIDs})
		}
	}
	return out, nil
}

// OperatorState is what is known of an operator's answers.
type OperatorState struct {
	Operator string
	Live     bool
	Payouts  bool // of calls about payouts; otherwise of those about collections
	// AnsweredAt is the last call with an answer; zero: none.
	AnsweredAt time.Time
	// FailingSince and FailedAt are the first and the last call without an answer after it; zero: none.
	FailingSince, FailedAt time.Time
	// AgencyIDs are the agencies whose calls had no answer since then.
	AgencyIDs []string
}

// Away reports whether the operator does not answer: calls over at least five minutes had no answer, and the last one was made within
// the last hour.
func (s OperatorState) Away(now time.Time) bool {
	return !s.FailingSince.IsZero() && s.FailedAt.Sub(s.FailingSince) >= awayAfter && s.FailedAt.After(now.Add(-awayUntil))
}

// Operators returns what is known of the answers of all operators that were ever called. Sorted by operator.
func (s *Store) Operators(ctx context.Context) ([]OperatorState, error) {
	rows, _ := s.pool.Query(ctx, `SELECT operator, live, payouts, coalesce(answered_at, '0001-01-01Z'), coalesce(failing_since, '0001-01-01Z'), coalesce(failed_at, '0001-01-01Z'), agencies
		FROM operator_answers ORDER BY operator, live DESC, payouts`) // the rows carry its error
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[OperatorState])
	if err != nil {
		return nil, fmt.Errorf("reading the answers of operators: %w", err)
	}
	for i := range out {
		o := &out[i]
		o.AnsweredAt, o.FailingSince, o.FailedAt = o.AnsweredAt.UTC(), o.FailingSince.UTC(), o.FailedAt.UTC()
	}
	return out, nil
}
