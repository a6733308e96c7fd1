package harness

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// PageForm is a page's forward form: its first, unless that is the one that
// cancels.
type PageForm struct {
	Action string
	Fields url.Values
}

// Step is the last part of the action's path.
func (f PageForm) Step() string {
	address, _, _ := strings.Cut(f.Action, "?")
	return address[strings.LastIndexByte(address, '/')+1:]
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]*\saction="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input\s[^>]*>`)
	namePattern  = regexp.MustCompile(`\sname="([^"]*)"`)
	valuePattern = regexp.MustCompile(`\svalue="([^"]*)"`)
)

// ReadForm reads a page's forward form; the zero form when it has none.
func ReadForm(text string) PageForm {
	m := formPattern.FindStringSubmatch(text)
	if m == nil {
		return PageForm{}
	}
	f := PageForm{Action: html.UnescapeString(m[1]), Fields: url.Values{}}
	if f.Step() == "cancel" {
		return PageForm{}
	}
	for _, input := range inputPattern.FindAllString(m[2], -1) {
		name, value := namePattern.FindStringSubmatch(input), valuePattern.FindStringSubmatch(input)
		unchosen := strings.Contains(input, `type="radio"`) && !strings.Contains(input, " checked")
		if name != nil && value != nil && !unchosen {
			f.Fields.Add(html.UnescapeString(name[1]), html.UnescapeString(value[1]))
		}
	}
	return f
}

// Citizen is somebody at a session's page without a script.
type Citizen struct {
	up *Up
	id string
}

// Citizen is a citizen at the page of a session.
func (u *Up) Citizen(session string) Citizen { return Citizen{u, session} }

// Submit sends a form as the browser does.
func (c Citizen) Submit(t *testing.T, f PageForm) Answer {
	t.Helper()
	return c.up.Call(t, http.MethodPost, c.up.URL(AtService, f.Action), f.Fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// Page is what the page shows; it must be there.
func (c Citizen) Page(t *testing.T) string {
	t.Helper()
	return c.at(t, "")
}

// at is what the page shows at a step: a query such as "&step=phone&offer=momo".
func (c Citizen) at(t *testing.T, step string) string {
	t.Helper()
	var text string
	Eventually(t, "the page is shown", func() error {
		a, err := c.up.Send(t.Context(), http.MethodGet, c.up.URL(AtService, "/c/"+c.id+"?lang=en"+step), "")
		if err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("%d %w", a.Status, err)
		}
		text = string(a.Body)
		return nil
	})
	return text
}

// Review goes to the page that asks to confirm, and returns its form.
func (c Citizen) Review(t *testing.T, phone string) PageForm {
	t.Helper()
	f := ReadForm(c.at(t, "&step=phone&offer=momo"))
	if !f.Fields.Has("phone") {
		t.Fatalf("the page of %s asks for no number", c.id)
	}
	f.Fields.Set("phone", phone)
	var review PageForm
	Eventually(t, "the review is shown", func() error {
		a := c.Submit(t, f)
		review = ReadForm(string(a.Body))
		if a.Status != http.StatusOK || !strings.HasSuffix(strings.SplitN(review.Action, "?", 2)[0], "/pay") {
			return fmt.Errorf("%d", a.Status)
		}
		return nil
	})
	return review
}

// Pay confirms a payment by a number.
func (c Citizen) Pay(t *testing.T, phone string) {
	t.Helper()
	c.Confirm(t, c.Review(t, phone))
}

// Confirm sends the review's form, again if the page cannot tell what became of
// it: the same attempt is the same payment.
func (c Citizen) Confirm(t *testing.T, review PageForm) {
	t.Helper()
	Eventually(t, "payment is confirmed", func() error {
		a := c.Submit(t, review)
		switch a.Status {
		case http.StatusSeeOther:
			return nil
		case http.StatusServiceUnavailable:
			return errors.New("503")
		}
		t.Fatalf("confirming: %d %s", a.Status, a.Body)
		return nil
	})
}

// Clone is a form of its own with the same fields.
func (f PageForm) Clone() PageForm {
	fields := url.Values{}
	for k, v := range f.Fields {
		fields[k] = slices.Clone(v)
	}
	return PageForm{f.Action, fields}
}
