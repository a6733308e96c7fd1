package citizens_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"quittance/internal/citizens"
	"quittance/money"
)

// Somebody who signed in with a passkey for months had receipts and warnings sent to a number that
// belonged to somebody else by then. An address gets messages for 90 days after its proof; whoever
// is signed in proves it again, and the account stays the same.
func TestStoredAddressesNeedAProof(t *testing.T) {
	t.Parallel()
	o := open(t)
	d := newDevice(t, o.passkeys())
	session, c := o.signIn(phone(t, 1))
	d.add(session)
	reached := func() int {
		t.Helper()
		addresses, err := o.Addresses(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(addresses)
	}
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-1"}
	o.prove(c, subject)
	o.wait(60 * 24 * time.Hour)
	if _, who, err := d.signIn(); err != nil || reached() != 1 || len(who.Unproven) != 0 {
		t.Fatalf("after 60 days: %d addresses, %v, %v", reached(), who.Unproven, err)
	}
	o.wait(30 * 24 * time.Hour)
	token, who, err := d.signIn()
	if err != nil || who.ID != c.ID || reached() != 0 {
		t.Fatalf("after 90 days messages go to %d addresses, %v", reached(), err)
	}
	masked := phone(t, 1).Masked()
	if !slices.Equal(who.Unproven, []string{masked}) || !slices.Equal(who.Addresses, []string{masked}) {
		t.Errorf("the owner sees %q of %q as not proven", who.Unproven, who.Addresses)
	}
	if again, err := o.Session(t.Context(), token); err != nil || !slices.Equal(again.Unproven, []string{masked}) {
		t.Errorf("a page shows %q, %v", again.Unproven, err)
	}
	told := 0
	o.prove(second(o), subject) // a new link, of which the holders are told
	if _, err := o.Tell(t.Context(), func(_ context.Context, n citizens.Notice) error {
		told += len(n.Addresses)
		return nil
	}); err != nil || told != 0 {
		t.Errorf("a notice goes to %d addresses, %v", told, err)
	}
	// The owner, who is signed in, enters a code of the address.
	code := o.want(phone(t, 1), citizens.Sent)
	_, proved, err := o.Enter(t.Context(), phone(t, 1), browser, code.Reveal(), money.French, token)
	if err != nil || proved.ID != c.ID || proved.First || reached() != 1 {
		t.Errorf("proven again: %+v, %d addresses, %v", proved, reached(), err)
	}
	if len(o.links(c)) != 1 {
		t.Error("the proof cost the account its links")
	}
}

// Who has the number now and is signed in to another account gets an account of their own.
func TestAnotherAccountProvesNothing(t *testing.T) {
	t.Parallel()
	o := open(t)
	_, c := o.signIn(phone(t, 1))
	o.wait(90 * 24 * time.Hour)
	session, other := o.signIn(email(t, 2))
	code := o.want(phone(t, 1), citizens.Sent)
	_, who, err := o.Enter(t.Context(), phone(t, 1), browser, code.Reveal(), money.French, session)
	if err != nil || who.ID == c.ID || who.ID == other.ID || !who.First {
		t.Errorf("the next owner gets %+v, %v", who, err)
	}
}

// second is another account.
func second(o *office) citizens.Citizen {
	o.t.Helper()
	_, c := o.signIn(email(o.t, 9))
	return c
}
