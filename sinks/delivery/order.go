package delivery

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quittance/internal/deliveries"
	"quittance/schemas/record"
)

// Deliveries of a kind with a final event are sent one at a time for each session. A
// delivery of another event is not sent once the final one was accepted: the receiver would
// take it for the newer one. All deliveries of a session are in one partition, so one worker
// has them.

// begin notes that the call of a job is under way. The caller holds the lock.
func (w *Worker) begin(m *mailbox, j *job) {
	m.inFlight++
	if w.cfg.Kind.Final == "" {
		return
	}
	if m.busy == nil {
		m.busy = map[string]bool{}
	}
	m.busy[j.delivery.SessionID] = true
}

// end undoes begin. The caller holds the lock.
func (w *Worker) end(m *mailbox, j *job) {
	m.inFlight--
	delete(m.busy, j.delivery.SessionID)
}

// isFinal reports whether a delivery is of the final event of its session.
func (w *Worker) isFinal(d *record.Delivery) bool {
	return w.cfg.Kind.Final != "" && d.Event == w.cfg.Kind.Final
}

// superseded ends a job without a call when the final event of its session was accepted. It
// defers the job while that is unknown. It reports whether the job has ended.
func (w *Worker) superseded(m *mailbox, j *job, d *record.Delivery, now time.Time) bool {
	if w.cfg.Kind.Final == "" || w.isFinal(d) {
		return false
	}
	w.mu.Lock()
	_, is := w.final[d.SessionID]
	w.mu.Unlock()
	var err error
	if !is {
		ctx, cancel := context.WithTimeout(w.callCtx, orderPatience)
		is, err = w.cfg.History.Superseded(ctx, w.cfg.Kind, d.SessionID)
		cancel()
	}
	switch {
	case err == nil && !is:
		return false
	case err != nil && errors.Is(w.callCtx.Err(), context.Canceled):
		w.abandon(m, j)
		return true
	}
	w.mu.Lock()
	l := j.lane
	j.lane, j.concluded = nil, true
	w.end(m, j)
	w.freeSlot(l)
	w.pump(m)
	w.mu.Unlock()
	if err != nil {
		w.cfg.Log.LogAttrs(w.callCtx, slog.LevelWarn, "asking whether a later event was accepted; the delivery waits", slog.Any("error", err))
		w.deferred(j, deliveries.ReasonOrderUnknown, now, now.Add(deferOrder))
		return true
	}
	w.count.attempts.WithLabelValues(string(deliveries.OutcomeSuperseded)).Inc()
	d.Attempt-- // no call was made
	w.record(j, &record.Attempt{Delivery: *d, Outcome: string(deliveries.OutcomeSuperseded), At: now, Reason: string(deliveries.OutcomeSuperseded)})
	return true
}
