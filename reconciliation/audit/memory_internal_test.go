package audit

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/reconciliation/chain"
	"quittance/schemas"
)

// perMonth is the number of payments of a month.
const perMonth = 2500

// history adds months of payments, each with a confirmation, a line and a match, and a close of each month.
func (s *story) history(months int) {
	begin := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func() *kgo.Record { s.n++; return &kgo.Record{Partition: 0, Offset: s.n} }
	for m := range months {
		first := begin.AddDate(0, m, 0)
		for i := range perMonth {
			n := m*perMonth + i
			day := first.AddDate(0, 0, i%28)
			x := &journal.Expected{
				ID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)), Kind: journal.ExpectedReceived, State: journal.ExpectedCompleted, LocalDate: day, TenantID: tenant, OfferID: "momo", Account: "acc", Currency: "XAF",
				SessionID: fmt.Sprint("cs", n), OperatorRef: fmt.Sprint("R", n), Gross: 1015, DueRefs: []string{fmt.Sprint("DUE", n)}, TransactionIDs: []string{fmt.Sprint("tx", n)}, Amounts: []int64{1000},
			}
			s.expect(schemas.TopicEvents, at(), x)
			s.add(schemas.TopicEvents, at(), fact{Confirmed: &confirmed{fmt.Sprint("tx", n), fmt.Sprint("evt_", n)}})
			row := fmt.Sprintf("%s/L#%d", day.Format(time.DateOnly), n)
			s.add(schemas.TopicEvents, at(), fact{Line: &line{row, row[:10], "mtn"}})
			s.add(schemas.TopicEvents, at(), fact{Finding: &finding{fmt.Sprint("m", n), "mtn", journal.FindingOpen, 1, []string{x.Row()}, []string{row}}})
		}
		s.addClose(&journal.Close{
			ID: fmt.Sprint("mtn", m), TenantID: tenant, Account: "mtn", ToDay: first.AddDate(0, 1, -1), State: journal.CloseClosed, SourceOffset: at().Offset, Watermarks: map[string]int64{"checkout.events/0": s.n},
			MoneyOf: []string{tenant + "/XAF/momo/acc"}, ChainVersion: chain.Version,
		})
	}
}

// live returns the bytes of the heap that are in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The closes of four times as many months need no more memory. Not parallel: it measures the heap of the process.
func TestMemoryDoesNotGrowWithHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("computes the closes of 75,000 payments")
	}
	most := func(months int) (peak int64) {
		before := live()
		s := newStory(t)
		s.history(months)
		closes := 0
		if err := s.EachOf("mtn", func(c *Close) error {
			if closes++; c.Rows != perMonth {
				t.Fatalf("close %d has %d rows", closes, c.Rows)
			}
			peak = max(peak, live()-before)
			return nil
		}); err != nil || closes != months {
			t.Fatalf("%d closes, %v", closes, err)
		}
		return peak
	}
	const n = 6
	few, many := most(n), most(4*n)
	ratio := float64(many) / float64(few)
	t.Logf("%d months: %d KiB; %d months: %d KiB; ratio %.2f", n, few>>10, 4*n, many>>10, ratio)
	if ratio > 1.3 {
		t.Error("the memory grows with the history")
	}
}
