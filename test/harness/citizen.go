package harness

import (
	"testing"

	"quittance/dev/bench/client"
)

// PageForm is the forward form of a page.
type PageForm = client.Form

// ReadForm returns the forward form of a page, or the zero form when the page has none.
func ReadForm(text string) PageForm { return client.ReadForm(text) }

// Citizen is a client.Citizen whose requests must succeed.
type Citizen struct{ citizen client.Citizen }

// Citizen returns a citizen at the page of a session.
func (u *Up) Citizen(session string) Citizen { return Citizen{u.Requests().Citizen(session)} }

// Submit sends a form as a browser does.
func (c Citizen) Submit(t *testing.T, f PageForm) Answer {
	t.Helper()
	a, err := c.citizen.Submit(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{a}
}

// Page returns the text of the page.
func (c Citizen) Page(t *testing.T) string {
	t.Helper()
	text, err := c.citizen.Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Review enters a phone number and returns the form of the page that asks to confirm.
func (c Citizen) Review(t *testing.T, phone string) PageForm {
	t.Helper()
	review, err := c.citizen.Review(t.Context(), phone)
	if err != nil {
		t.Fatal(err)
	}
	return review
}

// Pay pays with a phone number.
func (c Citizen) Pay(t *testing.T, phone string) {
	t.Helper()
	if err := c.citizen.Pay(t.Context(), phone); err != nil {
		t.Fatal(err)
	}
}

// Confirm sends the form of the review; see client.Citizen.
func (c Citizen) Confirm(t *testing.T, review PageForm) {
	t.Helper()
	if err := c.citizen.Confirm(t.Context(), review); err != nil {
		t.Fatal(err)
	}
}
