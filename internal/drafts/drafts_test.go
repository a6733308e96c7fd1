package drafts_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/drafts"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// outside is what drafts call: the processor, the references and the contact data. It records
// what becomes of contact data.
type outside struct {
	answer checkout.Answer
	err    error
	asked  checkout.Command
	notes  []string
}

func (o *outside) AskWithin(_ context.Context, cmd checkout.Command, _ time.Duration) (checkout.Answer, error) {
	o.asked = cmd
	return o.answer, o.err
}

func (*outside) PaymentRef() (string, error) { return "0000000000000001", nil }
func (*outside) NoticeRef() (string, error)  { return "AV20260000000001", nil }
func (*outside) PaymentID() (int64, error)   { return 7, nil }

func (o *outside) SealCustomer(context.Context, string, checkout.Customer) ([]byte, error) {
	return []byte("sealed"), o.err
}

func (o *outside) Forget(context.Context, string) error {
	o.notes = append(o.notes, "erased")
	return nil
}

func (o *outside) Adopt(_ context.Context, _, to string) error {
	o.notes = append(o.notes, "given to "+to)
	return nil
}

func (o *outside) maker(t *testing.T) *drafts.Maker {
	t.Helper()
	m, err := drafts.New(drafts.Config{
		Commands: o, References: o, Personal: o, Keys: secret.GenerateKeys(), IDs: checkout.NewIDs(secret.GenerateReferenceKey().MAC("ids")),
		Partition: func(string) int32 { return 3 }, RequestID: func(context.Context) string { return "" }, Log: servers.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var at = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func TestContactDataOfACreation(t *testing.T) {
	t.Parallel()
	earlier := &checkout.Session{ID: "earlier"}
	for name, c := range map[string]struct {
		answer  checkout.Answer
		err     error
		payer   bool // a payer's number and no customer
		nothing bool // neither
		want    []string
	}{
		"created":              {answer: checkout.Answer{Code: checkout.CodeOK}},
		"refused":              {answer: checkout.Answer{Code: checkout.CodeKeyReused}, want: []string{"erased"}},
		"refused, a payer":     {answer: checkout.Answer{Code: checkout.CodeNumbersExhausted}, payer: true, want: []string{"erased"}},
		"refused, nothing":     {answer: checkout.Answer{Code: checkout.CodeKeyReused}, nothing: true},
		"an earlier answer":    {answer: checkout.Answer{Code: checkout.CodeOK, Replayed: true, Session: earlier}, want: []string{"erased"}},
		"an update":            {answer: checkout.Answer{Code: checkout.CodeOK, Session: earlier}, want: []string{"given to earlier"}},
		"an update of nothing": {answer: checkout.Answer{Code: checkout.CodeOK, Session: earlier}, nothing: true},
		"unknown":              {err: commands.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outside{}
			m := o.maker(t)
			s := checkout.Session{CreatedAt: at, TenantID: "agency", ApplicationID: "application", Live: true}
			do := checkout.Action(checkout.Create{})
			switch {
			case c.payer:
				do = checkout.PartnerPay{Collect: checkout.Collect{PayerSealed: []byte("sealed")}}
			case !c.nothing:
				s.Customer = &checkout.Customer{Name: "A"}
			}
			if err := m.Complete(t.Context(), &s); err != nil || s.Customer != nil {
				t.Fatalf("%+v, %v", s, err)
			}
			o.answer, o.err = c.answer, c.err
			if _, err := m.Create(t.Context(), &s, do, time.Second); !errors.Is(err, c.err) {
				t.Errorf("%v", err)
			}
			if !slices.Equal(o.notes, c.want) {
				t.Errorf("contact data: %q, want %q", o.notes, c.want)
			}
			if cmd := o.asked; !cmd.At.Equal(at) || cmd.TenantID != "agency" || cmd.ApplicationID != "application" || !cmd.Live || cmd.SessionID != s.ID {
				t.Errorf("asked %+v", cmd)
			}
		})
	}
}

// An embedded session has a client_secret, the first due the session's own numbers, and a
// payment of the cash-in surface its number.
func TestComplete(t *testing.T) {
	t.Parallel()
	o := &outside{}
	m := o.maker(t)
	s := checkout.Session{CreatedAt: at, Mode: checkout.ModeEmbedded, Items: make([]checkout.Item, 2), Cashin: &checkout.Cashin{}}
	if err := m.Complete(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if p, err := checkout.SessionPartition(s.ID); err != nil || p != 3 {
		t.Errorf("%s is of partition %d, %v", s.ID, p, err)
	}
	first, second := s.Items[0], s.Items[1]
	if first.TransactionID != s.TransactionID || first.NoticeID != s.NoticeID || first.NoticeRef != s.NoticeRef || second.TransactionID == s.TransactionID || second.NoticeRef == "" {
		t.Errorf("the dues are %+v", s.Items)
	}
	if s.PaymentRef == "" || s.NoticeID == s.TransactionID || s.Cashin.PaymentID != 7 {
		t.Errorf("%+v", s)
	}
	if plain, err := m.ClientSecret(s); err != nil || len(s.ClientSecretHash) == 0 || len(plain) < len(checkout.PrefixClientSecret)+50 {
		t.Errorf("the client_secret is %q, %v", plain, err)
	}

	o.err = errors.New("no database")
	s = checkout.Session{CreatedAt: at, Customer: &checkout.Customer{Name: "A"}}
	if err := m.Complete(t.Context(), &s); !errors.Is(err, commands.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

func TestValidKey(t *testing.T) {
	t.Parallel()
	long := string(slices.Repeat([]byte("k"), 255))
	for key, want := range map[string]bool{"k": true, long: true, "a ~": true, "": false, long + "k": false, "é": false, "a\tb": false, "\x7f": false} {
		if drafts.ValidKey(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}
