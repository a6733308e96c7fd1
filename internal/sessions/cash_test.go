package sessions_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	readmodel "quittance/internal/sessions"
)

// morning is 9 o’clock in Brazzaville.
var morning = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func paidInCash(n int, clerk string, at time.Time) checkout.Session {
	s := session(n, appA)
	s.Status, s.Sequence, s.EndedAt, s.ServiceLabel, s.NoticeRef = checkout.StatusCompleted, 3, at, "Patente", fmt.Sprintf("AV2026%010d", n)
	s.Collection = &checkout.Collection{
		ID: fmt.Sprint("collection-", n), OfferID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Status: checkout.CollectionApproved, Amount: int64(1000 + n), Currency: "XAF",
		Clerk: clerk, DecidedAt: at, Account: "Hall", OperatorRef: fmt.Sprint("R-", n),
	}
	return s
}

// A clerk's day has each movement once, however often and in whichever order its session is
// applied, and exact sums.
func TestCash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	w.run(t)
	var all []checkout.Session
	var sum int64
	for n := range 7 {
		all = append(all, paidInCash(n, "c01", morning.Add(time.Duration(n)*time.Minute)))
		sum += int64(1000 + n)
	}
	all[2].Collection.ReversedBy, all[2].Collection.ReversedAt, all[2].Sequence = "c02", morning.Add(time.Hour), 4
	beside := session(20, appA)
	beside.Sequence, beside.Cases = 5, []checkout.Case{{
		Case:         casework.Case{ID: "case", Kind: checkout.CaseOrphan, Amount: 50, Currency: "XAF", By: "c01", OpenedAt: morning.Add(time.Hour), Resolution: checkout.ResolutionCashReturned, ClosedBy: "c01", ClosedAt: morning.Add(2 * time.Hour)},
		CollectionID: "beside", Account: "Hall",
	}}
	yesterday := paidInCash(30, "c01", morning.Add(-9*time.Hour-time.Second)) // 23:59:59 in Brazzaville
	midnight := paidInCash(31, "c01", morning.Add(-9*time.Hour))
	live, foreign := paidInCash(32, "c01", morning), session(33, appB)
	live.Live = true
	foreign.Collection = paidInCash(33, "c01", morning).Collection
	all = append(all, beside, yesterday, midnight, live, foreign, paidInCash(34, "c03", morning))
	for range 2 {
		if err := w.store.Apply(t.Context(), snapshots(t, w.codec, all...), nil); err != nil {
			t.Fatal(err)
		}
	}
	day := readmodel.CashFilter{AgencyID: agency(appA), Clerk: "c01", Day: "2026-11-22", PageSize: 5}
	got, err := w.reader.Cash(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	want := readmodel.CashDay{Entries: got.Entries, Found: 10, Taken: readmodel.CashSum{Count: 9, Amount: sum + 50 + 1031}, Returned: readmodel.CashSum{Count: 1, Amount: 50}}
	if !reflect.DeepEqual(got, want) || len(got.Entries) != 5 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if e := got.Entries[2]; e.CollectionID != "collection-6" || e.ReturnedBy != "" || !e.At.Equal(morning.Add(6*time.Minute)) || e.Receipt != "R-6" || e.Counter != "Hall" || e.PaymentRef != all[6].PaymentRef ||
		!reflect.DeepEqual(e.NoticeRefs, []string{"AV20260000000006"}) || e.Amount != 1006 || e.ServiceLabel != "Patente" {
		t.Errorf("the third is %+v", e)
	}
	for search, found := range map[string]int64{"r-4": 1, "0000 0000 0000 0004": 1, "1002": 1, "PATENTE": 8, "AV20260000000005": 1, "%": 0, "'": 0, "nothing": 0} {
		f := day
		f.Search = search
		if got, err := w.reader.Cash(t.Context(), f); err != nil || got.Found != found || got.Taken != want.Taken {
			t.Errorf("%q finds %+v, %v; want %d", search, got, err, found)
		}
	}
	f := day
	f.Search = "1002"
	if got, _ := w.reader.Cash(t.Context(), f); len(got.Entries) != 1 || got.Entries[0].ReturnedBy != "c02" {
		t.Errorf("cash that another gave back: %+v", got)
	}
	f = day
	f.Page = 2
	if got, err := w.reader.Cash(t.Context(), f); err != nil || len(got.Entries) != 5 || got.Entries[4].CollectionID != "collection-31" {
		t.Errorf("the second page is %+v, %v", got, err)
	}
	f = day
	f.Clerk = "c02"
	if got, err := w.reader.Cash(t.Context(), f); err != nil || got.Returned != (readmodel.CashSum{Count: 1, Amount: 1002}) || got.Taken.Count != 0 {
		t.Errorf("who gave it back: %+v, %v", got, err)
	}
	if err := w.store.Empty(t.Context(), operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, morning, w.events, map[int32]int64{0: 0, 1: 0}); err != nil {
		t.Fatal(err)
	}
	if got, err := w.reader.Cash(t.Context(), day); err != nil || got.Found != 0 {
		t.Errorf("an emptied read model has %+v, %v", got, err)
	}
}

// Completed payments of the cash-in surface whose money was given back are rows, once each
// and whichever event is applied, until the read model is emptied.
func TestCashinReversals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	var all []checkout.Session
	for n := range 4 {
		s := session(n, appA)
		s.Sequence, s.Status, s.EndedAt, s.OrderID, s.Amount = 5, checkout.StatusCompleted, morning, fmt.Sprintf("case-%d", n), 5000
		s.Cashin = &checkout.Cashin{Kind: checkout.CashinInit, PaymentID: int64(n + 1), Number: fmt.Sprintf("T2611%06d", n+1)}
		s.ReversedAt, s.ReversalReason = morning.Add(time.Hour), checkout.ReversalRefunded
		all = append(all, s)
	}
	all[1].ReversedAt = time.Time{}       // keeps its money
	all[2].Cashin = nil                   // of the ministry API
	all[3].Status = checkout.StatusFailed // late money, of which the partner heard nothing
	archived := all[0]
	archived.Sequence, archived.Archived = 6, true
	for _, batch := range [][]checkout.Session{all, {archived}, all} {
		if err := w.store.Apply(t.Context(), snapshots(t, w.codec, batch...), nil); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() (text string) {
		if err := w.pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(concat_ws(' ', session_id = $1, application_id = $2, livemode, number, external_number, amount, reason, reversed_at = $3), ';'), '') FROM cashin_reversals`,
			all[0].ID, appA, morning.Add(time.Hour)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := rows(); got != "t t f T2611000001 case-0 5000 refunded t" {
		t.Errorf("reversals: %s", got)
	}
	if err := w.store.Empty(t.Context(), operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, morning, w.events, map[int32]int64{0: 0}); err != nil {
		t.Fatal(err)
	}
	if got := rows(); got != "" {
		t.Errorf("an emptied read model has %s", got)
	}
}

// A transaction sees all movements that were acknowledged before it began, also while a
// rebuild empties the read model, and it is repeated when another one was first.
func TestTransact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	w.run(t)
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, paidInCash(1, "c01", morning)), nil); err != nil {
		t.Fatal(err)
	}
	emptied, times := false, 0
	err := w.reader.Transact(t.Context(), agency(appA), func(ctx context.Context, tx pgx.Tx) error {
		times++
		if !emptied {
			emptied = true
			if err := w.store.Empty(ctx, operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, morning, w.events, map[int32]int64{0: 0, 1: 0}); err != nil {
				return err
			}
		}
		n := 0
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM cash_movements`).Scan(&n); err != nil || n != 1 {
			return fmt.Errorf("%d movements, %w", n, err)
		}
		return nil
	})
	if err != nil || times != 1 {
		t.Errorf("%v after %d times", err, times)
	}

	times = 0
	err = w.reader.Transact(t.Context(), agency(appA), func(ctx context.Context, tx pgx.Tx) error {
		times++
		if times == 1 {
			if _, err := tx.Exec(ctx, `SELECT 1`); err != nil {
				return err
			}
			if err := w.store.Apply(ctx, nil, []consume.Move{{Topic: w.events, Partition: 0, From: 0, To: 1}}); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE readmodel_positions SET next = next WHERE topic = $1`, w.events)
		return err
	})
	if err != nil || times != 2 {
		t.Errorf("%v after %d times", err, times)
	}
}
