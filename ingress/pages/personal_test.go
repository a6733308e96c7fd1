package pages_test

import (
	"errors"
	"strings"
	"testing"

	"quittance/checkout"
	"quittance/internal/personal"
)

// customer gives the session contact data with a phone number.
func customer(id string, s *checkout.Session, phone string) {
	s.CustomerSealed = []byte(id + "/" + phone)
}

// The citizen's number is in the contact data: the form has it, where the offer takes it.
func TestPhoneIsFilledIn(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	const filled = "value=\"&#43;242\u00a006\u00a0600\u00a000\u00a002\""
	for name, c := range map[string]struct {
		phone  string
		err    error
		filled bool
	}{
		"its operator":          {phone: "+242 06 600 00 02", filled: true},
		"another operator":      {phone: "+242 05 500 00 02"},
		"no number":             {phone: "at noon"},
		"too long for the form": {phone: "+242 06 600 00 02" + strings.Repeat(" ", 50)},
		"erased":                {phone: "+242 06 600 00 02", err: personal.ErrErased},
		"unreadable":            {phone: "+242 06 600 00 02", err: errors.New("the database is away")},
	} {
		id := w.create(name, nil)
		w.Change(func() {
			s := w.Sessions[id]
			customer(id, &s, c.phone)
			w.Sessions[id], w.unsealed = s, c.err
		})
		b := browse(t, server).get("/c/"+id).want(200, "Votre numéro mobile money")
		if strings.Contains(b.html, filled) != c.filled {
			t.Errorf("%s: the form is\n%s", name, b.html)
		}
		if strings.Contains(w.logs.String(), "600 00 02") {
			t.Errorf("%s: the log has the number", name)
		}
	}
}

// Without the database a number cannot be sealed, and it must not be in Kafka otherwise.
func TestNumberThatCannotBeSealed(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("o", nil)
	b := browse(t, server)
	review := b.toReview(id)
	w.Change(func() { w.unsealed = errors.New("the database is away") })
	review.forward().want(503)
	if len(w.collected()) != 0 || strings.Contains(w.logs.String(), "600 00 02") {
		t.Errorf("%d requests were made", len(w.collected()))
	}
	w.Change(func() { w.unsealed = nil })
	b.toReview(id).forward()
	if r := w.collected(); len(r) != 1 || payerOf(r[0]) != "242066000002" || r[0].Payer != "" {
		t.Errorf("asked for %+v", r)
	}
}
