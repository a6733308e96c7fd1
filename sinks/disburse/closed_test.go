package disburse_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"quittance/disbursement"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/payouts"
	"quittance/test/payroll"
)

// An operator refuses the settings of an agency's account: Airtel the PIN, MTN the keys. Each of the 60 lines was requested, up to
// 256 at a time, and again and again, and the operator locked the account. Now one line tries the account, and nothing more
// until a person says so.
func TestRefusedSettingsAreTriedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ account, payee string }{{"airtel", "242055000001"}, {"mtn", number("01")}} {
		t.Run(c.account, func(t *testing.T) {
			t.Parallel()
			r := newRail(t)
			r.Process()
			r.Agency()
			r.refuses.Store(true)
			var all []disbursement.NewLine
			for k := range 60 {
				all = append(all, payroll.LineTo(c.payee, fmt.Sprintf("line-%03d", k), c.account, "", int64(1000+k)))
			}
			h := &history{rail: r, events: payouts.NewReader[record.DisbursementEvent](r.Installation, schemas.Disbursement.Events)}
			r.sink()
			b := r.Released("dsb_1", all...)
			h.until("the account is closed", func() bool { return h.closed == 1 && h.batch.Lines.Ready.Count == 60 })
			r.Advance(20 * time.Minute) // an account without funds would be tried
			try := disbursement.TryAccount{By: "cleo", Account: c.account}
			r.OK(processor.SenderOffice, b.ID, try)
			h.until("the account is closed again", func() bool { return h.closed == 2 && h.batch.Lines.Ready.Count == 60 })
			if n := r.pins.Load(); c.account == "airtel" && n != 2 {
				t.Errorf("%d PINs were tried, want one at first and one when a person asked for it", n)
			}
			var book []payment
			if r.call(http.MethodGet, "/control/payouts?operator="+c.account, &book); len(book) != 0 {
				t.Errorf("%d payouts", len(book))
			}
			r.refuses.Store(false)
			r.OK(processor.SenderOffice, b.ID, try)
			h.until("the batch is paid", func() bool {
				if h.batch.Lines.Sent.Count > 0 { // asked about after a minute
					r.Advance(61 * time.Second)
				}
				return h.batch.Status == disbursement.StatusDone
			})
			if h.batch.Lines.Paid.Count != 60 {
				t.Errorf("%+v", h.batch.Lines)
			}
		})
	}
}

// history follows a batch by its events.
type history struct {
	rail   *rail
	events *payouts.Reader[record.DisbursementEvent, *record.DisbursementEvent]
	batch  disbursement.Batch
	closed int // how often an account was closed
}

// until reads events until a condition holds.
func (h *history) until(what string, holds func() bool) {
	h.rail.t.Helper()
	for end := time.Now().Add(90 * time.Second); !holds(); {
		if time.Now().After(end) {
			h.rail.t.Fatalf("not so: %s; closed %d times, %+v", what, h.closed, h.batch.Lines)
		}
		for _, e := range h.events.Next(1) {
			event := batches.ToEvent(&e)
			if event.Batch != nil {
				h.batch = *event.Batch
			}
			if event.Type == disbursement.EventPaused && event.Detail[disbursement.DetailClosed] != "" {
				h.closed++
			}
		}
	}
}
