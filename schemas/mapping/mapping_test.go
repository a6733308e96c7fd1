package mapping_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// fill sets every field, so that a test notices a field that a mapper forgets.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1_790_000_000_000 + int64(*n)).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		if v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(*n) * int64(time.Millisecond))
			return
		}
		v.SetInt(int64(*n))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": fmt.Sprint(*n)}))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{byte(*n)})
			return
		}
		s := reflect.MakeSlice(v.Type(), 1, 1)
		fill(s.Index(0), n)
		v.Set(s)
	default:
		panic(v.Type().String())
	}
}

func filled[T any]() T {
	var v T
	n := 0
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

func TestSessionSurvives(t *testing.T) {
	t.Parallel()
	for _, s := range []checkout.Session{filled[checkout.Session](), {}} {
		r := mapping.FromSession(s)
		if got := mapping.ToSession(&r); !reflect.DeepEqual(got, s) {
			t.Errorf("got\n%+v\nwant\n%+v", got, s)
		}
	}
}

func TestCommandsSurvive(t *testing.T) {
	t.Parallel()
	for _, do := range []checkout.Action{
		filled[checkout.Create](), filled[checkout.Cancel](), filled[checkout.Collect](), filled[checkout.Outcome](),
		filled[checkout.Enquire](), filled[checkout.Redirected](), filled[checkout.IssueToken](),
		filled[checkout.Reserve](), filled[checkout.Take](), filled[checkout.Release](), filled[checkout.Reverse](),
		checkout.ConsumeToken{Hash: []byte("h")},
		filled[checkout.ConsumeToken](),
		filled[checkout.OpenRefundRequest](), filled[checkout.Resolve](), filled[checkout.NoteProposal](), filled[checkout.Confirmed](), filled[checkout.Erase](),
		filled[checkout.InitCheckout](), filled[checkout.PartnerPay](), filled[checkout.LookUp](),
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
	a := filled[checkout.Answer]()
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
	q := checkout.CollectionRequest{Kind: checkout.RequestCollect, Session: filled[checkout.Session](), Word: &checkout.ReplyTo{CorrelationID: "c", Partition: 3}}
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
	e := checkout.Event{ID: "evt_1", Type: checkout.EventCompleted, SessionID: "s", Sequence: 3, Session: filled[checkout.Session]()}
	r := mapping.FromEvent(e)
	if r.Session.Customer != nil || r.Session.ClientSecretSealed != nil {
		t.Errorf("the event holds %+v", r.Session)
	}
	if e.Session.Customer == nil {
		t.Error("the session lost its customer")
	}
}
