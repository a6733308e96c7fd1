package client

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Form is the forward form of a page: its first form, unless that is the form that
// cancels.
type Form struct {
	Action string
	Fields url.Values
}

// Step returns the last part of the path of the action.
func (f Form) Step() string {
	address, _, _ := strings.Cut(f.Action, "?")
	return address[strings.LastIndexByte(address, '/')+1:]
}

// Clone returns a copy with fields of its own.
func (f Form) Clone() Form {
	fields := url.Values{}
	for k, v := range f.Fields {
		fields[k] = slices.Clone(v)
	}
	return Form{f.Action, fields}
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]*\saction="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input\s[^>]*>`)
	namePattern  = regexp.MustCompile(`\sname="([^"]*)"`)
	valuePattern = regexp.MustCompile(`\svalue="([^"]*)"`)
)

// ReadForm returns the forward form of a page, or the zero form when the page has none.
func ReadForm(text string) Form {
	m := formPattern.FindStringSubmatch(text)
	if m == nil {
		return Form{}
	}
	f := Form{Action: html.UnescapeString(m[1]), Fields: url.Values{}}
	if f.Step() == "cancel" {
		return Form{}
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

// Citizen is a citizen at the page of a session, in a browser without scripts.
type Citizen struct {
	client  *Client
	session string
}

// Citizen returns a citizen at the page of a session.
func (c *Client) Citizen(session string) Citizen { return Citizen{c, session} }

// Submit sends a form as a browser does.
func (c Citizen) Submit(ctx context.Context, f Form) (Answer, error) {
	return c.client.Send(ctx, http.MethodPost, c.client.Service+f.Action, f.Fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// Page returns the text of the page. It repeats the request until the page is shown.
func (c Citizen) Page(ctx context.Context) (string, error) { return c.at(ctx, "") }

// at returns the text of the page at a step: a query such as "&step=phone&offer=momo".
func (c Citizen) at(ctx context.Context, step string) (text string, err error) {
	err = Eventually(ctx, "reading the page", func() error {
		a, err := c.client.Send(ctx, http.MethodGet, c.client.Service+"/c/"+c.session+"?lang=en"+step, "")
		if err != nil {
			return err
		}
		if a.Status != http.StatusOK {
			return fmt.Errorf("%d", a.Status)
		}
		text = string(a.Body)
		return nil
	})
	return text, err
}

// Review enters a phone number and returns the form of the page that asks to confirm.
func (c Citizen) Review(ctx context.Context, phone string) (review Form, err error) {
	page, err := c.at(ctx, "&step=phone&offer=momo")
	if err != nil {
		return Form{}, err
	}
	f := ReadForm(page)
	if !f.Fields.Has("phone") {
		return Form{}, fmt.Errorf("the page of %s asks for no number", c.session)
	}
	f.Fields.Set("phone", phone)
	err = Eventually(ctx, "entering the number", func() error {
		a, err := c.Submit(ctx, f)
		if err != nil {
			return final{err}
		}
		review = ReadForm(string(a.Body))
		if a.Status != http.StatusOK || review.Step() != "pay" {
			return fmt.Errorf("%d", a.Status)
		}
		return nil
	})
	return review, err
}

// Confirm sends the form of the review. It sends it again when the page cannot say what
// became of the payment: the same attempt is the same payment.
func (c Citizen) Confirm(ctx context.Context, review Form) error {
	return Eventually(ctx, "confirming the payment", func() error {
		a, err := c.Submit(ctx, review)
		switch {
		case err != nil:
			return final{err}
		case a.Status == http.StatusSeeOther:
			return nil
		case a.Status == http.StatusServiceUnavailable:
			return errors.New("503")
		}
		return final{fmt.Errorf("%d %s", a.Status, a.Body)}
	})
}

// Pay pays with a phone number.
func (c Citizen) Pay(ctx context.Context, phone string) error {
	review, err := c.Review(ctx, phone)
	if err != nil {
		return err
	}
	return c.Confirm(ctx, review)
}
