package mapping_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/filled"
)

func TestSessionSurvives(t *testing.T) {
	t.Parallel()
	for _, s := range []checkout.Session{filled.New[checkout.Session](), {}} {
		r := mapping.FromSession(s)
		if got := mapping.ToSession(&r); !reflect.DeepEqual(got, s) {
			t.Errorf("got\n%+v\nwant\n%+v", got, s)
		}
	}
}

func TestCommandsSurvive(t *testing.T) {
	t.Parallel()
	for _, do := range []checkout.Action{
		filled.New[checkout.Create](), filled.New[checkout.Cancel](), filled.New[checkout.Collect](), filled.New[checkout.Outcome](),
		filled.New[checkout.Enquire](), filled.New[checkout.Redirected](), filled.New[checkout.IssueToken](),
		filled.New[checkout.Reserve](), filled.New[checkout.Take](), filled.New[checkout.Release](), filled.New[checkout.Reverse](),
		checkout.ConsumeToken{Hash: []byte("h")},
		filled.New[checkout.ConsumeToken](),
		filled.New[checkout.OpenRefundRequest](), filled.New[checkout.Resolve](), filled.New[checkout.NoteProposal](), filled.New[checkout.Confirmed](), filled.New[checkout.Credit](), filled.New[checkout.CreditWithdrawn](), filled.New[checkout.Erase](),
		filled.New[checkout.InitCheckout](), filled.New[checkout.PartnerPay](), filled.New[checkout.LookUp](),
	} {
		for _, to := range []*checkout.ReplyTo{nil, {CorrelationID: "c", Partition: 3}} {
			c := checkout.Command{At: time.UnixMilli(1).UTC(), SessionID: "s", ApplicationID: "a", Live: true, ReplyTo: to, Do: do}
			r, err := mapping.FromCommand(c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := mapping.ToCommand(r)
			if err != nil || !reflect.DeepEqual(got, c) {
				t.Errorf("got\n%+v (%v)\nwant\n%+v", got, err, c)
			}
		}
	}
	if _, err := mapping.FromCommand(checkout.Command{Do: checkout.Tick{}}); !errors.Is(err, checkout.ErrUnknownCommand) {
		t.Errorf("a tick travels: %v", err)
	}
	for _, r := range []record.Command{
		{},
		{Type: "session.transmogrify"},
		{Type: mapping.CommandCreate},
		{Type: mapping.CommandOutcome},
		{Type: mapping.CommandInitCheckout},
		{Type: mapping.CommandInitCheckout, Cashin: &record.CashinEntry{Session: &record.Session{}}},
		{Type: mapping.CommandPartnerPay, Cashin: &record.CashinEntry{Session: &record.Session{Cashin: &record.Cashin{}}}},
	} {
		if _, err := mapping.ToCommand(&r); !errors.Is(err, checkout.ErrUnknownCommand) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestAnswersSurvive(t *testing.T) {
	t.Parallel()
	a := filled.New[checkout.Answer]()
	if got := mapping.ToAnswer(mapping.Reply(checkout.ReplyTo{CorrelationID: "c"}, a)); !reflect.DeepEqual(got, a) {
		t.Errorf("got\n%+v\nwant\n%+v", got, a)
	}
}

// All notifications about a confirmation have the id and the time of the payment, so that
// they are about one delivery, and the same bytes to send.
func TestConfirmationRequests(t *testing.T) {
	t.Parallel()
	paid, asked := time.UnixMilli(1_000).UTC(), time.UnixMilli(9_000).UTC()
	e := checkout.Event{Type: checkout.EventCompleted, SessionID: "s", OccurredAt: paid, Session: checkout.Session{
		ID: "s", TransactionID: "tx", Status: checkout.StatusCompleted, EndedAt: paid, Metadata: map[string]string{checkout.MetadataERPDueRef: "due"},
		Collection: &checkout.Collection{ID: "c"},
	}}
	only := func(e checkout.Event) (*record.Notification, error) {
		made, err := mapping.ToConfirmations(e)
		if len(made) != 1 {
			t.Fatalf("%d notifications, %v", len(made), err)
		}
		return made[0], err
	}
	first, err := only(e)
	if err != nil || first.Request != "" || first.EventID != "tx" || !first.OccurredAt.Equal(paid) {
		t.Fatalf("%+v, %v", first, err)
	}
	for kind, want := range map[checkout.EventType]checkout.ConfirmationKind{
		checkout.EventConfirmationRetried: checkout.RequestAgain, checkout.EventConfirmationRecorded: checkout.RequestWithdraw,
	} {
		later := e
		later.Type, later.OccurredAt = kind, asked
		n, err := only(later)
		if err != nil || n.Request != string(want) || !n.RequestedAt.Equal(asked) {
			t.Fatalf("%+v, %v", n, err)
		}
		n.Request, n.RequestedAt = "", time.Time{}
		if !reflect.DeepEqual(n, first) {
			t.Errorf("%s gives\n%+v\nwant\n%+v", kind, n, first)
		}
		later.Session.Confirmation.Again = 2 // it had accepted the payment twice
		if n, err := only(later); err != nil || n.Again != 2 || n.EventID != "tx" {
			t.Errorf("%+v, %v", n, err)
		}
	}
}

// A collection request names who waits for what the operator says.
func TestRequestsNameWhoWaits(t *testing.T) {
	t.Parallel()
	q := checkout.CollectionRequest{Kind: checkout.RequestCollect, Session: filled.New[checkout.Session](), Word: &checkout.ReplyTo{CorrelationID: "c", Partition: 3}}
	if r := mapping.FromRequest(q); r.WordCorrelationID != "c" || r.WordPartition != 3 {
		t.Errorf("nobody learns what the operator says: %+v", r)
	}
	q.Word = nil
	if r := mapping.FromRequest(q); r.WordCorrelationID != "" {
		t.Errorf("somebody waits: %+v", r)
	}
}

func TestEventsHoldNoContactData(t *testing.T) {
	t.Parallel()
	e := checkout.Event{ID: "evt_1", Type: checkout.EventCompleted, SessionID: "s", Sequence: 3, Session: filled.New[checkout.Session]()}
	r := mapping.FromEvent(e)
	if r.Session.Customer != nil || r.Session.ClientSecretSealed != nil {
		t.Errorf("the event holds %+v", r.Session)
	}
	if e.Session.Customer == nil {
		t.Error("the session lost its customer")
	}
}
