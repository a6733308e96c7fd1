package batches_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/filled"
)

// Every field of every command is in its record.
func TestCommandsSurvive(t *testing.T) {
	t.Parallel()
	for _, do := range []disbursement.Action{
		filled.New[disbursement.Open](), filled.New[disbursement.AddLines](), filled.New[disbursement.Seal](), filled.New[disbursement.Discard](),
		filled.New[disbursement.Approve](), filled.New[disbursement.Reject](), filled.New[disbursement.Recall](), filled.New[disbursement.Release](),
		filled.New[disbursement.ERPSame](), filled.New[disbursement.SetHold](), filled.New[disbursement.Lift](), filled.New[disbursement.Stop](),
		filled.New[disbursement.Retry](), filled.New[disbursement.Cancel](), filled.New[disbursement.Settle](), filled.New[disbursement.Acknowledge](),
		filled.New[disbursement.Word](), filled.New[disbursement.SetPolicy](), filled.New[disbursement.Enrol](), filled.New[disbursement.Revoke](),
		filled.New[disbursement.TryAccount](),
		disbursement.Revoke{Person: "p"},
		disbursement.Approve{},
		disbursement.Lift{},
	} {
		for _, to := range []*disbursement.ReplyTo{nil, {CorrelationID: "c", Partition: 3}} {
			c := disbursement.Command{At: time.UnixMilli(1).UTC(), TenantID: "t", Live: true, Batch: "b", Registry: 7, ReplyTo: to, Do: do}
			r, err := batches.FromCommand(c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := batches.ToCommand(r)
			if err != nil || !reflect.DeepEqual(got, c) {
				t.Errorf("got\n%+v (%v)\nwant\n%+v", got, err, c)
			}
		}
	}
	if _, err := batches.FromCommand(disbursement.Command{Do: disbursement.Tick{}}); !errors.Is(err, disbursement.ErrUnknownCommand) {
		t.Errorf("a tick travels: %v", err)
	}
	for _, r := range []record.DisbursementCommand{
		{},
		{Type: "batch.transmogrify"},
		{Type: "batch.transmogrify", Step: &record.BatchStep{}},
		{Type: batches.CommandOpen},
		{Type: batches.CommandWord},
		{Type: batches.CommandApprove},
		{Type: batches.CommandSettle, Step: &record.BatchStep{}},
	} {
		if c, err := batches.ToCommand(&r); !errors.Is(err, disbursement.ErrUnknownCommand) {
			t.Errorf("%+v is %+v, %v", r, c, err)
		}
	}
}

// Every field of the state, of events, requests and answers is in its record.
func TestEntriesSurvive(t *testing.T) {
	t.Parallel()
	survives(t, batches.FromBatch, batches.ToBatch)
	survives(t, batches.FromLine, batches.ToLine)
	survives(t, batches.FromRef, batches.ToRef)
	survives(t, batches.FromSealing, batches.ToSealing)
	survives(t, batches.FromQueued, batches.ToQueued)
	survives(t, batches.FromAccount, batches.ToAccount)
	survives(t, batches.FromRoster, batches.ToRoster)
	survives(t, batches.FromBatchRef, batches.ToBatchRef)
	survives(t, batches.FromRequest, batches.ToRequest)
	survives(t, batches.FromAnswer, batches.ToAnswer)
	survives(t, batches.FromAgency, batches.ToAgency)
	survives(t, batches.FromEvent, batches.ToEvent)
}

func survives[V, R any](t *testing.T, from func(V) R, to func(*R) V) {
	t.Helper()
	var zero V
	for _, v := range []V{filled.New[V](), zero} {
		r := from(v)
		if got := to(&r); !reflect.DeepEqual(got, v) {
			t.Errorf("got\n%+v\nwant\n%+v", got, v)
		}
	}
}

func TestReplyNamesWhoWaits(t *testing.T) {
	t.Parallel()
	r := batches.Reply(disbursement.ReplyTo{CorrelationID: "c", Partition: 2}, disbursement.Answer{Refusal: &disbursement.Refusal{Code: disbursement.CodeHeld, Field: "batch", Mend: "lift it"}})
	if a := batches.ToAnswer(r); r.CorrelationID != "c" || a.Code() != disbursement.CodeHeld || a.Refusal.Mend != "lift it" {
		t.Errorf("%+v", r)
	}
}
