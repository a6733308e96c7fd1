package acceptance_test

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

// pageForm is a page's forward form: its first, unless that is the one that
// cancels.
type pageForm struct {
	action string
	fields url.Values
}

// step is the last part of the action's path.
func (f pageForm) step() string {
	address, _, _ := strings.Cut(f.action, "?")
	return address[strings.LastIndexByte(address, '/')+1:]
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]*\saction="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input\s[^>]*>`)
	namePattern  = regexp.MustCompile(`\sname="([^"]*)"`)
	valuePattern = regexp.MustCompile(`\svalue="([^"]*)"`)
)

// readForm reads a page's forward form; the zero form when it has none.
func readForm(text string) pageForm {
	m := formPattern.FindStringSubmatch(text)
	if m == nil {
		return pageForm{}
	}
	f := pageForm{action: html.UnescapeString(m[1]), fields: url.Values{}}
	if f.step() == "cancel" {
		return pageForm{}
	}
	for _, input := range inputPattern.FindAllString(m[2], -1) {
		name, value := namePattern.FindStringSubmatch(input), valuePattern.FindStringSubmatch(input)
		unchosen := strings.Contains(input, `type="radio"`) && !strings.Contains(input, " checked")
		if name != nil && value != nil && !unchosen {
			f.fields.Add(html.UnescapeString(name[1]), html.UnescapeString(value[1]))
		}
	}
	return f
}

// citizen is somebody at a session's page without a script.
type citizen struct {
	up *up
	id string
}

func (u *up) citizen(s session) citizen { return citizen{u, s.ID} }

// submit sends a form as the browser does.
func (c citizen) submit(t *testing.T, f pageForm) answer {
	t.Helper()
	return c.up.call(t, http.MethodPost, c.up.url(atService, f.action), f.fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// page is what the page shows; it must be there.
func (c citizen) page(t *testing.T) string {
	t.Helper()
	return c.at(t, "")
}

// at is what the page shows at a step: a query such as "&step=phone&offer=momo".
func (c citizen) at(t *testing.T, step string) string {
	t.Helper()
	var text string
	eventually(t, "the page is shown", func() error {
		a, err := c.up.send(t.Context(), http.MethodGet, c.up.url(atService, "/c/"+c.id+"?lang=en"+step), "")
		if err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d %w", a.status, err)
		}
		text = string(a.body)
		return nil
	})
	return text
}

// review goes to the page that asks to confirm, and returns its form.
func (c citizen) review(t *testing.T, phone string) pageForm {
	t.Helper()
	f := readForm(c.at(t, "&step=phone&offer=momo"))
	if !f.fields.Has("phone") {
		t.Fatalf("the page of %s asks for no number", c.id)
	}
	f.fields.Set("phone", phone)
	var review pageForm
	eventually(t, "the review is shown", func() error {
		a := c.submit(t, f)
		review = readForm(string(a.body))
		if a.status != http.StatusOK || !strings.HasSuffix(strings.SplitN(review.action, "?", 2)[0], "/pay") {
			return fmt.Errorf("%d", a.status)
		}
		return nil
	})
	return review
}

// pay confirms a payment by a number.
func (c citizen) pay(t *testing.T, phone string) {
	t.Helper()
	c.confirm(t, c.review(t, phone))
}

// confirm sends the review's form, again if the page cannot tell what became of
// it: the same attempt is the same payment.
func (c citizen) confirm(t *testing.T, review pageForm) {
	t.Helper()
	eventually(t, "payment is confirmed", func() error {
		a := c.submit(t, review)
		switch a.status {
		case http.StatusSeeOther:
			return nil
		case http.StatusServiceUnavailable:
			return errors.New("503")
		}
		t.Fatalf("confirming: %d %s", a.status, a.body)
		return nil
	})
}

// clone is a form of its own with the same fields.
func (f pageForm) clone() pageForm {
	fields := url.Values{}
	for k, v := range f.fields {
		fields[k] = slices.Clone(v)
	}
	return pageForm{f.action, fields}
}
